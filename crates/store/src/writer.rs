//! The writer thread: takes all waiting jobs, commits them in one transaction, then answers them all (group commit).
//!
//! One fsync is the price of a commit, so a burst of writes costs one instead of many (and wears an SD card less).
//! Every job runs in a savepoint of its own: a job that fails takes nothing but its own changes with it.

use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::StoreError;
use crate::job::Job;
use crate::stats::Counters;

/// Jobs that may wait for the writer; whoever comes later awaits a free place.
pub(crate) const WRITE_QUEUE: usize = 64;

/// Jobs in one transaction at most: bounds how long the first of them waits for its answer.
const MAX_BATCH: usize = WRITE_QUEUE;

/// Serves the queue until every sender is gone and the queue is empty, then folds the WAL into the database file.
pub(crate) fn run(conn: Connection, mut queue: mpsc::Receiver<Box<dyn Job>>, counters: &Counters, sealed: &AtomicBool) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while queue.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
        // A lost transaction serves only part of the batch; the rest gets a new one. So does what follows a job that runs alone.
        while !batch.is_empty() {
            let (served, fate) = serve(&conn, &mut batch, sealed);
            counters.transaction(served, fate.is_ok());
            for job in batch.drain(..served) {
                job.answer(fate.clone());
            }
        }
    }
    close(conn);
}

/// Runs jobs from the front: one alone, or as many as may share a transaction.
fn serve(conn: &Connection, batch: &mut [Box<dyn Job>], sealed: &AtomicBool) -> (usize, Result<(), StoreError>) {
    if sealed.load(Ordering::Acquire) {
        return (batch.len(), Err(StoreError::Replaced));
    }
    let shared = batch.iter().take_while(|job| !job.is_exclusive()).count();
    match batch {
        [job, ..] if shared == 0 => (1, run_alone(conn, job.as_mut())),
        _ => transact(conn, &mut batch[..shared]),
    }
}

/// Runs a job without a transaction around it. The job keeps its own error; the one returned here is of what it left behind.
fn run_alone(conn: &Connection, job: &mut dyn Job) -> Result<(), StoreError> {
    let _kept_by_the_job = job.run(conn);
    if conn.is_autocommit() {
        return Ok(());
    }
    roll_back(conn);
    Err(StoreError::Internal("a job left a transaction open".to_owned()))
}

/// Runs jobs in one transaction. Returns for how many of them (from the front) that transaction decided, and how.
fn transact(conn: &Connection, batch: &mut [Box<dyn Job>]) -> (usize, Result<(), StoreError>) {
    if let Err(error) = conn.execute_batch("BEGIN IMMEDIATE") {
        return (batch.len(), Err(error.into()));
    }
    for (index, job) in batch.iter_mut().enumerate() {
        if let Err(error) = run_isolated(conn, job.as_mut()) {
            roll_back(conn);
            return (index + 1, Err(error));
        }
    }
    let committed = conn.execute_batch("COMMIT").map_err(StoreError::from);
    if committed.is_err() {
        roll_back(conn);
    }
    (batch.len(), committed)
}

/// Runs one job in a savepoint. An error means that the whole transaction is lost: on a full disk or an I/O error
/// SQLite may roll back everything on its own.
fn run_isolated(conn: &Connection, job: &mut dyn Job) -> Result<(), StoreError> {
    conn.execute_batch("SAVEPOINT job")?;
    let verdict = job.run(conn);
    if conn.is_autocommit() {
        let own_fault = || StoreError::Internal("a job ended the transaction".to_owned());
        return Err(verdict.err().unwrap_or_else(own_fault));
    }
    let end = if verdict.is_ok() { "RELEASE job" } else { "ROLLBACK TO job; RELEASE job" };
    Ok(conn.execute_batch(end)?)
}

fn roll_back(conn: &Connection) {
    if !conn.is_autocommit()
        && let Err(error) = conn.execute_batch("ROLLBACK")
    {
        tracing::error!(error = %error, "cannot roll back a database transaction");
    }
}

fn close(conn: Connection) {
    let checkpoint = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if let Err(error) = checkpoint.and_then(|()| conn.close().map_err(|(_, error)| error)) {
        // Nothing is lost: the next open reads the WAL.
        tracing::warn!(error = %error, "database not closed cleanly");
    }
}
