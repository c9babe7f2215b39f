//! Damaged files: how one is recognised at the start, and how it is set aside so that the server can come up.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::StoreError;
use crate::files::with_suffix;

/// Databases up to this size (with WAL) are checked completely at every start. Larger ones only for a readable schema
/// and a plausible length: reading them whole from an SD card would delay the start by seconds.
pub(crate) const FULL_CHECK_BYTES: u64 = 4 * 1024 * 1024;

/// The smallest page size of SQLite, so the smallest size of a database that is not empty.
const SMALLEST_BYTES: u64 = 512;

/// Files set aside within the same second at most (they get a number); more is an error.
const MAX_SAME_SECOND: u32 = 100;

/// Looks for damage. [`StoreError::Corrupt`] says what was found; other errors say nothing about the file's health.
pub(crate) fn check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let (main, wal) = (size(path), size(&with_suffix(path, "-wal")));
    if main == 0 && wal > 0 {
        // SQLite would take the empty file for a new database and delete the WAL.
        return Err(StoreError::Corrupt("the file is empty although it has a WAL".to_owned()));
    }
    if (1..SMALLEST_BYTES).contains(&main) {
        // SQLite would overwrite such a rest.
        return Err(StoreError::Corrupt(format!("the file has only {main} bytes")));
    }
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    if main + wal <= FULL_CHECK_BYTES {
        return quick_check(conn);
    }
    if wal == 0 {
        return check_length(conn, main);
    }
    Ok(())
}

/// Reads every page and compares indexes with their tables: for copies that are to be trusted.
pub(crate) fn check_completely(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    check_length(conn, size(path))?;
    let verdict: String = conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(StoreError::Corrupt(verdict)) }
}

fn quick_check(conn: &Connection) -> Result<(), StoreError> {
    let verdict: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(StoreError::Corrupt(verdict)) }
}

/// Without a WAL the file must hold every page that its header counts.
fn check_length(conn: &Connection, length: u64) -> Result<(), StoreError> {
    let pragma = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, u32>(0)).map(u64::from);
    let expected = pragma("PRAGMA page_count")? * pragma("PRAGMA page_size")?;
    if length < expected {
        return Err(StoreError::Corrupt(format!("the file has {length} of {expected} bytes")));
    }
    Ok(())
}

/// Renames the database, its WAL and its shared-memory file to `<name>.damaged-<stamp>` (`-wal`, `-shm`: a form in
/// which SQLite's tools find them together). Returns the new name.
pub(crate) fn set_aside(path: &Path, stamp: &str) -> Result<PathBuf, StoreError> {
    let target = free_name(path, stamp)?;
    fs::rename(path, &target)?;
    for suffix in ["-wal", "-shm"] {
        match fs::rename(with_suffix(path, suffix), with_suffix(&target, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(target)
}

/// True when a damaged file of this name lies beside it, or when that cannot be seen.
pub(crate) fn was_set_aside(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return true };
    let start = [name.as_encoded_bytes(), b".damaged-"].concat();
    let is_one = |entry: std::io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name().as_encoded_bytes().starts_with(&start));
    fs::read_dir(folder).map_or(true, |mut entries| entries.any(is_one))
}

fn free_name(path: &Path, stamp: &str) -> Result<PathBuf, StoreError> {
    let first = with_suffix(path, &format!(".damaged-{stamp}"));
    let numbered = (2..MAX_SAME_SECOND).map(|number| with_suffix(&first, &format!("-{number}")));
    std::iter::once(first.clone())
        .chain(numbered)
        .find(|candidate| !candidate.exists())
        .ok_or_else(|| StoreError::Io(format!("too many files named {}", first.display())))
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}
