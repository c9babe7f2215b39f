//! From merged arguments to the typed parameters of an operation.
//!
//! A serde deserializer that converts as the public API promises: text to numbers and booleans, numbers to text, comma lists, null as "not
//! given". Every fault names the argument and what was expected. Source: document 1 *HTTP conventions*, wire/1-core.md section 3.3.

use std::fmt;

use protocol::ApiError;
use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};

use crate::args::{ArgValue, Arguments};

/// Longest piece of a bad value that an error message repeats, in characters.
const SHOWN_VALUE: usize = 64;

/// Decodes `arguments` into `P`. A null counts as "not given", except for the arguments in `keep_null`, for which null is a value.
///
/// # Errors
/// An argument error that names the argument and what was expected.
pub fn decode<P: DeserializeOwned>(arguments: &Arguments<'_>, keep_null: &[&str]) -> Result<P, ApiError> {
    P::deserialize(ArgumentsDeserializer { arguments, keep_null }).map_err(|fault| ApiError::argument(fault.text()))
}

/// Why decoding failed.
#[derive(Debug)]
enum Fault {
    Missing(String),
    /// The value does not fit; filled in by the map access, which knows the name.
    Value {
        name: Option<String>,
        text: String,
    },
}

impl Fault {
    fn expected(what: impl fmt::Display, got: &ArgValue<'_>) -> Self {
        let shown = got.to_json();
        let cut: String = shown.chars().take(SHOWN_VALUE).collect();
        let dots = if cut.len() < shown.len() { "…" } else { "" };
        Self::Value { name: None, text: format!("expected {what}, got {cut}{dots}") }
    }

    fn named(self, argument: &str) -> Self {
        match self {
            Self::Value { name: None, text } => Self::Value { name: Some(argument.to_owned()), text },
            other => other,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Missing(name) => format!("No data for argument: {name}"),
            Self::Value { name: Some(name), text } => format!("Unable to convert argument [{name}]: {text}"),
            Self::Value { name: None, text } => format!("Invalid arguments: {text}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "missing {name}"),
            Self::Value { text, .. } => f.write_str(text),
        }
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::Value { name: None, text: text.to_string() }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field.to_owned())
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format!("expected one of {}", expected.join(", ")))
    }
}

struct ArgumentsDeserializer<'x, 'a> {
    arguments: &'x Arguments<'a>,
    keep_null: &'x [&'x str],
}

impl<'de> Deserializer<'de> for ArgumentsDeserializer<'_, '_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(Entries { keep_null: self.keep_null, rest: self.arguments.iter(), value: None })
    }

    /// Operations without parameters accept, and ignore, whatever comes.
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

struct Entries<'x, 'a, I> {
    keep_null: &'x [&'x str],
    rest: I,
    value: Option<(&'x str, &'x ArgValue<'a>)>,
}

impl<'de, 'x, 'a, I: Iterator<Item = (&'x str, &'x ArgValue<'a>)>> MapAccess<'de> for Entries<'x, 'a, I> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        for (name, value) in self.rest.by_ref() {
            if value.json() == Some("null") && !self.keep_null.contains(&name) {
                continue;
            }
            self.value = Some((name, value));
            return seed.deserialize(StrDeserializer::new(name)).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let Some((name, value)) = self.value.take() else { return Err(Fault::custom("value without a name")) };
        seed.deserialize(Value(value)).map_err(|fault| fault.named(name))
    }
}

/// One argument value, converted to whatever type is asked for.
struct Value<'x, 'a>(&'x ArgValue<'a>);

impl Value<'_, '_> {
    /// The text of a scalar: a plain text, a JSON string, or the digits of a number.
    fn scalar_text(&self) -> Option<String> {
        match self.0 {
            ArgValue::Text(text) => Some(text.clone().into_owned()),
            json => {
                let text = json.json()?;
                match text.as_bytes().first()? {
                    b'"' => serde_json::from_str(text).ok(),
                    b'{' | b'[' | b'n' => None,
                    _ => Some(text.to_owned()),
                }
            }
        }
    }

    fn integer(&self) -> Result<i128, Fault> {
        let expected = || Fault::expected("an integer", self.0);
        let text = self.scalar_text().ok_or_else(expected)?;
        match text.as_str() {
            "true" if self.0.json().is_some() => return Ok(1),
            "false" if self.0.json().is_some() => return Ok(0),
            _ => {}
        }
        let plain: String = text.trim().chars().filter(|c| *c != '_').collect();
        if let Ok(number) = plain.trim_start_matches('+').parse::<i128>() {
            return Ok(number);
        }
        // Fractions are cut only when they came as JSON numbers; the text "5.5" is refused.
        match (self.0.json(), plain.parse::<f64>()) {
            (Some(json), Ok(number)) if !json.starts_with('"') && number.is_finite() && number.abs() < 1e18 => Ok(number.trunc() as i128),
            _ => Err(expected()),
        }
    }

    fn bounded<T: TryFrom<i128> + fmt::Display + Copy>(&self, low: T, high: T) -> Result<T, Fault> {
        T::try_from(self.integer()?).map_err(|_| Fault::expected(format_args!("an integer from {low} to {high}"), self.0))
    }

    /// Lets serde_json read the value. It reads from bytes, not from a str, so that nothing is borrowed: parameters are owned.
    fn delegate<T>(&self, run: impl FnOnce(&str) -> serde_json::Result<T>) -> Result<T, Fault> {
        run(&self.0.to_json()).map_err(|error| {
            // serde_json appends a position within the value, which says nothing to a caller.
            let text = error.to_string();
            Fault::custom(text.split(" at line ").next().unwrap_or(&text).to_owned())
        })
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty),*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            visitor.$visit(self.bounded(<$type>::MIN, <$type>::MAX)?)
        })*
    };
}

impl<'de> Deserializer<'de> for Value<'_, '_> {
    type Error = Fault;

    integers!(
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    );

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.delegate(|json| serde_json::Deserializer::from_reader(json.as_bytes()).deserialize_any(visitor))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.scalar_text().map(|text| text.trim().to_ascii_lowercase()).as_deref() {
            Some("true") => visitor.visit_bool(true),
            Some("false") => visitor.visit_bool(false),
            _ => Err(Fault::expected("true or false", self.0)),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.scalar_text().and_then(|text| text.trim().parse::<f64>().ok()) {
            Some(number) if number.is_finite() => visitor.visit_f64(number),
            _ => Err(Fault::expected("a number", self.0)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.scalar_text() {
            Some(text) => visitor.visit_string(text),
            None => Err(Fault::expected("a string", self.0)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.0.json() == Some("null") { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        // Raw values announce themselves by a private name that only serde_json's own deserializer understands.
        if name.starts_with("$serde_json::") {
            return self.delegate(|json| serde_json::Deserializer::from_reader(json.as_bytes()).deserialize_newtype_struct(name, visitor));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.0.json().is_some_and(|json| json.starts_with('[')) {
            return self.delegate(|json| serde_json::Deserializer::from_reader(json.as_bytes()).deserialize_seq(visitor));
        }
        let Some(text) = self.scalar_text() else { return Err(Fault::expected("a list", self.0)) };
        let items: Vec<&str> = text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
        visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(IntoDeserializer::<Fault>::into_deserializer)))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.scalar_text() {
            Some(text) => visitor.visit_enum(IntoDeserializer::<Fault>::into_deserializer(text)),
            None => self.delegate(|json| serde_json::Deserializer::from_reader(json.as_bytes()).deserialize_enum(name, variants, visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i128 u128 bytes byte_buf unit unit_struct tuple tuple_struct map struct }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::value::RawValue;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Slow,
    }

    #[derive(Debug, Deserialize)]
    struct Everything {
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        count: Option<u32>,
        #[serde(default)]
        ratio: f64,
        #[serde(default)]
        flag: bool,
        #[serde(default)]
        list: Vec<String>,
        #[serde(default)]
        mode: Option<Mode>,
        #[serde(default)]
        any: Option<Box<RawValue>>,
    }

    #[derive(Debug, Deserialize)]
    struct Required {
        #[allow(dead_code)]
        filename: String,
    }

    fn json(text: &str) -> Result<Everything, ApiError> {
        let mut arguments = Arguments::none();
        arguments.add_json_object(text).unwrap();
        decode(&arguments, &[])
    }

    fn query(text: &str) -> Result<Everything, ApiError> {
        let mut arguments = Arguments::none();
        arguments.add_pairs(text.as_bytes()).unwrap();
        decode(&arguments, &[])
    }

    fn message(result: Result<Everything, ApiError>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn text_and_json_convert_alike() {
        for value in [
            query("text=5&count=%2B1_000&ratio=1e2&flag=TRUE&list=a,%20b,,c&mode=slow&any=x").unwrap(),
            json(r#"{"text":5,"count":1000.9,"ratio":"100","flag":"True","list":["a","b","c"],"mode":"slow","any":"x"}"#).unwrap(),
        ] {
            assert_eq!(value.text.as_deref(), Some("5"));
            assert_eq!(value.count, Some(1000));
            assert!((value.ratio - 100.0).abs() < 1e-9);
            assert!(value.flag);
            assert_eq!(value.list, ["a", "b", "c"]);
            assert_eq!(value.mode, Some(Mode::Slow));
            assert_eq!(value.any.unwrap().get(), "\"x\"");
        }
    }

    #[test]
    fn null_means_not_given() {
        let value = json(r#"{"text":null,"count":null,"ratio":null,"flag":null,"list":null,"mode":null,"any":null}"#).unwrap();
        assert!(value.text.is_none() && value.count.is_none() && !value.flag && value.list.is_empty() && value.any.is_none());
    }

    #[test]
    fn null_can_be_a_value_where_declared() {
        #[derive(Deserialize)]
        struct Item {
            value: Box<RawValue>,
        }
        let mut arguments = Arguments::none();
        arguments.add_json_object(r#"{"value":null}"#).unwrap();
        assert_eq!(decode::<Item>(&arguments, &["value"]).unwrap().value.get(), "null");
        assert!(decode::<Item>(&arguments, &[]).is_err_and(|error| error.message == "No data for argument: value"));
    }

    #[test]
    fn faults_name_the_argument_and_what_was_expected() {
        assert_eq!(message(query("count=5.5")), "Unable to convert argument [count]: expected an integer, got \"5.5\"");
        assert_eq!(
            message(json(r#"{"count":-1}"#)),
            "Unable to convert argument [count]: expected an integer from 0 to 4294967295, got -1"
        );
        assert_eq!(message(json(r#"{"flag":1}"#)), "Unable to convert argument [flag]: expected true or false, got 1");
        assert_eq!(message(json(r#"{"ratio":"nan"}"#)), "Unable to convert argument [ratio]: expected a number, got \"nan\"");
        assert_eq!(message(json(r#"{"text":{"a":1}}"#)), "Unable to convert argument [text]: expected a string, got {\"a\":1}");
        assert_eq!(message(json(r#"{"mode":"odd"}"#)), "Unable to convert argument [mode]: expected one of fast, slow");
        assert!(
            message(json(r#"{"list":[1]}"#)).starts_with("Unable to convert argument [list]: invalid type: integer `1`, expected a string")
        );
        let long = message(json(&format!(r#"{{"ratio":"{}"}}"#, "x".repeat(5000))));
        assert!(long.len() < 200 && long.ends_with('…'));
        let missing = decode::<Required>(&Arguments::none(), &[]).unwrap_err();
        assert_eq!(missing.message, "No data for argument: filename");
    }

    #[test]
    fn unknown_arguments_and_deep_values_are_harmless() {
        assert!(json(r#"{"max":5}"#).is_ok());
        let deep = format!(r#"{{"any":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        let _ = json(&deep);
        let deep = format!(r#"{{"list":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        assert!(json(&deep).is_err());
    }

    #[test]
    fn operations_without_parameters_take_anything() {
        let mut arguments = Arguments::none();
        arguments.add_pairs(b"x=1").unwrap();
        decode::<()>(&arguments, &[]).unwrap();
    }
}
