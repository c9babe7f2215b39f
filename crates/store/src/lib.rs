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

mod backup;
mod damage;
mod error;
mod files;
mod foreign;
pub mod inspect;
mod job;
mod kept;
mod migrate;
pub mod namespace;
mod open;
mod readers;
mod restore;
mod stats;
mod threads;
mod writer;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

pub use rusqlite;
use rusqlite::Connection;

pub use backup::{Contents, is_unfinished};
pub use error::{ErrorKind, StoreError};
pub use foreign::{Foreign, ForeignRecord};
pub use kept::{KeptAnswers, MAX_KEPT_ANSWERS, MAX_KEPT_BYTES};
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
    /// Nowhere for a database in memory.
    place: Option<Arc<Place>>,
}

/// Where the database is, and what it must be.
struct Place {
    path: PathBuf,
    schemas: Vec<Schema>,
}

/// What [`Store::compact`] has achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes before.
    pub previous_size: u64,
    /// Bytes after.
    pub new_size: u64,
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
        Self::open_at(path, None, schemas)
    }

    /// Like [`Store::open`], but a damaged file is replaced by the newest good one in the folder `backups`.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open_or_restore(path: &Path, backups: &Path, schemas: &[Schema]) -> Result<Opened, StoreError> {
        Self::open_at(path, Some(backups), schemas)
    }

    fn open_at(path: &Path, backups: Option<&Path>, schemas: &[Schema]) -> Result<Opened, StoreError> {
        let schemas = all_schemas(schemas);
        let connections = open::file(path, backups, &schemas)?;
        let (warnings, created) = (connections.warnings.clone(), connections.created);
        let place = Place { path: path.to_owned(), schemas };
        let store = Self { threads: Arc::new(Threads::start(connections)?), place: Some(Arc::new(place)) };
        Ok(Opened { store, warnings, created })
    }

    /// True when an earlier database was lost, so that what is not here may have been there: a damaged file was set aside beside this one and
    /// nobody has removed it since, or nothing on the disk could be used.
    #[must_use]
    pub fn may_lack_records(&self) -> bool {
        self.place.as_ref().is_none_or(|place| damage::was_set_aside(&place.path))
    }

    /// A store that lives only as long as its handles: for tests, and when no place on the disk is usable.
    ///
    /// # Errors
    /// [`StoreError::Migration`] when a step of `schemas` fails.
    pub fn in_memory(schemas: &[Schema]) -> Result<Self, StoreError> {
        let connections = open::memory(&all_schemas(schemas))?;
        Ok(Self { threads: Arc::new(Threads::start(connections)?), place: None })
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
        self.threads.write(job).await?;
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
        self.threads.read(job).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Like [`Store::read`], but an answer to the same question counts as long as nothing was committed since it was read. (In memory every
    /// reading counts as a commit.)
    ///
    /// # Errors
    /// Those of [`Store::read`]; they are not kept.
    pub async fn recall<Q, T, F>(&self, kept: &KeptAnswers<Q, T>, question: Q, work: F) -> Result<T, StoreError>
    where
        Q: PartialEq,
        T: Clone + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let commits = self.threads.commits()?;
        if let Some(answer) = kept.get(&question, commits) {
            return Ok(answer);
        }
        let answer = self.read(work).await?;
        kept.put(question, commits, &answer);
        Ok(answer)
    }

    /// Runs `work` on the writer thread alone and outside of a transaction, for what cannot be done inside of one.
    async fn alone<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (job, answer) = job::pack_exclusive(work);
        self.threads.write(job).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Gives the space of what was deleted back to the disk. Writers wait meanwhile, readers do not.
    ///
    /// # Errors
    /// [`StoreError::Full`]: about twice the size of the database must be free.
    pub async fn compact(&self) -> Result<Compacted, StoreError> {
        self.alone(|conn| {
            let previous_size = open::size(conn)?;
            open::vacuum(conn)?;
            Ok(Compacted { previous_size, new_size: open::size(conn)? })
        })
        .await
    }

    /// Writes a copy of everything acknowledged so far to `target`, replacing what is there. The copy is opened and checked
    /// completely before it gets its name. Nobody waits for it.
    ///
    /// # Errors
    /// [`StoreError::Full`] and other faults of the disk, [`StoreError::Corrupt`] when the database itself is damaged,
    /// [`StoreError::NoFile`]; then `target` is as it was.
    pub async fn backup(&self, target: PathBuf) -> Result<(), StoreError> {
        let place = self.place()?;
        blocking(move || backup::write(&place.path, &target, &place.schemas)).await
    }

    /// Prepares the file at `source` to take the place of the database when it is opened next. From the answer on
    /// nothing is changed any more: writers get [`StoreError::Replaced`].
    ///
    /// # Errors
    /// [`StoreError::BadBackup`] when the file is no healthy database of this program and version; [`StoreError::Full`] and
    /// other faults of the disk; [`StoreError::NoFile`]. Then everything is as it was.
    pub async fn restore(&self, source: PathBuf) -> Result<Contents, StoreError> {
        let place = self.place()?;
        let prepared = place.clone();
        let contents = blocking(move || restore::prepare(&prepared.path, &source, &prepared.schemas)).await?;
        let sealed = self.threads.seal();
        self.alone(move |_| {
            restore::decide(&place.path)?;
            sealed.store(true, Ordering::Release);
            Ok(())
        })
        .await?;
        Ok(contents)
    }

    /// When the database was last written to, as far as the file system knows. Blocks.
    pub fn last_change(&self) -> Option<SystemTime> {
        let place = self.place.as_ref()?;
        let changed = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
        changed(&place.path).max(changed(&files::with_suffix(&place.path, "-wal")))
    }

    fn place(&self) -> Result<Arc<Place>, StoreError> {
        self.place.clone().ok_or(StoreError::NoFile)
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

/// Long work on files, away from the threads of the runtime and of the database.
async fn blocking<T, F>(work: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, StoreError> + Send + 'static,
{
    let ended = |_| StoreError::Internal("the work on the database's files broke off".to_owned());
    tokio::task::spawn_blocking(work).await.map_err(ended)?
}

/// Our own tables come first, then those of the other crates.
fn all_schemas(others: &[Schema]) -> Vec<Schema> {
    std::iter::once(namespace::SCHEMA).chain(others.iter().copied()).collect()
}
