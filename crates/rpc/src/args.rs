//! Arguments of a call, merged from wherever the transport found them.
//!
//! An argument is either JSON (parameters of JSON-RPC, JSON bodies, hinted query values) or plain text (query strings, form bodies); text is
//! converted by the type that the operation declares ([`crate::decode()`]). Source: document 1 *HTTP conventions*, wire/1-core.md section 3.1.

use std::borrow::Cow;

use protocol::envelope::write_string;
use protocol::raw::RawMembers;
use protocol::status::Selection;
use protocol::{ApiError, ErrorKind};
use serde_json::value::RawValue;

/// Arguments in one request; more is refused.
pub const MAX_ARGUMENTS: usize = 1024;

/// HTTP arguments that belong to the transport and never reach an operation.
const TRANSPORT_ARGUMENTS: &[&str] = &["_", "token", "access_token", "connection_id"];

/// One argument value.
#[derive(Debug, Clone)]
pub enum ArgValue<'a> {
    /// Plain text, to be converted to the declared type.
    Text(Cow<'a, str>),
    /// JSON text borrowed from the request.
    Json(&'a RawValue),
    /// JSON text made from a type hint.
    Hinted(Box<RawValue>),
}

impl ArgValue<'_> {
    /// The JSON text, when it is JSON.
    #[must_use]
    pub fn json(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::Json(raw) => Some(raw.get()),
            Self::Hinted(raw) => Some(raw.get()),
        }
    }

    /// The JSON form; text becomes a JSON string.
    #[must_use]
    pub fn to_json(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Owned(serde_json::Value::String(text.clone().into_owned()).to_string()),
            Self::Json(raw) => Cow::Borrowed(raw.get()),
            Self::Hinted(raw) => Cow::Borrowed(raw.get()),
        }
    }
}

/// The merged arguments of a call. When a name was given several times, the last one counts.
#[derive(Debug, Clone, Default)]
pub struct Arguments<'a> {
    entries: Vec<(Cow<'a, str>, ArgValue<'a>)>,
}

impl<'a> Arguments<'a> {
    /// No arguments.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The parameters of a JSON-RPC request.
    ///
    /// # Errors
    /// When they are not an object.
    pub fn from_json(params: Option<&'a RawValue>) -> Result<Self, ApiError> {
        let mut arguments = Self::none();
        if let Some(params) = params {
            arguments.add_json_object(params.get())?;
        }
        Ok(arguments)
    }

    /// Adds the members of a JSON object; they win over what is there.
    ///
    /// # Errors
    /// When `text` is not a JSON object, or has too many members.
    pub fn add_json_object(&mut self, text: &'a str) -> Result<(), ApiError> {
        let members: RawMembers<'a> = serde_json::from_str(text)
            .map_err(|error| ApiError::argument(format!("Unable to read the arguments: expected a JSON object ({error})")))?;
        for (name, value) in members.0 {
            self.add(name, ArgValue::Json(value))?;
        }
        Ok(())
    }

    /// Adds the pairs of a query string or of a form body, with type hints (`key:int=5`); they win over what is there.
    ///
    /// # Errors
    /// When there are too many.
    pub fn add_pairs(&mut self, encoded: &'a [u8]) -> Result<(), ApiError> {
        for (key, value) in form_urlencoded::parse(encoded) {
            self.add_pair(key, value)?;
        }
        Ok(())
    }

    /// Adds one pair of a form, with its type hint; it wins over what is there.
    ///
    /// # Errors
    /// When there are too many.
    pub fn add_pair(&mut self, key: Cow<'a, str>, value: Cow<'a, str>) -> Result<(), ApiError> {
        if TRANSPORT_ARGUMENTS.contains(&key.as_ref()) {
            return Ok(());
        }
        let value = trimmed(value);
        if let Some((name, hint)) = key.rsplit_once(':')
            && let Some(hinted) = hinted(hint, &value)
        {
            let name = name.to_owned();
            return self.add(Cow::Owned(name), ArgValue::Hinted(hinted));
        }
        let name = match key.rsplit_once(':') {
            // A hint whose conversion fails passes the plain string under the bare name.
            Some((name, "int" | "float" | "bool" | "json")) => Cow::Owned(name.to_owned()),
            _ => key,
        };
        self.add(name, ArgValue::Text(value))
    }

    /// Sets `objects` from a query string in which every key is a printer object (`?toolhead&extruder=target,temperature`).
    ///
    /// # Errors
    /// Never for the text itself; when there are too many arguments.
    pub fn add_printer_objects(&mut self, query: &[u8]) -> Result<(), ApiError> {
        let mut selection = Selection::default();
        for (name, fields) in form_urlencoded::parse(query) {
            if !TRANSPORT_ARGUMENTS.contains(&name.as_ref()) {
                selection.add_query_pair(name.trim(), fields.trim());
            }
        }
        if selection.is_empty() {
            return Ok(());
        }
        let json = RawValue::from_string(selection.to_json()).map_err(|_| ApiError::internal("objects could not be encoded"))?;
        self.add(Cow::Borrowed("objects"), ArgValue::Hinted(json))
    }

    /// Adds one argument; it wins over what is there.
    ///
    /// # Errors
    /// When there are too many.
    pub fn add(&mut self, name: Cow<'a, str>, value: ArgValue<'a>) -> Result<(), ApiError> {
        if let Some(slot) = self.entries.iter_mut().find(|(known, _)| *known == name) {
            slot.1 = value;
            return Ok(());
        }
        if self.entries.len() >= MAX_ARGUMENTS {
            return Err(ApiError::new(ErrorKind::Argument, format!("More than {MAX_ARGUMENTS} arguments")));
        }
        self.entries.push((name, value));
        Ok(())
    }

    /// The value of an argument.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ArgValue<'a>> {
        self.entries.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// All arguments in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ArgValue<'a>)> {
        self.entries.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// The arguments as JSON object text, for operations that pass everything on.
    #[must_use]
    pub fn to_json_object(&self) -> Box<RawValue> {
        let mut out = vec![b'{'];
        for (index, (name, value)) in self.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_string(&mut out, name);
            out.push(b':');
            out.extend_from_slice(value.to_json().as_bytes());
        }
        out.push(b'}');
        String::from_utf8(out).ok().and_then(|text| RawValue::from_string(text).ok()).unwrap_or_else(|| RawValue::NULL.to_owned())
    }
}

fn trimmed(value: Cow<'_, str>) -> Cow<'_, str> {
    match value {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

/// The JSON value of a hinted text, or `None` when the hint is unknown or does not fit.
fn hinted(hint: &str, value: &str) -> Option<Box<RawValue>> {
    let json = match hint {
        "int" => value.parse::<i64>().ok()?.to_string(),
        "float" => serde_json::Number::from_f64(value.parse().ok()?)?.to_string(),
        "bool" => value.eq_ignore_ascii_case("true").to_string(),
        "json" => value.to_owned(),
        _ => return None,
    };
    RawValue::from_string(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(arguments: &Arguments<'_>) -> String {
        arguments.to_json_object().get().to_owned()
    }

    #[test]
    fn body_wins_over_query() {
        let mut arguments = Arguments::none();
        arguments.add_pairs(b"count=5&name=a%20b&_=1&token=x").unwrap();
        arguments.add_json_object(r#"{"count": 7, "deep": {"a":[1]}}"#).unwrap();
        assert_eq!(json(&arguments), r#"{"count":7,"name":"a b","deep":{"a":[1]}}"#);
    }

    #[test]
    fn hints_convert_and_fall_back_to_text() {
        let mut arguments = Arguments::none();
        arguments.add_pairs(b"a:int=5&b:bool=TRUE&c:float=1.5&d:json=%5B%22x%22%5D&e:int=no&f:odd=1&g:bool=1&h=+x+").unwrap();
        assert_eq!(json(&arguments), r#"{"a":5,"b":true,"c":1.5,"d":["x"],"e":"no","f:odd":"1","g":false,"h":"x"}"#);
    }

    #[test]
    fn objects_from_a_query_string() {
        let mut arguments = Arguments::none();
        arguments.add_printer_objects(b"toolhead&extruder=target,temperature&gcode_macro%20X=").unwrap();
        assert_eq!(json(&arguments), r#"{"objects":{"extruder":["target","temperature"],"gcode_macro X":null,"toolhead":null}}"#);
    }

    #[test]
    fn bad_bodies_are_named() {
        assert!(Arguments::none().add_json_object("[1]").is_err());
        assert!(Arguments::none().add_json_object("{\"a\":").is_err());
    }

    #[test]
    fn the_number_of_arguments_is_bounded() {
        let query = (0..MAX_ARGUMENTS + 1).map(|index| format!("k{index}=1")).collect::<Vec<_>>().join("&");
        assert!(Arguments::none().add_pairs(query.as_bytes()).is_err());
    }
}
