//! The secrets file: values that configurations name but never show.

use std::fmt;

use serde_json::{Map, Value};

use crate::document::Document;
use crate::limits::MAX_FILE_SIZE;
use crate::problem::{Place, Problem};
use crate::syntax::{FileId, parse};

/// The content of a secrets file: a JSON object, or sections and options. `Debug` shows no values.
#[derive(Clone, Default, PartialEq)]
pub struct Secrets {
    root: Map<String, Value>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} entries hidden)", self.root.len())
    }
}

/// A placeholder without a counterpart in the secrets file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a secret for `{{secrets.{0}}}` in the secrets file")]
pub struct UnknownSecret(pub String);

impl Secrets {
    /// Reads a secrets file (wire/1-core.md section 7.3). Problems carry `file_name` and the line but no text of the file.
    #[must_use]
    pub fn parse(file_name: &str, bytes: &[u8]) -> (Self, Vec<Problem>) {
        let whole_file = |message: String| {
            let place = Place { file: file_name.to_owned(), line: None };
            (Self::default(), vec![Problem { place, section: None, option: None, message }])
        };
        if bytes.len() > MAX_FILE_SIZE {
            return whole_file(format!("expected at most {MAX_FILE_SIZE} bytes"));
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return whole_file("expected UTF-8 text".to_owned());
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with('{') { Self::parse_json(file_name, text) } else { Self::parse_sections(file_name, text) }
    }

    fn parse_json(file_name: &str, text: &str) -> (Self, Vec<Problem>) {
        match serde_json::from_str(text) {
            Ok(root) => (Self { root }, Vec::new()),
            Err(error) => {
                let place = Place { file: file_name.to_owned(), line: u32::try_from(error.line()).ok() };
                let message = "expected a JSON object, or sections with options".to_owned();
                (Self::default(), vec![Problem { place, section: None, option: None, message }])
            }
        }
    }

    fn parse_sections(file_name: &str, text: &str) -> (Self, Vec<Problem>) {
        let parsed = parse(FileId::default(), text);
        let problems = parsed.errors.into_iter().map(|error| Problem {
            place: Place { file: file_name.to_owned(), line: Some(error.span.line) },
            section: error.section,
            option: error.option,
            message: error.message,
        });
        let problems = problems.collect();
        let mut document = Document::default();
        for item in parsed.items {
            if let crate::syntax::Item::Section(section) = item {
                document.merge(section);
            }
        }
        let sections = document.orig().into_iter().filter(|(name, options)| document.section(name).is_some() || !options.is_empty());
        let root = sections
            .map(|(name, options)| {
                let options = options.into_iter().map(|(name, value)| (name, Value::String(value)));
                (name, Value::Object(options.collect()))
            })
            .collect();
        (Self { root }, problems)
    }

    /// All secrets, for templates.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.root
    }

    /// The secret at a dotted path such as `mqtt.password`, as text; `None` when missing or not a scalar.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<String> {
        let mut parts = path.split('.');
        let mut value = self.root.get(parts.next()?)?;
        for part in parts {
            value = value.get(part)?;
        }
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Replaces each plain `{secrets.section.option}`; other braces stay as they are.
    ///
    /// # Errors
    /// The first placeholder that names no secret.
    pub fn substitute(&self, text: &str) -> Result<String, UnknownSecret> {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            result.push_str(&rest[..start]);
            rest = &rest[start..];
            if let Some((path, length)) = placeholder(rest) {
                result.push_str(&self.get(path).ok_or_else(|| UnknownSecret(path.to_owned()))?);
                rest = &rest[length..];
            } else {
                result.push('{');
                rest = &rest[1..];
            }
        }
        result.push_str(rest);
        Ok(result)
    }
}

/// The path and the length of a placeholder at the start of `text`.
fn placeholder(text: &str) -> Option<(&str, usize)> {
    let (inside, _) = text[1..].split_at_checked(text[1..].find(['{', '}'])?)?;
    let end = 1 + inside.len();
    if !text[end..].starts_with('}') {
        return None;
    }
    let path = inside.trim().strip_prefix("secrets.")?;
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    path.split('.').all(is_name).then_some((path, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"mqtt": {"password": "hun\"ter2", "port": 1883, "deep": {"er": true}}, "top": "level"}"#;

    fn secrets(text: &str) -> Secrets {
        let (secrets, problems) = Secrets::parse("core.secrets", text.as_bytes());
        assert_eq!(problems, []);
        secrets
    }

    fn problems(bytes: &[u8]) -> Vec<String> {
        let (secrets, problems) = Secrets::parse("core.secrets", bytes);
        assert_eq!(secrets, Secrets::default());
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn reads_json_at_any_depth() {
        let secrets = secrets(JSON);
        assert_eq!(secrets.get("mqtt.password").unwrap(), "hun\"ter2");
        assert_eq!(secrets.get("mqtt.port").unwrap(), "1883");
        assert_eq!(secrets.get("mqtt.deep.er").unwrap(), "true");
        assert_eq!(secrets.get("top").unwrap(), "level");
        for missing in ["mqtt", "mqtt.nothing", "top.level", ""] {
            assert_eq!(secrets.get(missing), None);
        }
    }

    #[test]
    fn reads_sections_as_strings() {
        let secrets = secrets("[mqtt]\npassword: a # comment\nport = 1\n");
        assert_eq!(secrets.get("mqtt.password").unwrap(), "a");
        assert_eq!(secrets.as_map()["mqtt"]["port"], "1");
        assert!(!secrets.as_map().contains_key("DEFAULT"));
    }

    #[test]
    fn debug_hides_everything() {
        let text = format!("{:?}", secrets(JSON));
        assert!(!text.contains("hun") && !text.contains("level"), "{text}");
    }

    #[test]
    fn substitutes_plain_placeholders_only() {
        let secrets = secrets(JSON);
        let render = |text: &str| secrets.substitute(text);
        assert_eq!(render("x{secrets.mqtt.port}y{ secrets.top }").unwrap(), "x1883ylevel");
        for text in ["{event_name}", "{% if secrets.top %}", "{secrets.top|upper}", "{secrets}", "{{", "a}b{", ""] {
            assert_eq!(render(text).unwrap(), text);
        }
        assert_eq!(render("{{secrets.top}}").unwrap(), "{level}");
        assert_eq!(render("{secrets.mqtt.user}").unwrap_err(), UnknownSecret("mqtt.user".into()));
    }

    #[test]
    fn a_secret_is_not_substituted_again() {
        let secrets = secrets(r#"{"a": "{secrets.b}", "b": "x"}"#);
        assert_eq!(secrets.substitute("{secrets.a}").unwrap(), "{secrets.b}");
    }

    #[test]
    fn faulty_files_are_reported_without_their_text() {
        assert_eq!(problems(b"{\n\"a\": hunter2\n}"), ["core.secrets:2: expected a JSON object, or sections with options"]);
        assert_eq!(problems(b"\xff"), ["core.secrets: expected UTF-8 text"]);
        assert_eq!(problems(b"hunter2").len(), 1);
        assert!(!problems(b"hunter2")[0].contains("hunter2"));
        assert_eq!(problems(&vec![b'a'; MAX_FILE_SIZE + 1]).len(), 1);
    }
}
