//! The blocking side of an append: takes chunks from a bounded queue and writes them behind what is there. However it ends, by the end of the
//! request, of its connection or of the disk, what has arrived is synced and counted before anybody else gets the upload.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use protocol::{ApiError, ErrorKind};
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::model::acknowledged;
use super::{Stage, Turn, model, shelf};
use crate::disk::TempFile;
use crate::upload::spool::Spool;
use crate::upload::writer::{QUEUED_CHUNKS, SYNC_BYTES, Spooled, WRITE_BYTES, gone, hex, save_failed};

/// What is done with a file whose last byte has arrived.
type Ending<T> = Box<dyn FnOnce(Spooled) -> Result<T, ApiError> + Send>;

enum Message<T> {
    Data(Bytes),
    End(Ending<T>),
}

/// What an append came to.
pub(super) struct Ended<T> {
    /// The upload is still held.
    pub(super) turn: Turn,
    /// What the ending gave, when everything has arrived.
    pub(super) placed: Option<T>,
}

/// The async side.
pub(super) struct Appender<T> {
    queue: mpsc::Sender<Message<T>>,
    work: Option<JoinHandle<Result<Ended<T>, ApiError>>>,
}

impl<T: Send + 'static> Appender<T> {
    /// Starts behind what is there; ready when the space is checked and the file is open.
    ///
    /// # Errors
    /// 507 when the disk cannot hold the rest, 409 when an earlier run of the server still writes, 500 when the file cannot be opened.
    pub(super) async fn start(spool: Arc<Spool>, turn: Turn) -> Result<Self, ApiError> {
        let (queue, chunks) = mpsc::channel(QUEUED_CHUNKS);
        let (ready, is_ready) = oneshot::channel();
        let work = tokio::task::spawn_blocking(move || match spool.check_space().and_then(|()| Target::open(&turn)) {
            Ok(target) => {
                // Nobody listens when the request was dropped already; then the queue is closed too.
                let _ = ready.send(Ok(()));
                run(turn, target, chunks)
            }
            Err(error) => {
                let _ = ready.send(Err(error));
                Err(gone())
            }
        });
        is_ready.await.map_err(|_| gone())??;
        Ok(Self { queue, work: Some(work) })
    }

    /// Hands a chunk over; waits when the disk is behind.
    pub(super) async fn write(&mut self, data: Bytes) -> Result<(), ApiError> {
        match self.queue.send(Message::Data(data)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.outcome().await.err().unwrap_or_else(gone)),
        }
    }

    /// Ready when everything is on the disk; `ending` runs when these were the last bytes.
    pub(super) async fn finish(mut self, ending: Ending<T>) -> Result<Ended<T>, ApiError> {
        // When the thread has failed the send fails too; the outcome tells why.
        let _ = self.queue.send(Message::End(ending)).await;
        self.outcome().await
    }

    async fn outcome(&mut self) -> Result<Ended<T>, ApiError> {
        match self.work.take() {
            Some(work) => work.await.unwrap_or_else(|error| {
                tracing::error!(%error, "an append ended abnormally");
                Err(gone())
            }),
            None => Err(gone()),
        }
    }
}

/// The file, positioned, and the checksum of what is before that position, as far as it is known and wanted.
struct Target {
    out: BufWriter<File>,
    hash: Option<Sha256>,
    written: u64,
    unsynced: usize,
}

impl Target {
    fn open(turn: &Turn) -> Result<Self, ApiError> {
        let upload = &turn.upload;
        // Taken before the file is touched: others ask for the state on threads that must not wait for the disk.
        let (offset, hash) = {
            let mut state = upload.state.lock();
            (state.offset, state.hash.take())
        };
        let failed = |error: io::Error| save_failed(&error);
        let mut file = File::options().read(true).write(true).open(shelf::data_path(&upload.folder, &upload.id)).map_err(failed)?;
        file.try_lock().map_err(|_| ApiError::new(ErrorKind::Conflict, "The upload is still being written; try again"))?;
        // What was not acknowledged comes again.
        file.set_len(offset).map_err(failed)?;
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let hash = match hash {
            Some((hash, at)) if at == offset => Some(hash),
            _ if offset == 0 => upload.wants_checksum.then(Sha256::new),
            _ => None,
        };
        Ok(Self { out: BufWriter::with_capacity(WRITE_BYTES, file), hash, written: offset, unsynced: 0 })
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        if let Some(hash) = &mut self.hash {
            hash.update(data);
        }
        self.written += data.len() as u64;
        self.out.write_all(data)?;
        self.unsynced += data.len();
        if self.unsynced >= SYNC_BYTES {
            self.unsynced = 0;
            self.out.flush()?;
            self.out.get_ref().sync_data()?;
        }
        Ok(())
    }
}

fn run<T>(turn: Turn, mut target: Target, mut chunks: mpsc::Receiver<Message<T>>) -> Result<Ended<T>, ApiError> {
    let mut result = Ok(None);
    while let Some(message) = chunks.blocking_recv() {
        match message {
            Message::Data(data) => {
                if let Err(error) = target.write(&data) {
                    result = Err(error);
                    break;
                }
            }
            Message::End(ending) => {
                result = Ok(Some(ending));
                break;
            }
        }
    }
    let Target { mut out, hash, written, .. } = target;
    let flushed = out.flush();
    // After a fault the rest of the buffer is lost anyway.
    let (file, _) = out.into_parts();
    let upload = turn.upload.clone();
    let on_disk = file.sync_data().and_then(|()| file.metadata()).map_err(|error| save_failed(&error))?.len();
    {
        let mut state = upload.state.lock();
        state.offset = acknowledged(on_disk, upload.record.length);
        state.touched = SystemTime::now();
        state.hash = hash.clone().filter(|_| on_disk == written).map(|hash| (hash, on_disk));
    }
    let ending = result.and_then(|ending| flushed.map(|()| ending)).map_err(|error| save_failed(&error))?.ok_or_else(gone)?;
    if on_disk < upload.record.length {
        return Ok(Ended { turn, placed: None });
    }
    let placed = place(&turn, file, hash, ending);
    if placed.as_ref().is_err_and(model::is_final) {
        upload.remove();
    }
    Ok(Ended { placed: Some(placed?), turn })
}

/// Everything is there: the file gets its place.
fn place<T>(turn: &Turn, mut file: File, hash: Option<Sha256>, ending: Ending<T>) -> Result<T, ApiError> {
    let upload = &turn.upload;
    let checksum = match hash {
        _ if !upload.wants_checksum => String::new(),
        Some(hash) => hex(&hash.finalize()),
        // The server was started anew meanwhile.
        None => checksum_of(&mut file).map_err(|error| save_failed(&error))?,
    };
    let temp = TempFile::that_stays(shelf::data_path(&upload.folder, &upload.id), file);
    let placed = ending(Spooled { temp, checksum })?;
    // A container, or a copy to another file system, is not moved.
    if let Err(error) = shelf::remove_data(&upload.folder, &upload.id) {
        tracing::warn!(id = upload.short_id(), %error, "cannot remove the content of a complete upload");
    }
    let mut state = upload.state.lock();
    state.offset = upload.record.length;
    state.stage = Stage::Complete(None);
    Ok(placed)
}

fn checksum_of(file: &mut File) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::with_capacity(WRITE_BYTES, file);
    let mut hash = Sha256::new();
    let mut piece = vec![0; WRITE_BYTES];
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&piece[..read]),
        }
    }
}
