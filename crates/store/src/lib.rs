//! SQLite behind one writer thread: group commit, migrations, namespaces.
//!
//! A [`Store`] is a cheap handle. Closures travel to database threads and their results travel back; no async worker
//! ever blocks on the disk. [`Store::write`] answers after the commit, so what was acknowledged is on the disk, and
//! [`Store::read`] sees everything that was acknowledged before it was called.
//!
//! ```text
//! write(closure) ─► bounded queue ─► writer thread: BEGIN, a savepoint per job, COMMIT, answers
//! read(closure)  ─► bounded queue ─► reader threads: one snapshot per job
//! ```
//!
//! Other crates bring their own tables as a [`Schema`] and use `rusqlite` through the re-export here. JSON records
//! that need no table of their own live in [`Namespaces`].

mod damage;
mod error;
mod job;
mod migrate;
pub mod namespace;
mod open;
mod readers;
mod stats;
mod threads;
mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

pub use rusqlite;
use rusqlite::Connection;

pub use error::{ErrorKind, StoreError};
pub use migrate::{Migration, Schema};
pub use namespace::{Access, Key, Namespace, Namespaces};
pub use open::BUSY_TIMEOUT;
pub use stats::Stats;
use threads::Threads;

/// The database. Clones share the same threads.
///
/// When the last clone is dropped without [`Store::close`], the threads finish what is queued and end on their own.
#[derive(Clone)]
pub struct Store {
    threads: Arc<Threads>,
}

/// A freshly opened store and what the owner should hear about it.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// Complete sentences for the owner, for example that a damaged file was set aside.
    pub warnings: Vec<String>,
    /// Whether the database is new (first start, or the old one was damaged).
    pub created: bool,
}

impl Store {
    /// Opens the database file at `path` and brings its tables to the newest version; makes folder and file if needed.
    /// Blocks for a few milliseconds: meant for the start of the program.
    ///
    /// A damaged file is renamed to `<name>.damaged-YYYYMMDD-HHMMSS` and replaced by a new one, with a warning.
    ///
    /// # Errors
    /// [`StoreError::Location`] when no database can be kept there: go on with [`Store::in_memory`] and warn.
    /// [`StoreError::Newer`] and [`StoreError::Foreign`] leave the file untouched. [`StoreError::Migration`] when a
    /// step of `schemas` fails (its changes are rolled back), and any I/O error.
    pub fn open(path: &Path, schemas: &[Schema]) -> Result<Opened, StoreError> {
        let connections = open::file(path, &all_schemas(schemas))?;
        let (warnings, created) = (connections.warnings.clone(), connections.created);
        let store = Self { threads: Arc::new(Threads::start(connections)?) };
        Ok(Opened { store, warnings, created })
    }

    /// A store that lives only as long as its handles: for tests, and when no place on the disk is usable.
    ///
    /// # Errors
    /// [`StoreError::Migration`] when a step of `schemas` fails.
    pub fn in_memory(schemas: &[Schema]) -> Result<Self, StoreError> {
        let connections = open::memory(&all_schemas(schemas))?;
        Ok(Self { threads: Arc::new(Threads::start(connections)?) })
    }

    /// Runs `work` on the writer thread inside a transaction and answers when its changes are on the disk.
    ///
    /// If `work` returns an error or panics, its own changes are rolled back and nobody else's. `work` must not begin
    /// or end transactions. Waits while the queue is full. Once queued, the job runs even if the caller goes away.
    ///
    /// # Errors
    /// Those of `work`; the transaction's ([`StoreError::Full`], [`StoreError::Io`], ...); [`StoreError::Closed`].
    pub async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (job, answer) = job::pack(work);
        self.threads.writer()?.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Runs `work` on a reader thread, on one consistent snapshot that contains every write acknowledged before.
    ///
    /// `work` cannot change anything. Waits while the queue is full. A caller that goes away cancels a waiting job.
    ///
    /// # Errors
    /// Those of `work`; [`StoreError::Closed`].
    pub async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (job, answer) = job::pack(work);
        self.threads.readers()?.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Finishes what is queued, folds the WAL into the file and ends the threads. Later calls on any clone answer
    /// [`StoreError::Closed`]; a second `close` returns at once.
    pub async fn close(&self) {
        let Some(ending) = self.threads.end() else { return };
        // Joining blocks. If the runtime is going down, the threads still end by themselves.
        if let Err(error) = tokio::task::spawn_blocking(move || ending.join()).await {
            tracing::warn!(error = %error, "database threads not awaited");
        }
    }

    /// What the store has done so far.
    pub fn stats(&self) -> Stats {
        self.threads.stats()
    }
}

/// Our own tables come first, then those of the other crates.
fn all_schemas(others: &[Schema]) -> Vec<Schema> {
    std::iter::once(namespace::SCHEMA).chain(others.iter().copied()).collect()
}
