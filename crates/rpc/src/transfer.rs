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
use crate::identity::Access;

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

/// An upload that can be continued, as a client asks for it.
#[derive(Debug)]
pub struct NewUpload {
    /// Size of the whole file in bytes.
    pub length: u64,
    /// What the text parts of a form would be, and `filename`.
    pub fields: Vec<(String, String)>,
    /// The same as the client wrote it; given back as it is.
    pub metadata: String,
}

/// How far an upload that can be continued has come.
#[derive(Debug)]
pub struct UploadStatus {
    /// Its name in the address. Unguessable, and no permission by itself.
    pub id: String,
    /// Bytes that are on the disk. Reaches `length` only when the file is in its place.
    pub offset: u64,
    /// Size of the whole file in bytes.
    pub length: u64,
    /// What the client said of it at the start.
    pub metadata: String,
    /// When it is forgotten unless more arrives.
    pub expires: SystemTime,
    /// Complete uploads: the answer, unless the server ended between placing the file and noting the answer.
    pub uploaded: Option<Uploaded>,
}

/// Bytes on their way to an upload that can be continued. Dropping it keeps what has arrived.
pub trait Append: Send {
    /// The next piece.
    ///
    /// # Errors
    /// 413 beyond the length of the upload, 507 when the disk is full.
    fn chunk(&mut self, data: Bytes) -> Boxed<'_, Result<(), ApiError>>;

    /// Ready when another request wants the same upload: this one is to be dropped then.
    fn superseded(&self) -> Boxed<'static, ()>;

    /// The request has ended. Ready when its bytes are on the disk, and the file in its place when these were the last ones.
    fn finish(self: Box<Self>, call: Arc<Call>) -> Boxed<'static, Result<UploadStatus, ApiError>>;
}

/// The files that HTTP can send and receive.
pub trait FileTransfer: Send + Sync {
    /// Who may read this path: anybody (pictures, which pages embed without headers), whoever may look, or only who may change things
    /// (configurations, where owners write passwords). `path` is below `/server/files/`, decoded.
    fn reading(&self, path: &str) -> Access;

    /// Opens a file. `path` is below `/server/files/`, percent-decoded.
    fn open(&self, path: String) -> Boxed<'static, Result<Download, ApiError>>;

    /// Begins an upload of about `announced` bytes (the length of the whole body, when the client says it).
    ///
    /// # Errors
    /// 413 over the limit, 507 when the disk cannot hold it.
    fn begin_upload(&self, announced: Option<u64>) -> Result<Box<dyn Upload>, ApiError>;

    /// Largest file in bytes.
    fn max_upload_size(&self) -> u64;

    /// Begins an upload that can be continued. What can be refused is refused here, before the first byte.
    fn create_upload(&self, new: NewUpload) -> Boxed<'static, Result<UploadStatus, ApiError>>;

    /// How far an upload has come. A request that still appends to it is ended first: its client is the one that asks.
    ///
    /// # Errors
    /// 404 when it is unknown or expired.
    fn upload_status(&self, id: String) -> Boxed<'static, Result<UploadStatus, ApiError>>;

    /// Begins to append `announced` bytes (when the client says how many) at `offset`, which must be where the upload is. The newest request
    /// wins: an older one that still appends is ended.
    ///
    /// # Errors
    /// 404 as above, 409 for another offset, 413 beyond the length, 507 when the disk cannot hold the rest.
    fn append(&self, id: String, offset: u64, announced: Option<u64>) -> Boxed<'static, Result<Box<dyn Append>, ApiError>>;

    /// Gives an upload up.
    ///
    /// # Errors
    /// 404 as above.
    fn cancel_upload(&self, id: String) -> Boxed<'static, Result<(), ApiError>>;
}
