//! Uploads: a form whose parts come in any order, a file that is written while it arrives, and a place for it at the end.
//!
//! ```text
//! begin ── start_file ── chunk … chunk ── finish
//!  413       507           413, 507        422, 400, 403, 500 → 201
//! ```
//! Source: wire/2-files-jobs.md section 1.3; the shape of the answer: wire/4-clients.md section 1, #8 and #18.

mod form;
mod place;
mod resume;
mod spool;
#[cfg(test)]
mod tests;
mod ufp;
mod writer;

use std::sync::Arc;

use bytes::Bytes;
use protocol::event::{FileAction, FileItem, FilelistChange};
use protocol::{ApiError, ErrorKind, dual};
use rpc::Call;
use rpc::transfer::{Boxed, Upload, Uploaded};
use schemars::JsonSchema;
use serde::Serialize;

use crate::kind;
use crate::library::RootPath;
use crate::root::GCODES;
use crate::service::Files;
use form::UploadForm;
use place::{Place, Placed};
pub use resume::{MAX_KEPT_ANSWERS, MAX_OPEN_UPLOADS, MAX_RESERVED_FILES, UPLOAD_LIFETIME};
pub(crate) use resume::{Resumables, append, create, forget_in_time};
#[cfg(test)]
pub(crate) use spool::SPOOL_FOLDER;
pub use spool::{MAX_PARALLEL_UPLOADS, SPACE_LEFT_FREE};
pub(crate) use spool::{Share, Spool};
pub(crate) use ufp::MAX_THUMBNAIL_BYTES;
pub use ufp::unpack_ufp;
use writer::Writer;
pub(crate) use writer::save_failed;

/// What a multipart body may hold besides the file, in bytes: a file of exactly the limit must pass.
pub const MULTIPART_OVERHEAD: u64 = 64 * 1024;

/// The answer to an upload.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UploadResult {
    /// The file as it is now.
    pub item: FileItem,
    /// Gcode files only: the firmware host has accepted the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub print_started: Option<bool>,
    /// Gcode files only: it was put into the job queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub print_queued: Option<bool>,
    /// `create_file`, also when a file was replaced.
    pub action: FileAction,
}

/// The members stand flat and again in `result`, which comes first: some clients read only one of the two, some only the first member.
#[derive(Serialize)]
struct Body<'r> {
    result: &'r UploadResult,
    #[serde(flatten)]
    flat: &'r UploadResult,
}

/// The file part.
struct FilePart {
    name: String,
    writer: Writer<Placed>,
}

/// An upload that arrives.
pub(crate) struct Arriving {
    files: Arc<Files>,
    form: UploadForm,
    part: Option<FilePart>,
    received: u64,
    share: Share,
}

/// Begins an upload; see [`rpc::transfer::FileTransfer::begin_upload`].
pub(crate) fn begin(files: &Arc<Files>, announced: Option<u64>) -> Result<Arriving, ApiError> {
    check_access(files)?;
    let announced = announced.unwrap_or(0);
    if announced > files.settings.max_upload_size.saturating_add(MULTIPART_OVERHEAD) {
        return Err(too_large(files));
    }
    let share = files.spool.share(announced).ok_or_else(too_many)?;
    Ok(Arriving { files: files.clone(), form: UploadForm::default(), part: None, received: 0, share })
}

fn check_access(files: &Files) -> Result<(), ApiError> {
    if files.settings.write_access {
        return Ok(());
    }
    Err(ApiError::forbidden("Write access is currently disabled. Check the warnings of the server."))
}

fn too_many() -> ApiError {
    ApiError::new(ErrorKind::TooMany, "Too many uploads at once")
}

fn too_large(files: &Files) -> ApiError {
    let limit = files.settings.max_upload_size;
    ApiError::new(ErrorKind::TooLarge, format!("The upload is larger than the limit of {limit} bytes (max_upload_size)"))
}

impl Upload for Arriving {
    fn field(&mut self, name: &str, value: String) -> Result<(), ApiError> {
        self.form.set(name, &value)
    }

    fn start_file<'a>(&'a mut self, file_name: &'a str) -> Boxed<'a, Result<(), ApiError>> {
        Box::pin(async move {
            if self.part.is_some() {
                return Err(ApiError::bad_request("Upload form: more than one file"));
            }
            let name = form::file_name(file_name).ok_or_else(|| ApiError::bad_request("Multipart filename omitted"))?;
            let writer = Writer::start(self.files.spool.clone()).await?;
            self.part = Some(FilePart { name, writer });
            Ok(())
        })
    }

    fn chunk(&mut self, data: Bytes) -> Boxed<'_, Result<(), ApiError>> {
        Box::pin(async move {
            let part = self.part.as_mut().ok_or_else(|| ApiError::bad_request("Multipart filename omitted"))?;
            self.received += data.len() as u64;
            if self.received > self.files.settings.max_upload_size {
                return Err(too_large(&self.files));
            }
            self.share.arrived(data.len() as u64);
            part.writer.write(data).await
        })
    }

    fn finish(self: Box<Self>, call: Arc<Call>) -> Boxed<'static, Result<Uploaded, ApiError>> {
        // A task of its own: a client that leaves now must not come between the move into place and what follows from it.
        let work = tokio::spawn(finish(*self, call));
        Box::pin(async move {
            work.await.unwrap_or_else(|error| {
                tracing::error!(%error, "the end of an upload failed");
                Err(ApiError::internal("Unable to save file"))
            })
        })
    }
}

async fn finish(upload: Arriving, call: Arc<Call>) -> Result<Uploaded, ApiError> {
    let Arriving { files, form, part, share, .. } = upload;
    let FilePart { name, writer } = part.ok_or_else(|| ApiError::bad_request("Multipart filename omitted"))?;
    let print = print_wish(&files, &form);
    let here = files.clone();
    let placed = writer.finish(Box::new(move |spooled| placing(&here).put(&form, &name, spooled))).await?;
    drop(share);
    complete(&files, placed, print, &call).await
}

/// What an upload wants of the printer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrintWish {
    /// Nothing.
    None,
    /// A start.
    Start,
    /// A start, but the printer cannot.
    Later,
}

/// Whether a start is asked for and possible. That counts before the file is in place: what a job does meanwhile is its own affair.
fn print_wish(files: &Files, form: &UploadForm) -> PrintWish {
    match (form.print, form.print && files.print.can_start()) {
        (false, _) => PrintWish::None,
        (true, true) => PrintWish::Start,
        (true, false) => PrintWish::Later,
    }
}

fn placing(files: &Files) -> Place<'_> {
    Place {
        library: &files.library,
        print: &*files.print,
        changes: &files.changes,
        own: &files.own,
        spool: &files.spool,
        max_size: files.settings.max_upload_size,
    }
}

/// Unpacks a container that another program has put among the gcode files and removes it; gives the path of its gcode file. A broken one
/// stays where it is. Blocks; called without the lock of all changes.
pub(crate) fn unpack_found(files: &Files, container: &RootPath) -> Result<RootPath, ApiError> {
    placing(files).put_found(container).map(|placed| placed.path)
}

/// What follows when the file is in its place: metadata, start, notification, answer.
async fn complete(files: &Arc<Files>, mut placed: Placed, print: PrintWish, call: &Arc<Call>) -> Result<Uploaded, ApiError> {
    let change = FilelistChange { action: FileAction::CreateFile, item: placed.item.clone(), source_item: None };
    files.followed(&change).await;
    placed.item = files.item_now(&placed.path, placed.item).await;
    let is_gcode = placed.path.root.name == GCODES && kind::is_gcode(&placed.item.path);
    let started = is_gcode && print == PrintWish::Start && start_print(files, &placed, call).await;
    let may_queue = is_gcode && print != PrintWish::None && !started && files.settings.options.queue_gcode_uploads;
    let queued = may_queue && queue_print(files, &placed, call).await;
    let result = UploadResult {
        item: placed.item,
        print_started: is_gcode.then_some(started),
        print_queued: is_gcode.then_some(queued),
        action: FileAction::CreateFile,
    };
    for folder in placed.folders {
        files.announce_after(call, FileAction::CreateDir, folder, None);
    }
    files.announce_after(call, FileAction::CreateFile, result.item.clone(), None);
    let body = dual::to_vec(&Body { result: &result, flat: &result });
    let body = body.map_err(|error| ApiError::internal(format!("The result could not be encoded: {error}")))?;
    Ok(Uploaded { path: placed.path.public(), body: body.into() })
}

async fn start_print(files: &Files, placed: &Placed, call: &Arc<Call>) -> bool {
    match files.print.start(placed.item.path.clone(), call.clone()).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(file = placed.item.path, %error, "the uploaded file was not started");
            false
        }
    }
}

async fn queue_print(files: &Files, placed: &Placed, call: &Arc<Call>) -> bool {
    match files.print.queue(placed.item.path.clone(), call.clone()).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(file = placed.item.path, %error, "the uploaded file was not queued");
            false
        }
    }
}
