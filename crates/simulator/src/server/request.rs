//! Requests: what counts as one, and reading its arguments with the real host's error texts (wire document 5, sections 1.1 and 1.2).

use serde_json::{Map, Value, json};

/// A well-formed request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    /// Echoed in the answer; without one there is no answer.
    pub(crate) id: Option<Value>,
    /// Endpoint name.
    pub(crate) method: String,
    /// Arguments.
    pub(crate) params: Map<String, Value>,
}

impl Request {
    /// Reads a frame. `None` for everything that the real host drops without an answer.
    pub(crate) fn parse(frame: &[u8]) -> Option<Self> {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(frame) else { return None };
        let Some(Value::String(method)) = message.remove("method") else { return None };
        let params = match message.remove("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return None,
        };
        Some(Self { id: message.remove("id").filter(|id| !id.is_null()), method, params })
    }

    /// A text that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<&str, String> {
        self.required(name)?.as_str().ok_or_else(|| wrong_type(name))
    }

    /// An object that must be there.
    pub(crate) fn object(&self, name: &str) -> Result<&Map<String, Value>, String> {
        self.required(name)?.as_object().ok_or_else(|| wrong_type(name))
    }

    /// An object, empty if missing.
    pub(crate) fn optional_object(&self, name: &str) -> Result<Map<String, Value>, String> {
        match self.params.get(name) {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object.clone()),
            Some(_) => Err(wrong_type(name)),
        }
    }

    fn required(&self, name: &str) -> Result<&Value, String> {
        self.params.get(name).ok_or_else(|| format!("Missing Argument [{name}]"))
    }
}

fn wrong_type(name: &str) -> String {
    format!("Invalid Argument Type [{name}]")
}

/// The answer to a request.
pub(crate) fn answer(id: &Value, result: Result<Value, String>) -> Value {
    match result {
        Ok(result) => json!({ "id": id, "result": result }),
        Err(message) => json!({ "id": id, "error": { "error": "WebRequestError", "message": message } }),
    }
}

/// An asynchronous message: the client's template with parameters.
pub(crate) fn push(template: &Map<String, Value>, params: Value) -> Value {
    let mut message = template.clone();
    message.insert("params".to_owned(), params);
    Value::Object(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_requests_are_nothing() {
        let bad: [&[u8]; 10] = [
            b"",
            b" \n",
            b"not json",
            b"[1]",
            b"5",
            b"{\"id\":5}",
            b"{\"id\":6,\"method\":7}",
            b"{\"id\":7,\"method\":\"info\",\"params\":[]}",
            b"{\"id\":8,\"method\":\"info\",\"params\":null}",
            b"{\"id\":8,\"method\":\"\xff\"}",
        ];
        for frame in bad {
            assert_eq!(Request::parse(frame), None, "{frame:?}");
        }
    }

    #[test]
    fn ids_of_every_kind() {
        let id = |text: &str| Request::parse(text.as_bytes()).unwrap().id;
        assert_eq!(id(r#"{"id":{"a":[1]},"method":"x"}"#), Some(json!({"a": [1]})));
        assert_eq!(id(r#"{"id":26,"method":"x","id":27,"jsonrpc":"2.0"}"#), Some(json!(27)));
        assert_eq!(id("\n{\"id\":null,\"method\":\"x\"} "), None);
    }

    #[test]
    fn arguments() {
        let request = Request::parse(br#"{"method":"x","params":{"script":5,"objects":{}}}"#).unwrap();
        assert_eq!(request.text("script"), Err("Invalid Argument Type [script]".to_owned()));
        assert_eq!(request.text("other"), Err("Missing Argument [other]".to_owned()));
        assert!(request.object("objects").unwrap().is_empty());
        assert_eq!(request.optional_object("script"), Err("Invalid Argument Type [script]".to_owned()));
    }
}
