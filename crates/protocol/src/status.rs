//! Printer status: what is asked for, what changed, and what is still to be told to a slow reader.
//!
//! Values are kept as the JSON text that the firmware host sent, shared and never re-encoded: clients compare numbers textually and the hot path
//! (one update to many connections) must not build trees. Sources: document 1 *Printer*, wire/5-fwhost.md section 5.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::Frame;
use crate::envelope::write_string;
use crate::error::{ApiError, ApiResult};
use crate::raw;
pub use crate::raw::RawMembers as HostFields;

/// Shared text: a name, or the JSON text of a value.
pub type Text = Arc<str>;

/// Objects in one subscription or query; real printers have some hundred.
pub const MAX_OBJECTS: usize = 4096;

/// Which fields of an object are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Fields {
    /// Every field.
    All,
    /// These fields.
    Some(BTreeSet<Text>),
}

impl Fields {
    /// True when `field` is wanted.
    #[must_use]
    pub fn wants(&self, field: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(names) => names.contains(field),
        }
    }
}

/// Printer objects and the wanted fields of each: the `objects` argument of query and subscribe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selection(pub BTreeMap<Text, Fields>);

impl Selection {
    /// True when nothing is wanted (an empty subscription cancels).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads `{name: null | [field, …] | "field"}`. A single string stands for a list of one (a known client sends it so).
    ///
    /// # Errors
    /// Names `objects` and what was expected.
    pub fn from_json(text: &str) -> ApiResult<Self> {
        match serde_json::from_str::<Selection>(text) {
            Ok(selection) if selection.0.len() > MAX_OBJECTS => {
                Err(ApiError::argument(format!("Argument [objects] names more than {MAX_OBJECTS} printer objects")))
            }
            Ok(selection) => Ok(selection),
            Err(_) => Err(ApiError::argument(
                "Unable to convert argument [objects]: expected an object that maps printer object names to null or a list of field names",
            )),
        }
    }

    /// Reads one pair of the query-string form (`toolhead`, `extruder=target,temperature`).
    pub fn add_query_pair(&mut self, name: &str, fields: &str) {
        let fields = if fields.is_empty() { Fields::All } else { Fields::Some(fields.split(',').map(Text::from).collect()) };
        self.0.insert(name.into(), fields);
    }

    /// The JSON form that the firmware host understands.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = vec![b'{'];
        for (index, (name, fields)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_string(&mut out, name);
            out.push(b':');
            match fields {
                Fields::All => out.extend_from_slice(b"null"),
                Fields::Some(fields) => {
                    out.push(b'[');
                    for (index, field) in fields.iter().enumerate() {
                        if index > 0 {
                            out.push(b',');
                        }
                        write_string(&mut out, field);
                    }
                    out.push(b']');
                }
            }
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }
}

impl schemars::JsonSchema for Selection {
    fn schema_name() -> Cow<'static, str> {
        "PrinterObjects".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "Printer object name to null (all fields) or a list of field names",
            "additionalProperties": {"oneOf": [{"type": "null"}, {"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        })
    }
}

impl<'de> Deserialize<'de> for Selection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(SelectionVisitor)
    }
}

struct SelectionVisitor;

impl<'de> Visitor<'de> for SelectionVisitor {
    type Value = Selection;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object that maps printer object names to null or a list of field names")
    }

    fn visit_none<E>(self) -> Result<Selection, E> {
        Ok(Selection::default())
    }

    fn visit_unit<E>(self) -> Result<Selection, E> {
        Ok(Selection::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Selection, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Selection, A::Error> {
        let mut objects = BTreeMap::new();
        while let Some((name, fields)) = map.next_entry::<Cow<'de, str>, Fields>()? {
            objects.insert(Text::from(name), fields);
        }
        Ok(Selection(objects))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("null or a list of field names")
            }

            fn visit_unit<E>(self) -> Result<Fields, E> {
                Ok(Fields::All)
            }

            fn visit_str<E>(self, field: &str) -> Result<Fields, E> {
                Ok(Fields::Some(BTreeSet::from([Text::from(field)])))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Fields, A::Error> {
                let mut fields = BTreeSet::new();
                while let Some(field) = seq.next_element::<Cow<'de, str>>()? {
                    fields.insert(Text::from(field));
                }
                Ok(Fields::Some(fields))
            }
        }
        deserializer.deserialize_any(FieldsVisitor)
    }
}

/// Status as the firmware host sends it: the `params` of an update, or the `result` of a query. Borrows from the frame.
#[derive(Debug, serde::Deserialize)]
pub struct HostStatus<'a> {
    /// Monotonic seconds of the host, as sent.
    #[serde(borrow)]
    pub eventtime: &'a RawValue,
    /// Object name to fields.
    #[serde(borrow)]
    pub status: HostObjects<'a>,
}

/// Objects with their fields, in the order in which they came.
#[derive(Debug, Default)]
pub struct HostObjects<'a>(pub Vec<(Cow<'a, str>, HostFields<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for HostObjects<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        raw::ordered_entries(deserializer, "printer objects by name").map(HostObjects)
    }
}

/// What changed at one tick of the firmware host, with shared names and values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusDiff {
    /// Monotonic seconds of the host, as sent.
    pub eventtime: Text,
    /// Changed objects.
    pub objects: Vec<ObjectDiff>,
}

/// Changed fields of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectDiff {
    /// Printer object name.
    pub name: Text,
    /// Field name and JSON text of the new value.
    pub fields: Vec<(Text, Text)>,
}

impl StatusDiff {
    /// The part of this diff that `selection` wants as `notify_status_update`, or `None` when it wants nothing of it.
    #[must_use]
    pub fn notification(&self, selection: &Selection) -> Option<Frame> {
        let mut writer = StatusWriter::new();
        for object in &self.objects {
            if let Some(wanted) = selection.0.get(&object.name) {
                for (field, value) in object.fields.iter().filter(|(field, _)| wanted.wants(field)) {
                    writer.field(&object.name, field, value);
                }
            }
        }
        writer.finish(&self.eventtime)
    }
}

/// Status that a slow connection has not been told yet; a later value of a field replaces an earlier one, so it cannot grow beyond one
/// full status.
#[derive(Debug, Default)]
pub struct PendingStatus {
    eventtime: Option<Text>,
    objects: BTreeMap<Text, BTreeMap<Text, Text>>,
}

impl PendingStatus {
    /// True when nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Forgets everything (a new subscription starts from a full status).
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds the part of `diff` that `selection` wants.
    pub fn merge(&mut self, diff: &StatusDiff, selection: &Selection) {
        for object in &diff.objects {
            let Some(wanted) = selection.0.get(&object.name) else { continue };
            for (field, value) in object.fields.iter().filter(|(field, _)| wanted.wants(field)) {
                self.objects.entry(object.name.clone()).or_default().insert(field.clone(), value.clone());
            }
        }
        self.eventtime = Some(diff.eventtime.clone());
    }

    /// One notification with everything pending; afterwards nothing is.
    pub fn take(&mut self) -> Option<Frame> {
        let eventtime = self.eventtime.take()?;
        let objects = std::mem::take(&mut self.objects);
        let mut writer = StatusWriter::new();
        for (name, fields) in &objects {
            for (field, value) in fields {
                writer.field(name, field, value);
            }
        }
        writer.finish(&eventtime)
    }
}

/// Writes `{"object":{"field":value,…},…}` field by field, fields of one object in a row.
struct StatusWriter {
    out: Vec<u8>,
    object: Option<Text>,
}

impl StatusWriter {
    const HEAD: &'static [u8] = br#"{"jsonrpc":"2.0","method":"notify_status_update","params":[{"#;

    fn new() -> Self {
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(Self::HEAD);
        Self { out, object: None }
    }

    fn field(&mut self, object: &Text, field: &str, value: &str) {
        match &self.object {
            Some(open) if open == object => self.out.push(b','),
            open => {
                if open.is_some() {
                    self.out.extend_from_slice(b"},");
                }
                write_string(&mut self.out, object);
                self.out.extend_from_slice(b":{");
                self.object = Some(object.clone());
            }
        }
        write_string(&mut self.out, field);
        self.out.push(b':');
        self.out.extend_from_slice(value.as_bytes());
    }

    fn finish(mut self, eventtime: &str) -> Option<Frame> {
        self.object.as_ref()?;
        self.out.extend_from_slice(b"}},");
        self.out.extend_from_slice(eventtime.as_bytes());
        self.out.extend_from_slice(b"]}");
        Some(self.out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn diff(time: &str, entries: &[(&str, &[(&str, &str)])]) -> StatusDiff {
        StatusDiff {
            eventtime: time.into(),
            objects: entries
                .iter()
                .map(|(name, fields)| ObjectDiff {
                    name: Text::from(*name),
                    fields: fields.iter().map(|(field, value)| (Text::from(*field), Text::from(*value))).collect(),
                })
                .collect(),
        }
    }

    fn text(frame: &Frame) -> &str {
        std::str::from_utf8(frame).unwrap()
    }

    #[test]
    fn notification_holds_only_what_was_asked_for() {
        let diff = diff("12.5", &[("toolhead", &[("position", "[1,2]"), ("homed_axes", "\"xy\"")]), ("fan", &[("speed", "0.0")])]);
        let wanted = Selection::from_json(r#"{"toolhead":["homed_axes"],"fan":null,"gone":null}"#).unwrap();
        assert_eq!(
            text(&diff.notification(&wanted).unwrap()),
            r#"{"jsonrpc":"2.0","method":"notify_status_update","params":[{"toolhead":{"homed_axes":"xy"},"fan":{"speed":0.0}},12.5]}"#
        );
        assert!(diff.notification(&Selection::from_json(r#"{"extruder":null}"#).unwrap()).is_none());
    }

    #[test]
    fn pending_keeps_the_latest_value_of_each_field() {
        let all = Selection::from_json(r#"{"a":null,"b":["x"]}"#).unwrap();
        let mut pending = PendingStatus::default();
        pending.merge(&diff("1.0", &[("a", &[("p", "1"), ("q", "1")]), ("b", &[("x", "1"), ("y", "1")])]), &all);
        pending.merge(&diff("2.0", &[("a", &[("p", "2")])]), &all);
        let frame = pending.take().unwrap();
        assert_eq!(text(&frame), r#"{"jsonrpc":"2.0","method":"notify_status_update","params":[{"a":{"p":2,"q":1},"b":{"x":1}},2.0]}"#);
        assert!(pending.is_empty() && pending.take().is_none());
    }

    #[test]
    fn selections_in_all_the_forms_that_clients_send() {
        let selection = Selection::from_json(r#"{"fan":"speed","webhooks":null,"toolhead":[]}"#).unwrap();
        assert!(selection.0["fan"].wants("speed") && !selection.0["fan"].wants("rpm"));
        assert_eq!(selection.0["webhooks"], Fields::All);
        assert!(!selection.0["toolhead"].wants("position"));
        assert_eq!(Selection::from_json(&selection.to_json()).unwrap(), selection);
        assert!(Selection::from_json(r#"{"fan":5}"#).is_err());
        assert!(Selection::from_json("[1]").is_err());

        let mut query = Selection::default();
        query.add_query_pair("toolhead", "");
        query.add_query_pair("extruder", "target,temperature");
        assert_eq!(query, Selection::from_json(r#"{"toolhead":null,"extruder":["temperature","target"]}"#).unwrap());
    }

    #[test]
    fn host_status_borrows_and_keeps_order() {
        let text = br#"{"status":{"b":{"x":1.50,"a":[1, 2]},"a":{}},"eventtime":3.0}"#;
        let status: HostStatus<'_> = serde_json::from_slice(text).unwrap();
        assert_eq!(status.eventtime.get(), "3.0");
        assert_eq!(status.status.0[0].0, "b");
        assert_eq!(status.status.0[0].1.0[0].1.get(), "1.50");
        assert!(matches!(status.status.0[0].0, Cow::Borrowed(_)));
    }

    proptest! {
        /// However updates are cut into pending and sent ones, the reader ends with the same status.
        #[test]
        fn merging_loses_nothing(updates in proptest::collection::vec((0usize..3, 0usize..3, 0u32..9), 1..40), cut in 0usize..40) {
            let selection = Selection::from_json(r#"{"o0":null,"o1":null,"o2":["f0","f1"]}"#).unwrap();
            let mut direct: BTreeMap<(usize, usize), u32> = BTreeMap::new();
            let mut pending = PendingStatus::default();
            let mut seen: BTreeMap<String, serde_json::Value> = BTreeMap::new();
            let read = |frame: Option<Frame>, seen: &mut BTreeMap<String, serde_json::Value>| {
                let Some(frame) = frame else { return };
                let value: serde_json::Value = serde_json::from_slice(&frame).unwrap();
                for (object, fields) in value["params"][0].as_object().unwrap() {
                    for (field, value) in fields.as_object().unwrap() {
                        seen.insert(format!("{object}.{field}"), value.clone());
                    }
                }
            };
            for (index, (object, field, value)) in updates.iter().enumerate() {
                let update = diff("1.0", &[(&format!("o{object}"), &[(&format!("f{field}"), &value.to_string())])]);
                if !(*object == 2 && *field == 2) {
                    direct.insert((*object, *field), *value);
                }
                pending.merge(&update, &selection);
                if index == cut {
                    read(pending.take(), &mut seen);
                }
            }
            read(pending.take(), &mut seen);
            let expected: BTreeMap<String, serde_json::Value> =
                direct.into_iter().map(|((o, f), v)| (format!("o{o}.f{f}"), v.into())).collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
