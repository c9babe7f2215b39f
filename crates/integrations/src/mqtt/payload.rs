//! JSON values as payloads and back (wire/1-core.md section 3.8).

use bytes::Bytes;
use serde_json::Value;

/// Objects and arrays as JSON, texts as they are, null as nothing, the rest as JSON writes it.
#[must_use]
pub fn encode(value: &Value) -> Bytes {
    match value {
        Value::Null => Bytes::new(),
        Value::String(text) => text.clone().into(),
        other => other.to_string().into(),
    }
}

/// What the payload says as JSON, else its text.
pub(super) fn decode(payload: &[u8]) -> Value {
    serde_json::from_slice(payload).unwrap_or_else(|_| String::from_utf8_lossy(payload).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_become_the_text_that_devices_expect() {
        for (value, text) in
            [(json!(null), ""), (json!(true), "true"), (json!(1.5), "1.5"), (json!("ON"), "ON"), (json!({"a": [1]}), r#"{"a":[1]}"#)]
        {
            assert_eq!(encode(&value), text);
        }
    }

    #[test]
    fn what_is_no_json_is_a_text() {
        assert_eq!(decode(b"{\"a\":1}"), json!({"a": 1}));
        assert_eq!(decode(b"21.5"), json!(21.5));
        assert_eq!(decode(b"ON"), json!("ON"));
        assert_eq!(decode(b"\xff"), json!("\u{fffd}"));
    }
}
