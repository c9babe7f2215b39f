//! The reader threads: each has a read-only connection, both take jobs from one queue.
//!
//! A job sees one consistent snapshot, which contains everything acknowledged before the job was sent: in WAL mode a
//! transaction that begins after a commit sees that commit.

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::StoreError;
use crate::job::Job;
use crate::stats::Counters;

/// Reader threads. Two: one long read does not delay the short ones, and each costs a page cache.
pub(crate) const READERS: usize = 2;

/// Jobs that may wait for a reader; whoever comes later awaits a free place.
pub(crate) const READ_QUEUE: usize = 64;

/// The queue that all readers share. A free reader waits inside `recv` with the lock held, the others wait for the lock.
pub(crate) type SharedQueue = Mutex<mpsc::Receiver<Box<dyn Job>>>;

/// Serves the queue until every sender is gone and the queue is empty.
pub(crate) fn run(conn: &Connection, queue: &SharedQueue, counters: &Counters) {
    loop {
        // A statement of its own, so that the lock is released before the job runs.
        let next = queue.lock().blocking_recv();
        let Some(mut job) = next else { return };
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
