//! What clients see of a file: time, size, permissions.

use std::fs::Metadata;
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::metadata::Record;
use crate::root::Permissions;

/// *File Info* of document 2: an entry of the file list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FileInfo {
    /// Path relative to the root.
    pub path: String,
    /// Modification time, Unix seconds.
    pub modified: f64,
    /// Bytes.
    pub size: u64,
    /// What callers may do with it.
    pub permissions: Permissions,
}

/// A file in a directory listing.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
pub struct FileEntry {
    /// Modification time, Unix seconds.
    pub modified: f64,
    /// Bytes.
    pub size: u64,
    /// What callers may do with it.
    pub permissions: Permissions,
    /// Its name.
    pub filename: String,
    /// Its metadata, whose members stand beside the others when it was asked for.
    #[schemars(skip)]
    pub(crate) record: Option<Record>,
}

impl Serialize for FileEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("modified", &self.modified)?;
        map.serialize_entry("size", &self.size)?;
        map.serialize_entry("permissions", &self.permissions)?;
        map.serialize_entry("filename", &self.filename)?;
        if let Some(record) = &self.record {
            // The record is valid only while size and time are those of the file, so they need not stand there twice.
            record.serialize_members(&mut map, &["modified", "size"])?;
        }
        map.end()
    }
}

/// A folder in a directory listing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FolderEntry {
    /// Modification time, Unix seconds.
    pub modified: f64,
    /// Bytes, as the file system gives it.
    pub size: u64,
    /// What callers may do with it.
    pub permissions: Permissions,
    /// Its name.
    pub dirname: String,
}

/// Seconds within which two times of modification are the same: programs round them differently.
const SAME_TIME: f64 = 0.01;

/// True when a file still has the size in bytes and the time of modification in Unix seconds that somebody wrote down; what is none is not compared.
pub(crate) fn is_unchanged(now: &Metadata, size: Option<u64>, time: Option<f64>) -> bool {
    size.is_none_or(|size| size == now.len()) && time.is_none_or(|time| (time - modified(now)).abs() < SAME_TIME)
}

/// Modification time in Unix seconds, with its fraction; negative before 1970.
pub(crate) fn modified(metadata: &Metadata) -> f64 {
    metadata.modified().map_or(0.0, unix_seconds)
}

fn unix_seconds(time: SystemTime) -> f64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_secs_f64(),
        Err(before) => -before.duration().as_secs_f64(),
    }
}

/// A link to a file can at most be read: writing would change what lies elsewhere.
pub(crate) fn of_link(permissions: Permissions) -> Permissions {
    match permissions {
        Permissions::ReadWrite => Permissions::Read,
        other => other,
    }
}
