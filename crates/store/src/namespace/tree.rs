//! Reading and changing a value inside a record's JSON text, one level at a time.
//!
//! Only the objects on the path are taken apart, and only into their members' texts. So the order of members and the
//! spelling of numbers stay as the client sent them, and a large record never becomes a tree.

use std::fmt;

use indexmap::IndexMap;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};

use crate::StoreError;

type Members<'a> = IndexMap<String, &'a RawValue>;

/// What [`remove`] took out.
#[derive(Debug)]
pub(crate) struct Removed {
    /// The removed value.
    pub(crate) value: Box<RawValue>,
    /// The record without it; `None` when no member is left.
    pub(crate) rest: Option<Box<RawValue>>,
}

/// The value at `path`. Digits index into arrays. `None` when there is none, also when the path leads through a scalar.
pub(crate) fn find<'a>(record: &'a RawValue, path: &[String]) -> Option<&'a RawValue> {
    path.iter().try_fold(record, |value, part| {
        let mut json = serde_json::Deserializer::from_str(value.get());
        // An error means a scalar: the text itself is known to be well-formed.
        Child(part).deserialize(&mut json).ok().flatten()
    })
}

/// The record with `value` put at `path`, which is not empty. Missing parents are made. A record that is no object is
/// replaced by one; a deeper parent that is none is an error.
pub(crate) fn insert(record: Option<&RawValue>, path: &[String], value: &RawValue) -> Result<Box<RawValue>, StoreError> {
    let mut members = record.and_then(members_of).unwrap_or_default();
    let Some((part, rest)) = path.split_first() else {
        return Ok(value.to_owned());
    };
    if rest.is_empty() {
        members.insert(part.clone(), value);
        return encode(&members);
    }
    let child = members.get(part).copied();
    if child.is_some_and(|child| members_of(child).is_none()) {
        return Err(StoreError::BadKey(format!("'{part}' is not an object")));
    }
    let changed = insert(child, rest, value)?;
    members.insert(part.clone(), &changed);
    encode(&members)
}

/// Takes the value at `path`, which is not empty, out of the record. Parents stay, even empty ones. `None` when there
/// is nothing at `path` or the path leads through something that is no object.
pub(crate) fn remove(record: &RawValue, path: &[String]) -> Result<Option<Removed>, StoreError> {
    let (Some(mut members), Some((part, rest))) = (members_of(record), path.split_first()) else {
        return Ok(None);
    };
    if rest.is_empty() {
        let Some(value) = members.shift_remove(part) else { return Ok(None) };
        let left = if members.is_empty() { None } else { Some(encode(&members)?) };
        return Ok(Some(Removed { value: value.to_owned(), rest: left }));
    }
    let Some(child) = members.get(part) else { return Ok(None) };
    let Some(removed) = remove(child, rest)? else { return Ok(None) };
    let child = removed.rest.unwrap_or_else(empty_object);
    members.insert(part.clone(), &child);
    Ok(Some(Removed { value: removed.value, rest: Some(encode(&members)?) }))
}

/// The members of an object; `None` when the value is something else.
fn members_of(value: &RawValue) -> Option<Members<'_>> {
    serde_json::from_str(value.get()).ok()
}

fn encode(members: &Members<'_>) -> Result<Box<RawValue>, StoreError> {
    to_raw_value(members).map_err(|error| StoreError::Internal(error.to_string()))
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Picks one member of an object or one element of an array, and skips the others without keeping them.
struct Child<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for Child<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Child<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            // A repeated name counts with its last value, as everywhere.
            if name == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let index = self.0.parse::<usize>().ok().filter(|_| self.0.bytes().all(|byte| byte.is_ascii_digit()));
        let mut found = None;
        let mut position = 0;
        loop {
            if index == Some(position) {
                found = seq.next_element()?;
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            position += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn path(dotted: &str) -> Vec<String> {
        dotted.split('.').map(str::to_owned).collect()
    }

    fn found(json: &str, at: &str) -> Option<String> {
        find(&raw(json), &path(at)).map(|value| value.get().to_owned())
    }

    fn inserted(json: &str, at: &str, value: &str) -> Result<String, StoreError> {
        insert(Some(&raw(json)), &path(at), &raw(value)).map(|record| record.get().to_owned())
    }

    fn removed(json: &str, at: &str) -> Option<(String, Option<String>)> {
        let removed = remove(&raw(json), &path(at)).unwrap()?;
        Some((removed.value.get().to_owned(), removed.rest.map(|rest| rest.get().to_owned())))
    }

    #[test]
    fn finds_members_and_elements() {
        let json = r#"{"a":{"b":[10,{"c":null}]},"\u0064":"x"}"#;
        assert_eq!(found(json, "a.b.1.c").as_deref(), Some("null"));
        assert_eq!(found(json, "a.b.0").as_deref(), Some("10"));
        assert_eq!(found(json, "d").as_deref(), Some("\"x\""));
        for missing in ["z", "a.b.2", "a.b.-1", "a.b.+1", "a.b.x", "a.b.0.0", "d.0", "a.b.99999999999999999999999"] {
            assert_eq!(found(json, missing), None, "{missing}");
        }
    }

    #[test]
    fn inserts_keep_order_and_spelling() {
        let json = r#"{"z":1.50,"a":{"y":1e2,"b":0}}"#;
        assert_eq!(inserted(json, "a.b", "7").unwrap(), r#"{"z":1.50,"a":{"y":1e2,"b":7}}"#);
        assert_eq!(inserted(json, "n.m", "[]").unwrap(), r#"{"z":1.50,"a":{"y":1e2,"b":0},"n":{"m":[]}}"#);
    }

    #[test]
    fn only_the_record_itself_gives_way() {
        assert_eq!(inserted("5", "a.b", "1").unwrap(), r#"{"a":{"b":1}}"#);
        assert_eq!(inserted("[1]", "0", "2").unwrap(), r#"{"0":2}"#);
        for scalar in [r#"{"a":5}"#, r#"{"a":null}"#, r#"{"a":[{}]}"#] {
            assert!(matches!(inserted(scalar, "a.b", "1"), Err(StoreError::BadKey(_))), "{scalar}");
        }
    }

    #[test]
    fn removal_leaves_empty_parents() {
        assert_eq!(removed(r#"{"a":{"b":1}}"#, "a.b"), Some(("1".into(), Some(r#"{"a":{}}"#.into()))));
        assert_eq!(removed(r#"{"a":{"b":1}}"#, "a"), Some((r#"{"b":1}"#.into(), None)));
        assert_eq!(removed(r#"{"c":0,"a":1,"b":2}"#, "a"), Some(("1".into(), Some(r#"{"c":0,"b":2}"#.into()))));
        for missing in ["z", "a.z", "a.b.c", "a.0"] {
            assert_eq!(removed(r#"{"a":{"b":1}}"#, missing), None, "{missing}");
        }
        assert_eq!(removed("[1]", "0"), None);
    }
}
