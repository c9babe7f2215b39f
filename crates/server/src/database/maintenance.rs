//! Compact, back up, restore: one at a time, and not during a print. Document 1, *Database*, rules 4 and 5.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Zoned;
use protocol::ApiError;
use store::{Compacted, Contents, Store, StoreError};
use tokio::sync::Mutex;

use super::backups::{automatic_name, default_name};
use super::{Backups, DatabaseParts, to_api};

/// The care for the database's file.
pub(super) struct Maintenance {
    pub(super) store: Store,
    pub(super) parts: DatabaseParts,
    pub(super) backups: Arc<Backups>,
    /// Held by whoever works on the file.
    work: Mutex<()>,
    /// A restored database waits for the restart.
    is_replaced: AtomicBool,
}

impl Maintenance {
    pub(super) fn new(store: Store, parts: DatabaseParts) -> Self {
        let backups = Arc::new(Backups::new(parts.backups.clone()));
        Self { store, parts, backups, work: Mutex::default(), is_replaced: AtomicBool::new(false) }
    }

    /// Gives free space back to the disk.
    pub(super) async fn compact(&self) -> Result<Compacted, ApiError> {
        let _work = self.work.lock().await;
        self.refuse("compacted")?;
        self.store.compact().await.map_err(to_api)
    }

    /// Makes a backup and gives its path.
    pub(super) async fn back_up(&self, name: Option<String>) -> Result<PathBuf, ApiError> {
        let target = self.backups.target(&name.unwrap_or_else(|| default_name(&Zoned::now())))?;
        let _work = self.work.lock().await;
        self.refuse("backed up")?;
        self.disk(Backups::prepare).await?;
        self.store.backup(target.clone()).await.map_err(to_api)?;
        Ok(target)
    }

    /// Removes a backup and gives the path that it had.
    pub(super) async fn delete(&self, name: String) -> Result<PathBuf, ApiError> {
        let _work = self.work.lock().await;
        let path = self.backups.existing(&name)?;
        let removed = path.clone();
        self.disk(move |_| std::fs::remove_file(removed)).await?;
        Ok(path)
    }

    /// Lets a backup take the place of the database and asks for the restart that finishes it. The present state is backed up
    /// before, so that a mistake can be undone.
    pub(super) async fn restore(&self, name: String) -> Result<Contents, ApiError> {
        let _work = self.work.lock().await;
        self.refuse("restored")?;
        // A backup that is not there is a wrong argument here, and a missing thing where it is deleted (wire/1-core.md section 4.3).
        let source = self.backups.existing(&name).map_err(|error| ApiError::bad_request(error.message))?;
        match self.automatic().await {
            // Then a restore is what helps.
            Err(error @ StoreError::Corrupt(_)) => tracing::warn!(%error, "no backup was made before the restore"),
            other => drop(other.map_err(to_api)?),
        }
        let contents = self.store.restore(source).await.map_err(to_api)?;
        self.is_replaced.store(true, Ordering::Release);
        tracing::info!(backup = name, "a backup takes the place of the database; restarting");
        (self.parts.restart)();
        self.rotate().await;
        Ok(contents)
    }

    /// Makes an automatic backup unless other work is under way; older ones make room.
    pub(super) async fn automatic_backup(&self) -> Result<(), StoreError> {
        let Ok(_work) = self.work.try_lock() else { return Ok(()) };
        if self.is_replaced.load(Ordering::Acquire) {
            return Ok(());
        }
        self.automatic().await?;
        self.rotate().await;
        Ok(())
    }

    async fn automatic(&self) -> Result<(), StoreError> {
        let backups = self.backups.clone();
        tokio::task::spawn_blocking(move || backups.prepare()).await.unwrap_or_else(|error| Err(io::Error::other(error)))?;
        let target = self.parts.backups.join(automatic_name(&Zoned::now()));
        self.store.backup(target).await
    }

    /// After success only: what is there is better than nothing.
    async fn rotate(&self) {
        let keep = self.parts.options.automatic_backups.max(1) as usize;
        if let Err(error) = self.disk(move |backups| backups.rotate(keep)).await {
            tracing::warn!(error = error.message, "old backups of the database cannot be removed");
        }
    }

    fn refuse(&self, what: &str) -> Result<(), ApiError> {
        if self.is_replaced.load(Ordering::Acquire) {
            return Err(ApiError::bad_request(format!("The database cannot be {what} now: a restored one takes over at the restart")));
        }
        if self.parts.printing.is_printing() == Some(true) {
            return Err(ApiError::bad_request(format!("The database cannot be {what} during a print")));
        }
        Ok(())
    }

    /// Work on the folder of backups, away from the threads that serve.
    pub(super) async fn disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Backups) -> io::Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let backups = self.backups.clone();
        let outcome = tokio::task::spawn_blocking(move || work(&backups)).await;
        let outcome = outcome.unwrap_or_else(|error| Err(io::Error::other(error)));
        outcome.map_err(|error| to_api(StoreError::from(error)))
    }
}
