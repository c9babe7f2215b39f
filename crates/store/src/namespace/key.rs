//! Names in the database: a [`Namespace`] and a [`Key`] inside it, checked once when a request is decoded.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::StoreError;

/// Parts of a key at most.
pub const MAX_KEY_DEPTH: usize = 64;

/// Bytes of a key in its dotted form at most.
pub const MAX_KEY_BYTES: usize = 1024;

/// Bytes of a namespace's name at most.
pub const MAX_NAMESPACE_BYTES: usize = 255;

/// The name of a namespace: neither empty nor longer than [`MAX_NAMESPACE_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Cow<'static, str>);

impl Namespace {
    /// Checks a name that came from outside.
    ///
    /// # Errors
    /// [`StoreError::BadNamespace`] when it is empty or too long.
    pub fn parse(name: &str) -> Result<Self, StoreError> {
        match name.len() {
            0 => Err(StoreError::BadNamespace("must not be empty".to_owned())),
            1..=MAX_NAMESPACE_BYTES => Ok(Self(Cow::Owned(name.to_owned()))),
            _ => Err(StoreError::BadNamespace(format!("longer than {MAX_NAMESPACE_BYTES} bytes"))),
        }
    }

    /// A name of our own, for constants: `const WEBCAMS: Namespace = Namespace::fixed("webcams");`.
    /// A wrong name fails the build of such a constant.
    pub const fn fixed(name: &'static str) -> Self {
        assert!(!name.is_empty() && name.len() <= MAX_NAMESPACE_BYTES);
        Self(Cow::Borrowed(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The path to a value in a namespace: the name of a record, then members of nested objects. No part is empty.
///
/// Document 1, *Database item*. `Display` shows the dotted form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    record: String,
    members: Vec<String>,
}

impl Key {
    /// Reads the dotted form, `a.b.c`.
    ///
    /// # Errors
    /// [`StoreError::BadKey`] when a part is empty or a limit is exceeded.
    pub fn parse(dotted: &str) -> Result<Self, StoreError> {
        if dotted.is_empty() {
            return Err(bad("must not be empty"));
        }
        Self::from_parts(dotted.split('.'))
    }

    /// Takes the parts as they are: they may contain dots, as file names do.
    ///
    /// # Errors
    /// [`StoreError::BadKey`] when there is no part, a part is empty or a limit is exceeded.
    pub fn from_parts<I>(parts: I) -> Result<Self, StoreError>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let mut bytes = 0;
        let mut taken = Vec::new();
        for part in parts {
            let part = part.into();
            bytes += part.len() + usize::from(!taken.is_empty());
            if part.is_empty() {
                return Err(bad("must not have empty parts"));
            }
            if bytes > MAX_KEY_BYTES {
                return Err(bad(&format!("longer than {MAX_KEY_BYTES} bytes")));
            }
            if taken.len() == MAX_KEY_DEPTH {
                return Err(bad(&format!("more than {MAX_KEY_DEPTH} parts")));
            }
            taken.push(part);
        }
        let mut parts = taken.into_iter();
        let record = parts.next().ok_or_else(|| bad("must not be empty"))?;
        Ok(Self { record, members: parts.collect() })
    }

    /// Reads the argument as a client sends it: a dotted string or an array of strings. Whole numbers in the array
    /// are taken as their decimal text (indexes).
    ///
    /// # Errors
    /// [`StoreError::BadKey`] when it is something else, or as in [`Key::parse`] and [`Key::from_parts`].
    pub fn from_json(argument: &Value) -> Result<Self, StoreError> {
        match argument {
            Value::String(dotted) => Self::parse(dotted),
            Value::Array(parts) => {
                let parts: Vec<String> = parts.iter().map(part_text).collect::<Result<_, _>>()?;
                Self::from_parts(parts)
            }
            _ => Err(bad("must be a string or an array of strings")),
        }
    }

    /// The first part: names a record.
    pub fn record(&self) -> &str {
        &self.record
    }

    /// The further parts: lead to a value within the record.
    pub fn members(&self) -> &[String] {
        &self.members
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.record)?;
        self.members.iter().try_for_each(|member| write!(f, ".{member}"))
    }
}

fn part_text(part: &Value) -> Result<String, StoreError> {
    match part {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) if number.is_u64() => Ok(number.to_string()),
        _ => Err(bad("must be a string or an array of strings")),
    }
}

fn bad(reason: &str) -> StoreError {
    StoreError::BadKey(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parts(key: &Key) -> Vec<&str> {
        std::iter::once(key.record()).chain(key.members().iter().map(String::as_str)).collect()
    }

    #[test]
    fn a_string_is_split_at_dots() {
        let key = Key::from_json(&json!("a.b.0")).unwrap();
        assert_eq!(parts(&key), ["a", "b", "0"]);
        assert_eq!(key.to_string(), "a.b.0");
    }

    #[test]
    fn members_of_an_array_keep_their_dots() {
        let key = Key::from_json(&json!(["benchy.gcode", "size", 2])).unwrap();
        assert_eq!(parts(&key), ["benchy.gcode", "size", "2"]);
    }

    #[test]
    fn malformed_keys_name_the_argument() {
        for wrong in [json!(""), json!("a..b"), json!("."), json!([]), json!(["a", ""]), json!(1), json!(null)] {
            let error = Key::from_json(&wrong).unwrap_err();
            assert!(error.to_string().contains("'key'"), "{wrong}: {error}");
        }
        for wrong in [json!([["a"]]), json!(["a", -1]), json!(["a", 1.5]), json!({"a": 1})] {
            assert!(Key::from_json(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits() {
        assert!(Key::parse(&"k".repeat(MAX_KEY_BYTES)).is_ok());
        assert!(Key::parse(&"k".repeat(MAX_KEY_BYTES + 1)).is_err());
        assert!(Key::from_parts(vec!["k"; MAX_KEY_DEPTH]).is_ok());
        assert!(Key::from_parts(vec!["k"; MAX_KEY_DEPTH + 1]).is_err());
        assert!(Namespace::parse(&"n".repeat(MAX_NAMESPACE_BYTES)).is_ok());
        assert!(Namespace::parse(&"n".repeat(MAX_NAMESPACE_BYTES + 1)).is_err());
        assert!(Namespace::parse("").is_err());
    }

    proptest! {
        #[test]
        fn any_string_parses_or_is_refused(text in ".{0,40}") {
            match Key::parse(&text) {
                Ok(key) => prop_assert_eq!(key.to_string(), text),
                Err(_) => prop_assert!(text.split('.').any(str::is_empty)),
            }
        }
    }
}
