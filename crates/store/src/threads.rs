//! The life of the database threads: start, the queues that lead to them, and the order in which they end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::StoreError;
use crate::job::Job;
use crate::open::Connections;
use crate::readers::{self, ReadQueue};
use crate::stats::{Counters, Stats};
use crate::writer::{self, WRITE_QUEUE};

/// The way to the writer.
pub(crate) type WriteQueue = mpsc::Sender<Box<dyn Job>>;

/// Closes the queue of the readers when it is dropped.
struct ToReaders(Arc<ReadQueue>);

impl Drop for ToReaders {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The running threads. A thread ends when its queue is empty and closed, which dropping this does.
pub(crate) struct Threads {
    /// Gone once the store is closed.
    running: Mutex<Option<Running>>,
    counters: Arc<Counters>,
    sealed: Arc<AtomicBool>,
}

struct Running {
    to_writer: WriteQueue,
    /// Without readers (in memory) reads go to the writer.
    to_readers: Option<ToReaders>,
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

    /// The queue of the writer.
    pub(crate) fn writer(&self) -> Result<WriteQueue, StoreError> {
        let running = self.running.lock();
        Ok(running.as_ref().ok_or(StoreError::Closed)?.to_writer.clone())
    }

    /// The queue of the readers, if there are any.
    fn readers(&self) -> Result<Option<Arc<ReadQueue>>, StoreError> {
        let running = self.running.lock();
        Ok(running.as_ref().ok_or(StoreError::Closed)?.to_readers.as_ref().map(|queue| queue.0.clone()))
    }

    /// Sends a job to the writer; waits while the queue is full.
    pub(crate) async fn write(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        self.writer()?.send(job).await.map_err(|_| StoreError::Closed)
    }

    /// Sends a job to the readers; waits while the queue is full.
    pub(crate) async fn read(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        match self.readers()? {
            Some(queue) => queue.send(job).await,
            None => self.write(job).await,
        }
    }

    /// Transactions committed so far. Whoever was told of a write finds it counted.
    pub(crate) fn commits(&self) -> Result<u64, StoreError> {
        let running = self.running.lock();
        running.as_ref().map(|_| self.counters.commits()).ok_or(StoreError::Closed)
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
) -> Result<(Option<ToReaders>, Vec<JoinHandle<()>>), StoreError> {
    if connections.is_empty() {
        return Ok((None, Vec::new()));
    }
    let queue = Arc::new(ReadQueue::new());
    let closing = ToReaders(queue.clone());
    let start = |conn| {
        let (queue, counters) = (queue.clone(), Arc::clone(counters));
        Builder::new().name("store-reader".into()).spawn(move || readers::run(&conn, &queue, &counters))
    };
    let threads = connections.into_iter().map(start).collect::<Result<_, _>>()?;
    Ok((Some(closing), threads))
}

fn note_panic(panicked: bool) {
    if panicked {
        tracing::error!("a database thread panicked");
    }
}
