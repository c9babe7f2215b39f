//! A file's metadata as it is stored and as clients see it: JSON text that is spliced, not rebuilt.

use std::borrow::Cow;
use std::fmt;

use gcode::metadata::ThumbnailInfo;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::Stamp;

/// What the database keeps of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) stamp: Stamp,
    /// A JSON object with all fields of wire/2-files-jobs.md section 3.4 but the last two.
    pub(crate) document: Box<str>,
    /// The file was looked at for objects and there is nothing to do.
    pub(crate) objects_done: bool,
    /// Unix seconds of the last print's start.
    pub(crate) print_start_time: Option<f64>,
    /// Id of the last print in the job history.
    pub(crate) job_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Images {
    thumbnails: Vec<ThumbnailInfo>,
}

impl Record {
    /// The images of the file; none when there are none.
    pub(crate) fn thumbnails(&self) -> Vec<ThumbnailInfo> {
        serde_json::from_str::<Images>(&self.document).unwrap_or_default().thumbnails
    }

    /// Adds all members to a map, those of `own` not.
    pub(crate) fn serialize_members<M: SerializeMap>(&self, map: &mut M, own: &[&str]) -> Result<(), M::Error> {
        let Members(members) = serde_json::from_str(&self.document).map_err(serde::ser::Error::custom)?;
        for (name, value) in members.iter().filter(|(name, _)| !own.contains(&name.as_ref())) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("print_start_time", &self.print_start_time)?;
        map.serialize_entry("job_id", &self.job_id)
    }
}

/// The members of an object, values unparsed.
struct Members<'d>(Vec<(Cow<'d, str>, &'d RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::with_capacity(32);
                while let Some((name, value)) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// *Gcode metadata* of document 2.
#[derive(Debug, Clone, PartialEq)]
pub struct FileMetadata {
    pub(crate) record: Record,
    /// Path relative to `gcodes`.
    pub(crate) filename: String,
}

impl Serialize for FileMetadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.record.serialize_members(&mut map, &[])?;
        map.serialize_entry("filename", &self.filename)?;
        map.end()
    }
}

impl JsonSchema for FileMetadata {
    fn schema_name() -> Cow<'static, str> {
        "GcodeMetadata".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "Metadata of a gcode file; which members there are depends on the slicer.",
            "properties": {
                "size": {"type": "integer"},
                "modified": {"type": "number"},
                "filename": {"type": "string"},
                "print_start_time": {"type": ["number", "null"]},
                "job_id": {"type": ["string", "null"]},
            },
            "required": ["size", "modified", "filename", "print_start_time", "job_id"],
        })
    }
}

/// *Thumbnail Details* of document 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThumbnailDetails {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Bytes.
    pub size: u64,
    /// Path relative to `gcodes`.
    pub thumbnail_path: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_spliced_in_order_as_they_stand() {
        let stamp = Stamp { size: 1, modified_ns: 2, inode: 3 };
        let document =
            r#"{"size":1,"modified":2.50,"slicer":"S \"x\"","thumbnails":[{"width":1,"height":2,"size":3,"relative_path":".thumbs/a"}]}"#;
        let record = Record { stamp, document: document.into(), objects_done: false, print_start_time: None, job_id: Some("1".into()) };
        assert_eq!(record.thumbnails().len(), 1);
        let text = String::from_utf8(protocol::dual::to_vec(&FileMetadata { record, filename: "a".into() }).unwrap()).unwrap();
        assert_eq!(text, format!(r#"{},"print_start_time":null,"job_id":"1","filename":"a"}}"#, &document[..document.len() - 1]));
    }
}
