//! What clients see of a file: time, size, permissions.

use std::fs::Metadata;
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::Serialize;

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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FileEntry {
    /// Modification time, Unix seconds.
    pub modified: f64,
    /// Bytes.
    pub size: u64,
    /// What callers may do with it.
    pub permissions: Permissions,
    /// Its name.
    pub filename: String,
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
