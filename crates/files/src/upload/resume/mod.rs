//! Uploads that can be continued after the connection broke or the server was started anew (`docs/uploads.md`, decision 0004).
//!
//! ```text
//! create ─► append ─► (break) ─► status ─► append … last byte ─► placed as any upload ─► the answer is kept for a while
//! ```
//! One request at a time holds an upload. A newer one asks the holder to stop and waits until what has arrived is on the disk: a client whose
//! connection broke comes back long before the server notices that the old one is dead.

mod append;
mod model;
mod shelf;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;
use protocol::ApiError;
use rpc::Call;
use rpc::transfer::{Append, Boxed, NewUpload, UploadStatus, Uploaded};
use sha2::Sha256;
use tokio::sync::{OwnedMutexGuard, watch};

use super::form::UploadForm;
use super::place::Placed;
use super::spool::Share;
use super::writer::save_failed;
use super::{check_access, complete, placing, print_wish, too_many};
use crate::service::{Files, blocking};
use append::{Appender, Ended};
use model::{Answer, Record};
pub use model::{MAX_KEPT_ANSWERS, MAX_OPEN_UPLOADS, MAX_RESERVED_FILES, UPLOAD_LIFETIME};

/// How often expired uploads are looked for.
const SWEEP_PERIOD: Duration = Duration::from_mins(30);
/// Digits of an id that the log shows: enough to tell uploads apart, too few to use it.
const SHORT_ID: usize = 8;

/// How far an upload is.
#[derive(Debug)]
enum Stage {
    /// More has to come.
    Open,
    /// The file is in its place; the answer, unless the server ended before it was noted.
    Complete(Option<Answer>),
    /// Given up or expired.
    Gone,
}

#[derive(Debug)]
struct State {
    /// What the client is told; on the disk.
    offset: u64,
    /// When something arrived last.
    touched: SystemTime,
    stage: Stage,
    /// Checksum of so many bytes from the start.
    hash: Option<(Sha256, u64)>,
}

/// One upload.
#[derive(Debug)]
struct Resumable {
    id: String,
    folder: PathBuf,
    record: Record,
    wants_checksum: bool,
    state: Mutex<State>,
    /// Held by whoever works on it.
    gate: Arc<tokio::sync::Mutex<()>>,
    /// Counts the requests that wanted the gate.
    turns: watch::Sender<u64>,
}

impl Resumable {
    fn new(folder: &Path, id: String, record: Record, state: State) -> Self {
        let wants_checksum = model::understand(&record.fields).is_ok_and(|(form, _)| form.checksum.is_some());
        Self {
            id,
            folder: folder.to_owned(),
            record,
            wants_checksum,
            state: Mutex::new(state),
            gate: Arc::default(),
            turns: watch::Sender::new(0),
        }
    }

    fn found(folder: &Path, found: shelf::Found) -> Self {
        let shelf::Found { id, mut record, received, touched } = found;
        let (offset, stage) = match (record.answer.take(), received) {
            (Some(answer), _) => (record.length, Stage::Complete(Some(answer))),
            // The content got its place, and then the server ended.
            (None, None) => (record.length, Stage::Complete(None)),
            (None, Some(received)) => (model::acknowledged(received, record.length), Stage::Open),
        };
        Self::new(folder, id, record, State { offset, touched, stage, hash: None })
    }

    fn is_open(&self) -> bool {
        matches!(self.state.lock().stage, Stage::Open)
    }

    fn is_gone(&self) -> bool {
        matches!(self.state.lock().stage, Stage::Gone)
    }

    fn is_expired(&self, now: SystemTime) -> bool {
        model::expires(self.state.lock().touched) <= now
    }

    fn short_id(&self) -> &str {
        self.id.get(..SHORT_ID).unwrap_or_default()
    }

    /// Removes what is on the disk. Blocks; called by whoever holds the upload.
    fn remove(&self) {
        self.state.lock().stage = Stage::Gone;
        if let Err(error) = shelf::remove(&self.folder, &self.id) {
            tracing::warn!(id = self.short_id(), %error, "cannot remove an unfinished upload");
        }
    }
}

/// All uploads that can be continued.
#[derive(Debug, Default)]
pub(crate) struct Resumables(Mutex<HashMap<String, Arc<Resumable>>>);

/// The right to work on an upload; the next one waits until it is dropped.
pub(crate) struct Turn {
    upload: Arc<Resumable>,
    number: u64,
    _guard: OwnedMutexGuard<()>,
}

impl Resumables {
    /// Takes up what an earlier run left in the folder. Blocks: called once, at start.
    pub(crate) fn load(&self, folder: &Path) {
        let found = shelf::load(folder).into_iter().map(|found| (found.id.clone(), Arc::new(Resumable::found(folder, found))));
        self.0.lock().extend(found);
        self.sweep(SystemTime::now());
    }

    /// Waits for an upload; whoever works on it is asked to stop.
    ///
    /// # Errors
    /// 404 when it is unknown or expired.
    pub(crate) async fn take(&self, id: &str) -> Result<Turn, ApiError> {
        let unknown = || ApiError::not_found("There is no such upload; it may have expired");
        let upload = self.0.lock().get(id).cloned().ok_or_else(unknown)?;
        let mut number = 0;
        upload.turns.send_modify(|turns| {
            *turns += 1;
            number = *turns;
        });
        let guard = upload.gate.clone().lock_owned().await;
        if upload.is_gone() || upload.is_expired(SystemTime::now()) {
            return Err(unknown());
        }
        Ok(Turn { upload, number, _guard: guard })
    }

    /// Removes expired uploads and the oldest answers beyond those that are kept. Blocks.
    fn sweep(&self, now: SystemTime) {
        let all: Vec<_> = self.0.lock().values().cloned().collect();
        let mut complete: Vec<_> = all.iter().filter(|upload| !upload.is_open()).collect();
        complete.sort_by_key(|upload| std::cmp::Reverse(upload.state.lock().touched));
        let expired = all.iter().filter(|upload| upload.is_expired(now));
        for upload in expired.chain(complete.into_iter().skip(MAX_KEPT_ANSWERS)) {
            // One that somebody works on is alive.
            if let Ok(_guard) = upload.gate.clone().try_lock_owned() {
                tracing::info!(id = upload.short_id(), "an upload that was not continued is forgotten");
                upload.remove();
            }
        }
        self.prune();
    }

    /// Drops what is gone.
    pub(crate) fn prune(&self) {
        self.0.lock().retain(|_, upload| !upload.is_gone());
    }
}

impl Turn {
    /// What the client is told.
    pub(crate) fn status(&self) -> UploadStatus {
        let Resumable { id, record, state, .. } = &*self.upload;
        let state = state.lock();
        let uploaded = match &state.stage {
            Stage::Complete(Some(answer)) => Some(Uploaded { path: answer.path.clone(), body: answer.body.clone().into() }),
            _ => None,
        };
        UploadStatus {
            id: id.clone(),
            offset: state.offset,
            length: record.length,
            metadata: record.metadata.clone(),
            expires: model::expires(state.touched),
            uploaded,
        }
    }

    /// Gives the upload up. A file that has its place keeps it. Blocks.
    pub(crate) fn cancel(self) {
        self.upload.remove();
    }
}

/// Forgets what expires, as long as the file manager lives. Without a runtime (the contract is written by a server that never runs) nothing
/// arrives either.
pub(crate) fn forget_in_time(files: &Arc<Files>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let files = Arc::downgrade(files);
    runtime.spawn(async move {
        loop {
            tokio::time::sleep(SWEEP_PERIOD).await;
            let Some(files) = files.upgrade() else { return };
            let work = blocking(move || {
                files.resumables.sweep(SystemTime::now());
                Ok(())
            });
            // Faults are logged where they happen.
            let _ = work.await;
        }
    });
}

/// Begins an upload; see [`rpc::transfer::FileTransfer::create_upload`]. Blocks.
pub(crate) fn create(files: &Arc<Files>, new: NewUpload) -> Result<UploadStatus, ApiError> {
    check_access(files)?;
    let NewUpload { length, fields, metadata } = new;
    model::check_size(length, files.settings.max_upload_size)?;
    let (form, name) = model::understand(&fields)?;
    placing(files).check(&form, &name)?;
    files.resumables.sweep(SystemTime::now());
    let share = files.spool.share(length).ok_or_else(too_many)?;
    files.spool.check_space()?;
    drop(share);
    let folder = files.spool.folder().map_err(|error| save_failed(&error))?;
    let record = Record { length, fields, metadata, answer: None };
    let state = State { offset: 0, touched: SystemTime::now(), stage: Stage::Open, hash: None };
    let upload = Arc::new(Resumable::new(&folder, uuid::Uuid::new_v4().simple().to_string(), record, state));
    {
        let mut all = files.resumables.0.lock();
        let open: Vec<u64> = all.values().filter(|upload| upload.is_open()).map(|upload| upload.record.length).collect();
        model::admit(&open, length, files.settings.max_upload_size)?;
        all.insert(upload.id.clone(), upload.clone());
    }
    if let Err(error) = shelf::create(&folder, &upload.id, &upload.record) {
        upload.remove();
        files.resumables.prune();
        return Err(save_failed(&error));
    }
    tracing::info!(id = upload.short_id(), name, length, "an upload that can be continued begins");
    let guard = upload.gate.clone().try_lock_owned().map_err(|_| ApiError::internal("Unable to save file"))?;
    Ok(Turn { upload, number: 0, _guard: guard }.status())
}

/// Bytes that arrive.
pub(crate) struct Appending {
    files: Arc<Files>,
    upload: Arc<Resumable>,
    form: UploadForm,
    name: String,
    number: u64,
    /// Bytes that may still come.
    room: u64,
    share: Share,
    appender: Appender<Placed>,
}

/// Begins to append; see [`rpc::transfer::FileTransfer::append`].
pub(crate) async fn append(files: &Arc<Files>, id: &str, offset: u64, announced: Option<u64>) -> Result<Appending, ApiError> {
    check_access(files)?;
    let turn = files.resumables.take(id).await?;
    let (upload, number) = (turn.upload.clone(), turn.number);
    let length = upload.record.length;
    let at = upload.state.lock().offset;
    model::check_append(at, offset, announced, length)?;
    if !upload.is_open() {
        return Err(ApiError::new(protocol::ErrorKind::Conflict, "The upload is complete already"));
    }
    let (form, name) = model::understand(&upload.record.fields)?;
    let share = files.spool.share(length - at).ok_or_else(too_many)?;
    let appender = Appender::start(files.spool.clone(), turn).await?;
    Ok(Appending { files: files.clone(), upload, form, name, number, room: length - at, share, appender })
}

impl Append for Appending {
    fn chunk(&mut self, data: Bytes) -> Boxed<'_, Result<(), ApiError>> {
        Box::pin(async move {
            let size = data.len() as u64;
            self.room = self.room.checked_sub(size).ok_or_else(|| model::too_long(self.upload.record.length))?;
            self.share.arrived(size);
            self.appender.write(data).await
        })
    }

    fn superseded(&self) -> Boxed<'static, ()> {
        let (mut turns, mine) = (self.upload.turns.subscribe(), self.number);
        Box::pin(async move {
            // Cannot end before: the sender is in the upload that we hold.
            let _ = turns.wait_for(|turns| *turns != mine).await;
        })
    }

    fn finish(self: Box<Self>, call: Arc<Call>) -> Boxed<'static, Result<UploadStatus, ApiError>> {
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

async fn finish(appending: Appending, call: Arc<Call>) -> Result<UploadStatus, ApiError> {
    let Appending { files, upload, form, name, share, appender, .. } = appending;
    let print = print_wish(&files, &form);
    let here = files.clone();
    let ended = appender.finish(Box::new(move |spooled| placing(&here).put(&form, &name, spooled))).await;
    drop(share);
    files.resumables.prune();
    let Ended { turn, placed } = ended?;
    if let Some(placed) = placed {
        let uploaded = complete(&files, placed, print, &call).await?;
        let body = String::from_utf8_lossy(&uploaded.body).into_owned();
        note_answer(upload, Answer { path: uploaded.path, body }).await;
    }
    Ok(turn.status())
}

/// Keeps the answer for a client that did not get it.
async fn note_answer(upload: Arc<Resumable>, answer: Answer) {
    let noted = blocking(move || {
        let record = Record { answer: Some(answer.clone()), ..upload.record.clone() };
        upload.state.lock().stage = Stage::Complete(Some(answer));
        shelf::save(&upload.folder, &upload.id, &record).map_err(|error| save_failed(&error))
    });
    if let Err(error) = noted.await {
        tracing::warn!(%error, "the answer to an upload is not kept over a restart");
    }
}
