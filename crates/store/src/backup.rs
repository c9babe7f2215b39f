//! Copies of the database: how one is made, and what a file must be to count as one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{Connection, OpenFlags};

use crate::files::{create_new, remove_if_there, rename_durably};
use crate::{Schema, StoreError, damage, inspect, migrate, namespace, open};

/// What a copy of the database holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// Tables, sorted by name.
    pub tables: Vec<String>,
    /// Namespaces, sorted by name.
    pub namespaces: Vec<String>,
}

/// Ending of copies that are not finished; see [`is_unfinished`].
const UNFINISHED: &str = ".part";

/// True for the names of copies that a crash left unfinished.
#[must_use]
pub fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(UNFINISHED)
}

/// Writes a copy of the database as it is now to `target`, replacing what is there. The copy is opened and checked completely
/// before it gets its name, and it is on the disk when this returns.
pub(crate) fn write(database: &Path, target: &Path, schemas: &[Schema]) -> Result<(), StoreError> {
    let part = part_beside(target);
    let outcome = copy(database, &part)
        .and_then(|()| verify(&part, schemas))
        .and_then(|_| Ok(File::open(&part)?.sync_all()?))
        .and_then(|()| Ok(rename_durably(&part, target)?));
    if outcome.is_err() {
        let _ = remove_if_there(&part);
    }
    outcome
}

/// One consistent snapshot without free pages. Readers and the writer go on meanwhile.
fn copy(database: &Path, target: &Path) -> Result<(), StoreError> {
    create_new(target)?;
    let conn = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(open::BUSY_TIMEOUT)?;
    let name = target.to_str().ok_or_else(|| StoreError::Io("the path of the backup is not UTF-8".to_owned()))?;
    conn.execute("VACUUM INTO ?1", [name])?;
    Ok(())
}

/// A name that no other copy uses, even one that its caller has given up.
fn part_beside(target: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{}-{number}{UNFINISHED}", std::process::id()))
}

/// Reads a copy completely: it must be healthy, ours, and not from a newer version of this program.
pub(crate) fn verify(path: &Path, schemas: &[Schema]) -> Result<Contents, StoreError> {
    let look = || -> Result<Contents, StoreError> {
        let conn = open_unchanging(path)?;
        open::require_ours(&conn, path)?;
        damage::check_completely(&conn, path)?;
        migrate::refuse_newer(&conn, schemas)?;
        contents(&conn)
    };
    look().map_err(|error| match error {
        StoreError::Corrupt(reason) => StoreError::BadBackup(format!("it is damaged or no database ({reason})")),
        StoreError::Foreign { .. } => StoreError::BadBackup("it is a database of another program".to_owned()),
        StoreError::Newer { .. } => StoreError::BadBackup(format!("it is from a newer version of this program. {error}")),
        other => other,
    })
}

fn contents(conn: &Connection) -> Result<Contents, StoreError> {
    Ok(Contents { tables: inspect::tables(conn)?, namespaces: namespace::table::list(conn)? })
}

/// Opens a file that nobody changes, without making any file beside it.
pub(crate) fn open_unchanging(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Ok(Connection::open_with_flags(unchanging_uri(path), flags)?)
}

fn unchanging_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => uri.push(char::from(*byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri + "?immutable=1"
}
