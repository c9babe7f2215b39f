//! The reader threads: each has a read-only connection, both take jobs from one queue.
//!
//! A job sees one consistent snapshot, which contains everything acknowledged before the job was sent: in WAL mode a
//! transaction that begins after a commit sees that commit.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::StoreError;
use crate::job::Job;
use crate::stats::Counters;

/// Reader threads. Two: one long read does not delay the short ones, and each costs a page cache.
pub(crate) const READERS: usize = 2;

/// Jobs that may wait for a reader; whoever comes later awaits a free place.
pub(crate) const READ_QUEUE: usize = 64;

/// The way to the readers. A job wakes one thread: a channel behind a lock would wake a second one, to wait in place of the first.
pub(crate) struct ReadQueue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    places: Semaphore,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Box<dyn Job>>,
    closed: bool,
}

impl ReadQueue {
    pub(crate) fn new() -> Self {
        Self { waiting: Mutex::default(), filled: Condvar::new(), places: Semaphore::new(READ_QUEUE) }
    }

    /// Adds a job; waits while the queue is full.
    pub(crate) async fn send(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let place = self.places.acquire().await.map_err(|_| StoreError::Closed)?;
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return Err(StoreError::Closed);
        }
        place.forget();
        waiting.jobs.push_back(job);
        drop(waiting);
        self.filled.notify_one();
        Ok(())
    }

    /// The next job, as soon as there is one; none when the queue is closed and empty. Blocks.
    fn next(&self) -> Option<Box<dyn Job>> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                self.places.add_permits(1);
                return Some(job);
            }
            if waiting.closed {
                return None;
            }
            self.filled.wait(&mut waiting);
        }
    }

    /// Takes no more jobs. Those that wait are still served.
    pub(crate) fn close(&self) {
        self.waiting.lock().closed = true;
        self.places.close();
        self.filled.notify_all();
    }
}

/// Serves the queue until it is closed and empty.
pub(crate) fn run(conn: &Connection, queue: &ReadQueue, counters: &Counters) {
    while let Some(mut job) = queue.next() {
        if job.abandoned() {
            continue;
        }
        let fate = snapshot(conn, job.as_mut());
        counters.read();
        job.answer(fate);
    }
}

/// Runs a job in a read transaction. The job keeps its own error; the one returned here is the transaction's.
fn snapshot(conn: &Connection, job: &mut dyn Job) -> Result<(), StoreError> {
    conn.execute_batch("BEGIN DEFERRED")?;
    let _kept_by_the_job = job.run(conn);
    if conn.is_autocommit() {
        return Ok(());
    }
    Ok(conn.execute_batch("ROLLBACK")?)
}
