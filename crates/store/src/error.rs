//! What can go wrong in the store, in texts that may be shown to a client and in kinds that callers map to answers.

use std::any::Any;
use std::path::PathBuf;

use rusqlite::ErrorCode;

/// An error of the store. The `Display` text is complete: it names the argument, the record or the file concerned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The record, key or namespace does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The argument `key` is malformed, or leads through something that is no object.
    #[error("Invalid argument 'key': {0}")]
    BadKey(String),
    /// The argument `namespace` is malformed.
    #[error("Invalid argument 'namespace': {0}")]
    BadNamespace(String),
    /// The argument `value` cannot be stored.
    #[error("Invalid argument 'value': {0}")]
    BadValue(String),
    /// Clients have no access to this namespace.
    #[error("Access to namespace '{0}' is forbidden")]
    Forbidden(String),
    /// Clients may read but not change this namespace.
    #[error("Namespace '{0}' is read-only")]
    Protected(String),
    /// A constraint of a table (unique, foreign key, check) refuses the change.
    #[error("The change conflicts with stored data: {0}")]
    Conflict(String),
    /// More data was asked for than one answer may carry.
    #[error("{0}")]
    TooLarge(String),
    /// No space left for the database.
    #[error("The disk with the database is full")]
    Full,
    /// The disk or the operating system failed.
    #[error("Input/output error in the database: {0}")]
    Io(String),
    /// The database is damaged.
    #[error("The database is damaged: {0}")]
    Corrupt(String),
    /// Another process held a lock for longer than [`BUSY_TIMEOUT`](crate::BUSY_TIMEOUT).
    #[error("The database is in use by another process: {0}")]
    Busy(String),
    /// No database can be kept at this place; [`Store::in_memory`](crate::Store::in_memory) still works.
    #[error("Cannot keep the database at {}: {reason}", path.display())]
    Location {
        /// Where the database was to be.
        path: PathBuf,
        /// What the operating system says.
        reason: String,
    },
    /// The file is a healthy SQLite database of some other program. It was not touched.
    #[error("{} is a database of another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The database was written by a newer version of this program. It was not touched.
    #[error("The database has version {found} of '{part}', this program knows up to {known}: update the program")]
    Newer {
        /// Which [`Schema`](crate::Schema).
        part: String,
        /// Version in the file.
        found: u32,
        /// Newest version that this program knows.
        known: u32,
    },
    /// A migration failed and was rolled back.
    #[error("Migration {version} of '{part}' failed: {reason}")]
    Migration {
        /// Which [`Schema`](crate::Schema).
        part: String,
        /// Which step.
        version: u32,
        /// What the database says.
        reason: String,
    },
    /// The job panicked; its changes were rolled back.
    #[error("Internal error in a database job: {0}")]
    Panicked(String),
    /// The store is closed.
    #[error("The database is closed")]
    Closed,
    /// A restored database takes over at the next start; until then nothing is changed any more.
    #[error("A restored database takes over at the restart of the server")]
    Replaced,
    /// The file cannot take the place of the database. It says why.
    #[error("The backup cannot be used: {0}")]
    BadBackup(String),
    /// The database is only in memory, because its place on the disk cannot be used.
    #[error("The database has no file")]
    NoFile,
    /// A mistake in our own code, for example in an SQL statement.
    #[error("Internal database error: {0}")]
    Internal(String),
}

/// The few classes of errors that callers tell apart when they answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was asked for does not exist.
    NotFound,
    /// The caller's arguments are wrong.
    Invalid,
    /// The caller may not do this.
    Denied,
    /// Not now: disk full, locked, closed, broken.
    Unavailable,
    /// Our own mistake.
    Internal,
}

impl StoreError {
    /// The class of this error.
    pub fn kind(&self) -> ErrorKind {
        use StoreError as E;
        match self {
            E::NotFound(_) => ErrorKind::NotFound,
            E::BadKey(_) | E::BadNamespace(_) | E::BadValue(_) | E::TooLarge(_) | E::Conflict(_) | E::BadBackup(_) => ErrorKind::Invalid,
            E::Forbidden(_) | E::Protected(_) => ErrorKind::Denied,
            E::Full | E::Io(_) | E::Corrupt(_) | E::Busy(_) | E::Closed | E::Replaced | E::NoFile => ErrorKind::Unavailable,
            E::Location { .. } | E::Foreign { .. } | E::Newer { .. } => ErrorKind::Unavailable,
            E::Migration { .. } | E::Panicked(_) | E::Internal(_) => ErrorKind::Internal,
        }
    }

    /// The error for a job that panicked with `payload`.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| payload.downcast_ref::<String>().cloned());
        Self::Panicked(text.unwrap_or_else(|| "panic".to_owned()))
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        if matches!(error, rusqlite::Error::QueryReturnedNoRows) {
            return Self::NotFound("No such record".to_owned());
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(text),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(text),
            Some(ErrorCode::ConstraintViolation) => Self::Conflict(text),
            Some(ErrorCode::TooBig) => Self::TooLarge(text),
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::Io(text),
            _ => Self::Internal(text),
        }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn sqlite(code: i32) -> StoreError {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()
    }

    #[test]
    fn sqlite_codes_become_kinds() {
        assert_eq!(sqlite(ffi::SQLITE_FULL), StoreError::Full);
        assert!(matches!(sqlite(ffi::SQLITE_IOERR_FSYNC), StoreError::Io(_)));
        assert!(matches!(sqlite(ffi::SQLITE_CORRUPT), StoreError::Corrupt(_)));
        assert!(matches!(sqlite(ffi::SQLITE_NOTADB), StoreError::Corrupt(_)));
        assert!(matches!(sqlite(ffi::SQLITE_BUSY_SNAPSHOT), StoreError::Busy(_)));
        assert!(matches!(sqlite(ffi::SQLITE_CONSTRAINT_UNIQUE), StoreError::Conflict(_)));
        assert!(matches!(sqlite(ffi::SQLITE_ERROR), StoreError::Internal(_)));
        assert_eq!(sqlite(ffi::SQLITE_FULL).kind(), ErrorKind::Unavailable);
    }

    #[test]
    fn missing_rows_are_not_found() {
        let error = StoreError::from(rusqlite::Error::QueryReturnedNoRows);
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
