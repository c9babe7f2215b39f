//! Reading one frame: an answer to a request of ours, or a call by the host. Borrows; nothing is decoded that is not needed.
//!
//! Tolerates what a real host sends: the barewords of Python's JSON writer (`NaN`, `Infinity`), and unpaired surrogates in texts
//! (file names that are no UTF-8). Source: wire/5-fwhost.md section 1.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A message of the host.
#[derive(Debug)]
pub enum Message<'a> {
    /// An answer. The id is `None` when it is not one that we could have given.
    Answer {
        /// Which request.
        id: Option<u64>,
        /// Result or the host's error text.
        outcome: Result<&'a RawValue, Cow<'a, str>>,
    },
    /// A call of one of our templates.
    Call {
        /// The template's method.
        method: Cow<'a, str>,
        /// What it is about.
        params: Option<&'a RawValue>,
    },
    /// Parameters and nothing else: a batch of a streaming request that was made without a template (wire/5-fwhost.md sections 5.1 and 8).
    Batch,
}

/// A frame that is no message: the other side is not what we think, or out of step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rubbish {
    /// Not JSON.
    #[error("a message that is not JSON")]
    NotJson,
    /// JSON, but neither an answer nor a call.
    #[error("a message that is neither an answer nor a call")]
    NotAMessage,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps the difference between an absent member and one that is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a frame.
///
/// # Errors
/// When it is no message; see [`without_barewords`] for the one thing to try then.
pub fn parse(frame: &[u8]) -> Result<Message<'_>, Rubbish> {
    let envelope: Envelope<'_> = match serde_json::from_slice(frame) {
        Ok(envelope) => envelope,
        Err(error) if error.is_data() => return Err(Rubbish::NotAMessage),
        Err(_) => return Err(Rubbish::NotJson),
    };
    match envelope {
        Envelope { result: Some(result), id, .. } => Ok(Message::Answer { id: number(id), outcome: Ok(result) }),
        Envelope { error: Some(error), id, .. } => Ok(Message::Answer { id: number(id), outcome: Err(error_text(error)) }),
        Envelope { method: Some(method), params, .. } => match text(method) {
            Some(method) => Ok(Message::Call { method, params }),
            None => Err(Rubbish::NotAMessage),
        },
        Envelope { id: None, params: Some(_), .. } => Ok(Message::Batch),
        _ => Err(Rubbish::NotAMessage),
    }
}

fn number(id: Option<&RawValue>) -> Option<u64> {
    id?.get().parse().ok()
}

/// `{"error":"WebRequestError","message":TEXT}`; anything else is shown as it is.
fn error_text(error: &RawValue) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct HostError<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
    }
    serde_json::from_str::<HostError<'_>>(error.get()).ok().and_then(|error| text(error.message)).unwrap_or(Cow::Borrowed(error.get()))
}

/// The text of a JSON string; borrows when it has no escapes. Unpaired surrogates become the replacement character.
#[must_use]
pub fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    decode(raw.get())
}

/// [`text`] of a value that is kept as JSON text.
#[must_use]
pub fn decode(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().or_else(|| serde_json::from_str(&without_lone_surrogates(json)).ok()).map(Cow::Owned)
}

/// Replaces every `\uD800`…`\uDFFF` escape that has no partner.
fn without_lone_surrogates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at..];
        let length = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(_), _) => {
                out.push_str(&rest[..at]);
                out.push('\u{FFFD}');
                rest = &escape[6..];
                continue;
            }
            (None, _) => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..at + length]);
        rest = &escape[length..];
    }
    out.push_str(rest);
    out
}

/// The surrogate that `escape` starts with (`\udXXX`), if it does.
fn surrogate(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok().filter(|unit| (0xD800..=0xDFFF).contains(unit))
}

/// The frame with `NaN`, `Infinity` and `-Infinity` outside of strings replaced by `null`; nothing when it has none.
#[must_use]
pub fn without_barewords(frame: &[u8]) -> Option<Vec<u8>> {
    const WORDS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
    let mut out = Vec::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(&byte) = frame.get(at) {
        if byte == b'"' {
            at = end_of_string(frame, at);
        } else if let Some(word) = WORDS.iter().find(|word| frame[at..].starts_with(word)) {
            out.extend_from_slice(&frame[copied..at]);
            out.extend_from_slice(b"null");
            at += word.len();
            copied = at;
        } else {
            at += 1;
        }
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&frame[copied..]);
    Some(out)
}

/// The index behind the string that starts at `start`.
fn end_of_string(frame: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(distance) = frame.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += distance;
        if frame[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    frame.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_and_calls() {
        let answer = parse(br#" {"id": 7, "result": {"a": 1.50}} "#).unwrap();
        assert!(matches!(&answer, Message::Answer { id: Some(7), outcome: Ok(raw) } if raw.get() == r#"{"a": 1.50}"#));
        let answer = parse(br#"{"id":7,"error":{"error":"WebRequestError","message":"Must home\n"}}"#).unwrap();
        assert!(matches!(&answer, Message::Answer { id: Some(7), outcome: Err(text) } if text == "Must home\n"));
        let answer = parse(br#"{"id":7,"error":[1]}"#).unwrap();
        assert!(matches!(&answer, Message::Answer { outcome: Err(text), .. } if text == "[1]"));
        let answer = parse(br#"{"id":7,"result":null}"#).unwrap();
        assert!(matches!(&answer, Message::Answer { outcome: Ok(raw), .. } if raw.get() == "null"));
        let call = parse(br#"{"params":{"response":"hi"},"method":"m"}"#).unwrap();
        assert!(matches!(&call, Message::Call { method, params: Some(_) } if method == "m"));
    }

    #[test]
    fn ids_that_are_not_ours() {
        for id in ["\"7\"", "-1", "1.5", "null", "[7]"] {
            let text = format!(r#"{{"id":{id},"result":{{}}}}"#);
            assert!(matches!(parse(text.as_bytes()).unwrap(), Message::Answer { id: None, .. }), "{id}");
        }
        assert!(matches!(parse(br#"{"result":{}}"#).unwrap(), Message::Answer { id: None, .. }));
    }

    #[test]
    fn rubbish_has_a_kind() {
        for text in ["", "nonsense", "{\"id\":1,", "\u{0}"] {
            assert_eq!(parse(text.as_bytes()).unwrap_err(), Rubbish::NotJson, "{text}");
        }
        for text in ["[]", "3", "{}", "{\"id\":1}", r#"{"method":5}"#, "null"] {
            assert_eq!(parse(text.as_bytes()).unwrap_err(), Rubbish::NotAMessage, "{text}");
        }
        assert!(parse(b"{\"id\":1,\"result\":\"\xff\"}").is_err());
    }

    #[test]
    fn barewords_become_null_outside_of_strings() {
        let frame = br#"{"a":NaN,"b":[-Infinity,Infinity],"s":"NaN \" Infinity\\","t":1}"#;
        let repaired = without_barewords(frame).unwrap();
        assert_eq!(String::from_utf8(repaired).unwrap(), r#"{"a":null,"b":[null,null],"s":"NaN \" Infinity\\","t":1}"#);
        assert_eq!(without_barewords(br#"{"s":"NaN"}"#), None);
        assert_eq!(without_barewords(br#"{"s":"unterminated NaN\"#), None);
    }

    #[test]
    fn texts_with_half_characters_are_read() {
        let read = |json: &str| text(&RawValue::from_string(json.into()).unwrap()).map(Cow::into_owned);
        assert_eq!(read(r#""plain""#).as_deref(), Some("plain"));
        assert_eq!(read(r#""a\n\u00e4 \ud83d\ude00""#).as_deref(), Some("a\nä 😀"));
        assert_eq!(read(r#""b\udcff.gcode \\ud800 \ud83d\ude00 \ud800""#).as_deref(), Some("b\u{FFFD}.gcode \\ud800 😀 \u{FFFD}"));
        assert_eq!(read("5"), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(0u8..=255, 0..200)) {
            let _ = parse(&bytes);
            if let Some(repaired) = without_barewords(&bytes) {
                let _ = parse(&repaired);
            }
        }

        #[test]
        fn any_text_is_read_back(original in "\\PC*", cut in "[\\\\ud8c0-9\"a-f]{0,30}") {
            let json = serde_json::to_string(&original).unwrap();
            let raw = RawValue::from_string(json).unwrap();
            prop_assert_eq!(text(&raw).unwrap(), original);
            let _ = without_lone_surrogates(&cut);
        }
    }
}
