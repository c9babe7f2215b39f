//! Document 1 *Database*: the key-value store of the clients, and the care for the file that holds it and everything else.
//!
//! `api` declares the operations, `items` reads and writes values, `maintenance` compacts, copies and restores, `backups` is the
//! folder of copies, `automatic` makes one from time to time.

mod api;
mod automatic;
mod backups;
mod items;
mod maintenance;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use fwhost::{FwHost, PrintState};
use protocol::{ApiError, ErrorKind, FwhostState};
use store::{Namespaces, Store, StoreError};

use crate::Warnings;
use backups::Backups;
use maintenance::Maintenance;

config::options! {
    /// The database of the server and its clients.
    pub struct DatabaseOptions: "database" {
        /// Automatic backups that are kept in `backup/database` of the data folder; the oldest one makes room for a new one. 0: none are made.
        automatic_backups: u32 { max 100 } = 5,
        /// Hours between automatic backups. None is made during a print, nor when nothing was stored since the last one.
        automatic_backup_interval: f64 { min 1, max 8760 } = 24.0,
        /// Where the database is; it is always in the data folder.
        database_path: Option<String> { deprecated "the `database` folder of the data folder is used" } = None,
        /// Debug operations; they come with the flag `--debug`.
        enable_database_debug: Option<bool> { deprecated "start the server with the flag `--debug`" } = None,
    }
}

/// Whether the printer prints, so that heavy work on the disk can wait.
pub trait Printing: Send + Sync {
    /// `None` while the printer's state is not known. A paused print does not count.
    fn is_printing(&self) -> Option<bool>;
}

impl Printing for FwHost {
    fn is_printing(&self) -> Option<bool> {
        match self.status().state {
            FwhostState::Disconnected | FwhostState::Startup => None,
            FwhostState::Ready => Some(self.print_stats().is_some_and(|stats| stats.state == PrintState::Printing)),
            _ => Some(false),
        }
    }
}

/// What the database needs from others.
pub struct DatabaseParts {
    /// The folder of backups.
    pub backups: PathBuf,
    /// Options of the section `database`.
    pub options: DatabaseOptions,
    /// Whether the server was started with debug features.
    pub debug: bool,
    /// Tables that even debug features do not show.
    pub secret_tables: &'static [&'static str],
    /// Asked before heavy work.
    pub printing: Arc<dyn Printing>,
    /// Asks for a restart of the server after the answer.
    pub restart: Box<dyn Fn() + Send + Sync>,
    /// Where backups that fail are shown.
    pub warnings: Warnings,
}

/// The clients' database.
pub struct Database {
    namespaces: Namespaces,
    store: Store,
    maintenance: Arc<Maintenance>,
}

impl Database {
    /// The database of clients in `store`.
    #[must_use]
    pub fn new(store: Store, parts: DatabaseParts) -> Arc<Self> {
        let maintenance = Arc::new(Maintenance::new(store.clone(), parts));
        Arc::new(Self { namespaces: Namespaces::new(store.clone()), store, maintenance })
    }
}

/// A fault of the store, for clients.
#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn to_api(error: StoreError) -> ApiError {
    let kind = match error.kind() {
        store::ErrorKind::NotFound => ErrorKind::NotFound,
        store::ErrorKind::Invalid => ErrorKind::BadRequest,
        store::ErrorKind::Denied => ErrorKind::Forbidden,
        store::ErrorKind::Unavailable => ErrorKind::Unavailable,
        store::ErrorKind::Internal => ErrorKind::Internal,
    };
    let kind = if matches!(error, StoreError::Full) { ErrorKind::Storage } else { kind };
    ApiError::new(kind, error.to_string())
}
