//! One blocking writer per upload: takes chunks from a bounded queue, hashes and writes them in one pass, and ends with whatever is to be done with
//! the finished file. The temporary file lives on this thread only, so every way out, a dropped upload included, removes it here.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use bytes::Bytes;
use protocol::{ApiError, ErrorKind};
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::spool::Spool;
use crate::disk::TempFile;
use crate::refusal::failed;

/// Chunks that wait for the disk; with the transport's chunk size this bounds the memory of an upload.
pub(super) const QUEUED_CHUNKS: usize = 8;
/// Smaller chunks are gathered up to this many bytes before they are written.
pub(super) const WRITE_BYTES: usize = 64 * 1024;
/// After so many bytes the disk gets its turn: a flood of unwritten pages would hold up everybody else who writes, the firmware host's log included,
/// and let the last sync take as long as the whole file.
pub(super) const SYNC_BYTES: usize = 32 * 1024 * 1024;

/// Everything that arrived.
pub(crate) struct Spooled {
    /// The file, written but not synced.
    pub(crate) temp: TempFile,
    /// Its SHA-256 in lower-case hex.
    pub(crate) checksum: String,
}

type Ending<T> = Box<dyn FnOnce(Spooled) -> Result<T, ApiError> + Send>;

enum Message<T> {
    Data(Bytes),
    End(Ending<T>),
}

/// The async side of a writer.
pub(crate) struct Writer<T> {
    queue: mpsc::Sender<Message<T>>,
    work: Option<JoinHandle<Result<T, ApiError>>>,
}

impl<T: Send + 'static> Writer<T> {
    /// Starts a writer; ready when it has checked the space and made its file.
    ///
    /// # Errors
    /// 507 when the disk cannot hold what was announced, 500 when the file cannot be made.
    pub(crate) async fn start(spool: Arc<Spool>) -> Result<Self, ApiError> {
        let (queue, chunks) = mpsc::channel(QUEUED_CHUNKS);
        let (ready, is_ready) = oneshot::channel();
        let work = tokio::task::spawn_blocking(move || {
            let opened = spool.check_space().and_then(|()| spool.create().map_err(|error| save_failed(&error)));
            match opened {
                Ok(temp) => {
                    // Nobody listens when the upload was dropped already; then the queue is closed too.
                    let _ = ready.send(Ok(()));
                    write(temp, chunks)
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    Err(gone())
                }
            }
        });
        is_ready.await.map_err(|_| gone())??;
        Ok(Self { queue, work: Some(work) })
    }

    /// Hands a chunk over; waits when the disk is behind.
    ///
    /// # Errors
    /// What made the writer fail: 507 when the disk is full.
    pub(crate) async fn write(&mut self, data: Bytes) -> Result<(), ApiError> {
        match self.queue.send(Message::Data(data)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.outcome().await.err().unwrap_or_else(gone)),
        }
    }

    /// Runs `ending` on the writer's thread when everything is written.
    ///
    /// # Errors
    /// What made the writer or the ending fail.
    pub(crate) async fn finish(mut self, ending: Ending<T>) -> Result<T, ApiError> {
        // When the writer has failed the send fails too; the outcome tells why.
        let _ = self.queue.send(Message::End(ending)).await;
        self.outcome().await
    }

    async fn outcome(&mut self) -> Result<T, ApiError> {
        match self.work.take() {
            Some(work) => work.await.unwrap_or_else(|error| {
                tracing::error!(%error, "an upload's writer ended abnormally");
                Err(gone())
            }),
            None => Err(gone()),
        }
    }
}

fn write<T>(temp: TempFile, mut chunks: mpsc::Receiver<Message<T>>) -> Result<T, ApiError> {
    let mut hash = Sha256::new();
    let mut out = BufWriter::with_capacity(WRITE_BYTES, &temp.file);
    let mut unsynced = 0;
    while let Some(message) = chunks.blocking_recv() {
        match message {
            Message::Data(data) => {
                hash.update(&data);
                out.write_all(&data).map_err(|error| save_failed(&error))?;
                unsynced += data.len();
                if unsynced >= SYNC_BYTES {
                    out.flush().and_then(|()| temp.file.sync_data()).map_err(|error| save_failed(&error))?;
                    unsynced = 0;
                }
            }
            Message::End(ending) => {
                out.flush().map_err(|error| save_failed(&error))?;
                drop(out);
                return ending(Spooled { temp, checksum: hex(&hash.finalize()) });
            }
        }
    }
    // The upload was dropped. Nothing is written any more for a file that goes away now.
    drop(out.into_parts());
    Err(gone())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |text, byte| text + &format!("{byte:02x}"))
}

pub(crate) fn save_failed(error: &std::io::Error) -> ApiError {
    failed(ErrorKind::Internal, "Unable to save file", error)
}

pub(super) fn gone() -> ApiError {
    ApiError::internal("Unable to save file: the upload was given up")
}
