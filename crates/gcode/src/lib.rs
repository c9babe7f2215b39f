//! Sliced files: metadata, thumbnails and object markers over bytes; one file per slicer.
//!
//! Pure: whoever calls supplies bytes through [`Source`]. A file is never read whole; windows and buffers are bounded.

pub mod metadata;
pub mod objects;
mod source;
pub mod thumbnail;

pub use source::Source;
