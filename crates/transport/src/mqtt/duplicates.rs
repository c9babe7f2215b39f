//! Requests that come twice: brokers repeat messages with QoS 1, so clients mark theirs with `mqtt_timestamp` (document 1, MQTT rule).

use std::collections::VecDeque;

use bytes::Bytes;
use protocol::Frame;
use serde_json::{Value, json};

/// Marks that are remembered.
const REMEMBERED: usize = 20;

/// Bytes of a mark; longer ones are cut.
const MAX_MARK: usize = 64;

/// The member of `params` that marks a request.
const MARK: &str = "mqtt_timestamp";

/// Error code of a repeated request, as existing clients know it.
const DUPLICATE: i32 = -10000;

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// It is new; without its mark.
    New(Bytes),
    /// It came before; the answer, unless it was a request without id.
    Repeated(Option<Frame>),
}

/// The marks seen last.
#[derive(Debug, Default)]
pub(super) struct Duplicates(VecDeque<String>);

impl Duplicates {
    /// Looks at a request. One that cannot be read is new: whoever carries it out says what is wrong. A batch with a repeated member is refused
    /// as a whole.
    pub(super) fn check(&mut self, payload: Bytes) -> Checked {
        // Most requests have no mark; they are not even read.
        if memchr::memmem::find(&payload, MARK.as_bytes()).is_none() {
            return Checked::New(payload);
        }
        let Ok(mut document) = serde_json::from_slice::<Value>(&payload) else { return Checked::New(payload) };
        let members: &mut [Value] = match &mut document {
            Value::Array(members) => members,
            single => std::slice::from_mut(single),
        };
        let mut marks: Vec<String> = Vec::new();
        for member in members {
            let params = member.get_mut("params").and_then(Value::as_object_mut);
            let Some(mark) = params.and_then(|params| params.remove(MARK)) else { continue };
            let mut mark = mark.to_string();
            mark.truncate(mark.floor_char_boundary(MAX_MARK));
            if self.0.contains(&mark) || marks.contains(&mark) {
                return Checked::Repeated(answer(member.get("id")));
            }
            marks.push(mark);
        }
        self.0.extend(marks);
        let surplus = self.0.len().saturating_sub(REMEMBERED);
        self.0.drain(..surplus);
        Checked::New(document.to_string().into())
    }
}

fn answer(id: Option<&Value>) -> Option<Frame> {
    let error = json!({"code": DUPLICATE, "message": "Duplicate MQTT Request"});
    Some(json!({"jsonrpc": "2.0", "error": error, "id": id?}).to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(mark: u64) -> Bytes {
        json!({"jsonrpc": "2.0", "method": "m", "params": {"a": 1, MARK: mark}, "id": 5}).to_string().into()
    }

    fn is_new(duplicates: &mut Duplicates, mark: u64) -> bool {
        matches!(duplicates.check(request(mark)), Checked::New(_))
    }

    #[test]
    fn a_repeated_mark_is_answered_with_an_error_and_a_new_one_is_taken_out() {
        let mut duplicates = Duplicates::default();
        let Checked::New(payload) = duplicates.check(request(7)) else { panic!() };
        assert_eq!(serde_json::from_slice::<Value>(&payload).unwrap()["params"], json!({"a": 1}));
        let Checked::Repeated(Some(answer)) = duplicates.check(request(7)) else { panic!() };
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!((answer["error"]["code"].as_i64(), answer["id"].as_i64()), (Some(-10000), Some(5)));
        let silent = Bytes::from_static(br#"{"method":"m","params":{"mqtt_timestamp":7}}"#);
        assert_eq!(duplicates.check(silent), Checked::Repeated(None));
    }

    #[test]
    fn the_last_twenty_are_remembered() {
        let mut duplicates = Duplicates::default();
        assert!((0..20).all(|mark| is_new(&mut duplicates, mark)));
        assert!((0..20).all(|mark| !is_new(&mut duplicates, mark)));
        assert!(is_new(&mut duplicates, 20));
        assert!(is_new(&mut duplicates, 0) && !is_new(&mut duplicates, 2));
    }

    #[test]
    fn batches_are_looked_into_and_other_texts_pass_as_they_are() {
        let mut duplicates = Duplicates::default();
        let batch = Bytes::from(format!("[{0},{0}]", String::from_utf8_lossy(&request(1))));
        assert!(matches!(duplicates.check(batch), Checked::Repeated(Some(_))));
        for text in ["mqtt_timestamp", r#"{"params":["mqtt_timestamp"]}"#, r#"{"method":"x", "id":1.0}"#] {
            let Checked::New(payload) = duplicates.check(Bytes::from_static(text.as_bytes())) else { panic!() };
            assert!(!payload.is_empty());
        }
        let unmarked = Bytes::from_static(br#"{"id":1.0}"#);
        assert_eq!(duplicates.check(unmarked.clone()), Checked::New(unmarked));
    }

    proptest! {
        #[test]
        fn no_payload_breaks_it(text in ".*mqtt_timestamp.*", marks in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut duplicates = Duplicates::default();
            let _ = duplicates.check(text.into());
            marks.iter().for_each(|mark| drop(duplicates.check(request(*mark))));
            prop_assert!(duplicates.0.len() <= REMEMBERED);
        }
    }
}
