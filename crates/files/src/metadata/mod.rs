//! Metadata of gcode files: scanned by one thread of low priority, kept in the database, valid as long as the file has the same size, time and
//! inode, so that a restart reads no file again.
//!
//! ```text
//! request ─► queue ─► thread: objects (optional) ─► scan ─► thumbnails, table ─► whoever waits
//! change  ─► follow: records and thumbnails go with their files
//! ```
//! Source: wire/2-files-jobs.md sections 3.1, 3.9 and 4.

mod document;
mod follow;
mod objects;
mod prints;
mod queue;
mod scan;
mod stamp;
mod table;
#[cfg(test)]
mod tests;
mod thumbnails;
mod wait;
mod worker;

pub(crate) use document::Record;
pub use document::{FileMetadata, ThumbnailDetails};
pub(crate) use follow::follow;
pub(crate) use objects::OBJECTS_TIME_LIMIT;
pub use prints::{EarlierPrint, note_prints};
pub(crate) use queue::{Ask, Queue};
pub(crate) use stamp::Stamp;
pub use table::SCHEMA;
pub(crate) use table::Table;
pub(crate) use worker::{compare, start};
