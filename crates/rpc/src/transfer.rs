//! What the HTTP transport needs for bodies that are streams: uploads and downloads.
//!
//! Everything else is an operation. The transport knows multipart, ranges and headers; the implementor knows roots, paths and disks.

use std::fs::File;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use protocol::ApiError;

use crate::call::Call;

/// A boxed future, so that the traits can be objects.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A file that may be sent.
#[derive(Debug)]
pub struct Download {
    /// The open file: replacing or deleting it meanwhile does not harm.
    pub file: File,
    /// Its size in bytes when it was opened.
    pub size: u64,
    /// Its modification time.
    pub modified: SystemTime,
    /// File name for the content disposition.
    pub name: String,
    /// Content type by its extension.
    pub content_type: &'static str,
}

/// A finished upload.
#[derive(Debug)]
pub struct Uploaded {
    /// Path of the new file below `/server/files/`, segments not encoded.
    pub path: String,
    /// JSON body of the answer.
    pub body: Bytes,
}

/// An upload in progress. Dropping it leaves nothing behind.
pub trait Upload: Send {
    /// A text part.
    ///
    /// # Errors
    /// 400 for a bad value.
    fn field(&mut self, name: &str, value: String) -> Result<(), ApiError>;

    /// The file part begins; its content follows by [`Upload::chunk`].
    fn start_file<'a>(&'a mut self, file_name: &'a str) -> Boxed<'a, Result<(), ApiError>>;

    /// A piece of the file's content.
    fn chunk(&mut self, data: Bytes) -> Boxed<'_, Result<(), ApiError>>;

    /// Everything has arrived: checks, moves into place, starts the print when asked to.
    fn finish(self: Box<Self>, call: Arc<Call>) -> Boxed<'static, Result<Uploaded, ApiError>>;
}

/// The files that HTTP can send and receive.
pub trait FileTransfer: Send + Sync {
    /// True when strangers may read this path (pictures, which pages embed without headers). `path` is below `/server/files/`, decoded.
    fn is_public(&self, path: &str) -> bool;

    /// Opens a file. `path` is below `/server/files/`, percent-decoded.
    fn open(&self, path: String) -> Boxed<'static, Result<Download, ApiError>>;

    /// Begins an upload of about `announced` bytes (the length of the whole body, when the client says it).
    ///
    /// # Errors
    /// 413 over the limit, 507 when the disk cannot hold it.
    fn begin_upload(&self, announced: Option<u64>) -> Result<Box<dyn Upload>, ApiError>;
}
