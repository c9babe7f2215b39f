//! The life of the database threads: start, the queues that lead to them, and the order in which they end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::job::Job;
use crate::open::Connections;
use crate::readers::{self, READ_QUEUE};
use crate::stats::{Counters, Stats};
use crate::writer::{self, WRITE_QUEUE};
use crate::{StoreError, readers::SharedQueue};

/// The way to a thread.
pub(crate) type Queue = mpsc::Sender<Box<dyn Job>>;

/// The running threads. A thread ends when its queue is empty and has no senders left, so dropping this is enough.
pub(crate) struct Threads {
    /// Gone once the store is closed.
    running: Mutex<Option<Running>>,
    counters: Arc<Counters>,
    sealed: Arc<AtomicBool>,
}

struct Running {
    to_writer: Queue,
    /// Without readers (in memory) reads go to the writer.
    to_readers: Option<Queue>,
    writer: JoinHandle<()>,
    readers: Vec<JoinHandle<()>>,
}

/// Threads that were told to end.
pub(crate) struct Ending(Running);

impl Threads {
    /// Starts one thread per connection.
    pub(crate) fn start(connections: Connections) -> Result<Self, StoreError> {
        let counters = Arc::new(Counters::default());
        let (to_readers, readers) = start_readers(connections.readers, &counters)?;
        let (to_writer, queue) = mpsc::channel(WRITE_QUEUE);
        let sealed = Arc::new(AtomicBool::new(false));
        let (conn, count, shut) = (connections.writer, Arc::clone(&counters), Arc::clone(&sealed));
        let writer = Builder::new().name("store-writer".into()).spawn(move || writer::run(conn, queue, &count, &shut))?;
        let running = Running { to_writer, to_readers, writer, readers };
        Ok(Self { running: Mutex::new(Some(running)), counters, sealed })
    }

    /// The queue for write jobs.
    pub(crate) fn writer(&self) -> Result<Queue, StoreError> {
        let running = self.running.lock();
        Ok(running.as_ref().ok_or(StoreError::Closed)?.to_writer.clone())
    }

    /// The queue for read jobs.
    pub(crate) fn readers(&self) -> Result<Queue, StoreError> {
        let running = self.running.lock();
        let running = running.as_ref().ok_or(StoreError::Closed)?;
        Ok(running.to_readers.as_ref().unwrap_or(&running.to_writer).clone())
    }

    /// Closes the store for new jobs. `None` if it was closed already.
    pub(crate) fn end(&self) -> Option<Ending> {
        self.running.lock().take().map(Ending)
    }

    /// Set by a job on the writer thread: no later job changes anything any more.
    pub(crate) fn seal(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.sealed)
    }

    /// The counters.
    pub(crate) fn stats(&self) -> Stats {
        self.counters.snapshot()
    }
}

impl Ending {
    /// Waits until every accepted job is answered and the files are closed. Readers go first: the writer can fold the
    /// whole WAL into the file only when nobody reads.
    pub(crate) fn join(self) {
        let Running { to_writer, to_readers, writer, readers } = self.0;
        drop(to_readers);
        for reader in readers {
            note_panic(reader.join().is_err());
        }
        drop(to_writer);
        note_panic(writer.join().is_err());
    }
}

fn start_readers(
    connections: Vec<rusqlite::Connection>,
    counters: &Arc<Counters>,
) -> Result<(Option<Queue>, Vec<JoinHandle<()>>), StoreError> {
    if connections.is_empty() {
        return Ok((None, Vec::new()));
    }
    let (sender, queue) = mpsc::channel(READ_QUEUE);
    let queue = Arc::new(SharedQueue::new(queue));
    let start = |conn| {
        let (queue, counters) = (Arc::clone(&queue), Arc::clone(counters));
        Builder::new().name("store-reader".into()).spawn(move || readers::run(&conn, &queue, &counters))
    };
    let threads = connections.into_iter().map(start).collect::<Result<_, _>>()?;
    Ok((Some(sender), threads))
}

fn note_panic(panicked: bool) {
    if panicked {
        tracing::error!("a database thread panicked");
    }
}
