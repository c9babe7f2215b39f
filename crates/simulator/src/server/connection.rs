//! One client connection: a task that reads frames, a task that writes what the host queued.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::frame::Splitter;
use super::host::Event;

/// Bytes read at once.
const READ_SIZE: usize = 4096;

/// A client that takes no byte for this long is disconnected (wire document 5, section 11).
const STALL: Duration = Duration::from_secs(5);

/// Messages queued per connection; a client that lets more pile up is disconnected.
const MAX_MESSAGES: usize = 4096;

/// Bytes queued per connection; a client that lets more pile up is disconnected.
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// Names a connection for the lifetime of the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConnId(pub(crate) u64);

/// The host's end of a connection. Dropping it closes the connection after everything queued is written.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Vec<u8>>,
    queued: Arc<AtomicUsize>,
    token: CancellationToken,
}

impl Outbox {
    /// Starts the two tasks of a connection. The reader reports to `events`.
    pub(crate) fn start(id: ConnId, stream: UnixStream, events: mpsc::Sender<Event>, tasks: &TaskTracker) -> Self {
        let (reader, writer) = stream.into_split();
        let (queue, messages) = mpsc::channel(MAX_MESSAGES);
        let queued = Arc::new(AtomicUsize::new(0));
        let token = CancellationToken::new();
        tasks.spawn(read(id, reader, events, token.clone()));
        tasks.spawn(write(writer, messages, Arc::clone(&queued), token.clone()));
        Self { queue, queued, token }
    }

    /// Queues a frame. A client that lets too much pile up is cut off.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        let size = frame.len();
        let queued = self.queued.fetch_add(size, Ordering::Relaxed) + size;
        if queued > MAX_BYTES || self.queue.try_send(frame).is_err() {
            tracing::warn!("closing a connection that does not read");
            self.abort();
        }
    }

    /// Cuts the connection off at once; what is queued is lost.
    pub(crate) fn abort(&self) {
        self.token.cancel();
    }
}

async fn read(id: ConnId, mut stream: OwnedReadHalf, events: mpsc::Sender<Event>, token: CancellationToken) {
    let mut splitter = Splitter::default();
    let mut buffer = [0; READ_SIZE];
    loop {
        let size = tokio::select! {
            () = token.cancelled() => break,
            read = stream.read(&mut buffer) => match read {
                Ok(0) | Err(_) => break,
                Ok(size) => size,
            },
        };
        let Ok(frames) = splitter.push(&buffer[..size]) else { break };
        for frame in frames {
            if events.send(Event::Frame(id, frame)).await.is_err() {
                return;
            }
        }
    }
    // The host answers by dropping its end, which lets the writer finish.
    let _ = events.send(Event::Closed(id)).await;
}

async fn write(mut stream: OwnedWriteHalf, mut messages: mpsc::Receiver<Vec<u8>>, queued: Arc<AtomicUsize>, token: CancellationToken) {
    loop {
        let message = tokio::select! {
            biased;
            () = token.cancelled() => break,
            message = messages.recv() => message,
        };
        let Some(message) = message else { break };
        let written = tokio::select! {
            () = token.cancelled() => break,
            written = write_all(&mut stream, &message) => written,
        };
        queued.fetch_sub(message.len(), Ordering::Relaxed);
        if !written {
            break;
        }
    }
    token.cancel();
}

/// Writes everything as long as the client takes something now and then.
async fn write_all(stream: &mut OwnedWriteHalf, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match tokio::time::timeout(STALL, stream.write(bytes)).await {
            Ok(Ok(size)) if size > 0 => bytes = &bytes[size..],
            Ok(_) => return false,
            Err(_) => {
                tracing::warn!("closing unresponsive client");
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ConnId = ConnId(1);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_off_after_the_stall() {
        let (mut client, ours) = UnixStream::pair().unwrap();
        let (events, mut seen) = mpsc::channel(8);
        let outbox = Outbox::start(ID, ours, events, &TaskTracker::new());
        let begin = tokio::time::Instant::now();
        outbox.send(vec![b'x'; 8 * 1024 * 1024]);
        assert!(matches!(seen.recv().await, Some(Event::Closed(ID))));
        assert!((STALL..STALL * 2).contains(&begin.elapsed()));
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert!(!rest.is_empty() && rest.len() < 8 * 1024 * 1024, "what was written can still be read");
    }

    #[tokio::test]
    async fn a_dropped_outbox_writes_what_is_queued_first() {
        let (mut client, ours) = UnixStream::pair().unwrap();
        let (events, _seen) = mpsc::channel(8);
        let outbox = Outbox::start(ID, ours, events, &TaskTracker::new());
        outbox.send(b"last words".to_vec());
        drop(outbox);
        let mut rest = String::new();
        client.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "last words");
    }

    #[tokio::test]
    async fn queues_are_bounded() {
        let (_client, ours) = UnixStream::pair().unwrap();
        let (events, mut seen) = mpsc::channel(8);
        let outbox = Outbox::start(ID, ours, events, &TaskTracker::new());
        for _ in 0..=MAX_MESSAGES + 1 {
            outbox.send(b"x".to_vec());
        }
        assert!(matches!(seen.recv().await, Some(Event::Closed(ID))));
    }
}
