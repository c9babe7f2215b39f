//! The printer's status as topics: one for all of it, or one per field.

use std::collections::BTreeMap;

use bytes::Bytes;
use outbound::mqtt::{Mqtt, Qos};
use protocol::Form;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::MqttSettings;

/// Values by object and field, as JSON text.
type Values = BTreeMap<String, BTreeMap<String, Box<RawValue>>>;

/// What is to be published next, and how.
#[derive(Debug)]
pub(super) struct StatusTopics {
    /// `instance/klipper` or `instance/firmware`.
    prefix: String,
    qos: Qos,
    split: bool,
    pending: Values,
    eventtime: f64,
}

#[derive(Deserialize)]
struct Update {
    params: (Values, f64),
}

#[derive(Deserialize)]
struct Answer {
    result: Full,
}

#[derive(Deserialize)]
struct Full {
    eventtime: f64,
    status: Values,
}

impl StatusTopics {
    pub(super) fn new(settings: &MqttSettings) -> Self {
        let printer = match settings.form {
            Form::Neutral => "firmware",
            Form::Upstream => "klipper",
        };
        Self {
            prefix: format!("{}/{printer}", settings.instance),
            qos: settings.status_qos,
            split: settings.split_status,
            pending: Values::new(),
            eventtime: 0.0,
        }
    }

    /// Takes a `notify_status_update`; the newest value of each field counts.
    pub(super) fn add_update(&mut self, frame: &[u8]) {
        if let Ok(Update { params: (values, eventtime) }) = serde_json::from_slice(frame) {
            self.merge(values, eventtime);
        }
    }

    /// Takes the answer to a subscription; false when it is an error.
    pub(super) fn add_answer(&mut self, frame: &[u8]) -> bool {
        let Ok(Answer { result }) = serde_json::from_slice(frame) else { return false };
        self.merge(result.status, result.eventtime);
        true
    }

    /// True when there is something to publish.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Publishes what is pending. Nothing is kept while there is no broker: whoever comes back gets the status in full.
    pub(super) fn flush(&mut self, client: &Mqtt) {
        for (topic, payload) in self.messages() {
            if let Err(error) = client.send(&topic, payload, self.qos, self.split) {
                tracing::debug!(%error, topic, "status could not be published");
            }
        }
    }

    fn messages(&mut self) -> Vec<(String, Bytes)> {
        let (pending, eventtime, prefix) = (std::mem::take(&mut self.pending), self.eventtime, &self.prefix);
        if pending.is_empty() {
            return Vec::new();
        }
        if !self.split {
            let status = serde_json::to_string(&pending).unwrap_or_default();
            return vec![(format!("{prefix}/status"), format!(r#"{{"eventtime":{eventtime},"status":{status}}}"#).into())];
        }
        let fields = pending.iter().flat_map(|(object, fields)| fields.iter().map(move |(field, value)| (object, field, value.as_ref())));
        let message = |(object, field, value): (&String, &String, &RawValue)| {
            let topic = format!("{prefix}/state/{}/{}", level(object), level(field));
            (topic, format!(r#"{{"eventtime":{eventtime},"value":{value}}}"#).into())
        };
        fields.map(message).collect()
    }

    fn merge(&mut self, values: Values, eventtime: f64) {
        for (object, fields) in values {
            self.pending.entry(object).or_default().extend(fields);
        }
        self.eventtime = eventtime;
    }
}

/// A name as one level of a topic: what has a meaning in topics is replaced.
fn level(name: &str) -> String {
    name.replace(['+', '#', '/'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(split: bool) -> StatusTopics {
        StatusTopics { prefix: "p/klipper".into(), qos: Qos::AtMostOnce, split, pending: Values::new(), eventtime: 0.0 }
    }

    fn update(status: &str, eventtime: f64) -> Vec<u8> {
        format!(r#"{{"jsonrpc":"2.0","method":"notify_status_update","params":[{status},{eventtime}]}}"#).into_bytes()
    }

    #[test]
    fn updates_merge_until_they_are_published() {
        let mut topics = topics(false);
        assert!(topics.add_answer(br#"{"jsonrpc":"2.0","result":{"eventtime":1.5,"status":{"fan":{"speed":0.10,"rpm":null}}},"id":0}"#));
        topics.add_update(&update(r#"{"fan":{"speed":0.20},"toolhead":{"position":[1,2.50]}}"#, 2.25));
        let expected = r#"{"eventtime":2.25,"status":{"fan":{"rpm":null,"speed":0.20},"toolhead":{"position":[1,2.50]}}}"#;
        assert_eq!(topics.messages(), [("p/klipper/status".to_owned(), Bytes::from(expected))], "numbers stay as the printer wrote them");
        assert!(!topics.is_pending() && topics.messages().is_empty());
    }

    #[test]
    fn split_status_is_one_topic_per_field() {
        let mut topics = topics(true);
        topics.add_update(&update(r#"{"temperature_fan a/b":{"speed":0.20,"target":30}}"#, 7.0));
        let expected = [("speed", "0.20"), ("target", "30")].map(|(field, value)| {
            (format!("p/klipper/state/temperature_fan a_b/{field}"), Bytes::from(format!(r#"{{"eventtime":7,"value":{value}}}"#)))
        });
        assert_eq!(topics.messages(), expected);
    }

    #[test]
    fn an_error_and_other_texts_are_no_status() {
        let mut topics = topics(false);
        assert!(!topics.add_answer(br#"{"jsonrpc":"2.0","error":{"code":503,"message":"x"},"id":0}"#));
        topics.add_update(b"nonsense");
        topics.add_update(&update("[]", 1.0));
        assert!(!topics.is_pending());
    }
}
