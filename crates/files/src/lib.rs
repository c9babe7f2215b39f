//! Roots, path safety, upload, download, listing.
//!
//! ```text
//! api (operations)   Transfer (HTTP streams)
//!         \           /
//!          Files: async handle, one lock for all changes     service.rs
//!             |  blocking threads only, below this line
//!   list  download  delete  folder  relocate  archive  upload::{writer, resume → place}
//!             |
//!          Library: roots, reserved paths, RootPath          library.rs
//!             |
//!   path, kind, root: pure rules
//! ```
//! A request reaches a file only by `Library::resolve`. Source: document 2 *Files*, wire/2-files-jobs.md sections 1 and 2.

mod api;
mod archive;
mod delete;
mod disk;
mod download;
mod folder;
pub mod item;
pub mod kind;
mod lane;
mod library;
pub mod list;
mod metadata;
pub mod path;
mod print;
mod refusal;
mod relocate;
pub mod root;
mod service;
mod settings;
#[cfg(test)]
mod testing;
mod tree;
mod upload;
mod watch;

pub use archive::MAX_ARCHIVED_FILES;
pub use download::Log;
pub use metadata::{EarlierPrint, FileMetadata, SCHEMA, ThumbnailDetails, note_prints};
pub use print::{NoPrinter, PrintControl};
pub use root::{Permissions, Reserved, Root};
pub use service::{Files, OpenError, Transfer};
pub use settings::{
    DEFAULT_MAX_UPLOAD, FileManagerOptions, FilesSettings, LOOK_PERIOD, LOST_ROOT_PERIOD, MAX_WATCHED_FOLDERS, Observer, Observing,
};
pub use upload::{
    MAX_KEPT_ANSWERS, MAX_OPEN_UPLOADS, MAX_PARALLEL_UPLOADS, MAX_RESERVED_FILES, MULTIPART_OVERHEAD, SPACE_LEFT_FREE, UPLOAD_LIFETIME,
    UploadResult, unpack_ufp,
};
