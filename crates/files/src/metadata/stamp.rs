//! What tells one state of a file from another without reading it. Pure.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Size, time and identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    /// Modification time, Unix nanoseconds. Wraps after 2262, which only leads to scans.
    pub(crate) modified_ns: i64,
    pub(crate) inode: u64,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let modified_ns = metadata.mtime().wrapping_mul(1_000_000_000).wrapping_add(metadata.mtime_nsec());
        Self { size: metadata.len(), modified_ns, inode: metadata.ino() }
    }
}
