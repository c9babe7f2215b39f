//! Opening: folder, file, health, version, settings, migrations; at the end connections that are ready to use.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::migrate::{self, Schema};
use crate::readers::READERS;
use crate::{StoreError, damage, files, restore};

/// How long a connection waits for a lock that another process (a backup tool, an SQL shell) holds.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Page cache per connection in KiB. Small: memory belongs to the firmware host, and the system caches files anyway.
const CACHE_KIB: u32 = 512;

/// Size in bytes to which the WAL file is cut back after a checkpoint.
const WAL_LIMIT: u32 = 4 * 1024 * 1024;

/// Marks a database as ours ("BOWS"), so that another program's file is never changed by mistake.
const APPLICATION_ID: i32 = 0x424F_5753;

/// Connections, ready to be given to their threads.
pub(crate) struct Connections {
    pub(crate) writer: Connection,
    pub(crate) readers: Vec<Connection>,
    pub(crate) warnings: Vec<String>,
    pub(crate) created: bool,
}

/// Opens or makes the database file. A damaged one is set aside first, and the newest good copy in `backups` takes its place.
pub(crate) fn file(path: &Path, backups: Option<&Path>, schemas: &[Schema]) -> Result<Connections, StoreError> {
    migrate::validate(schemas)?;
    let mut warnings = restore::carry_out(path, schemas, &stamp())?;
    let mut created = touch(path)?;
    let writer = match open_writer(path, schemas) {
        Err(StoreError::Corrupt(reason)) => {
            warnings.extend(replace_damaged(path, backups, schemas, &reason)?);
            created = touch(path)?;
            open_writer(path, schemas)?
        }
        other => other?,
    };
    let journal: String = writer.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if journal != "wal" {
        // Still correct, only slower: readers and the writer wait for each other.
        warnings.push(format!("The file system below {} cannot share memory: the database is slower there", path.display()));
    }
    let readers = (0..READERS).map(|_| open_reader(path)).collect::<Result<_, _>>()?;
    Ok(Connections { writer, readers, warnings, created })
}

/// Makes a database in memory. It has no readers: only its own connection can see it.
pub(crate) fn memory(schemas: &[Schema]) -> Result<Connections, StoreError> {
    migrate::validate(schemas)?;
    let mut writer = Connection::open_in_memory()?;
    configure(&writer)?;
    migrate::run(&mut writer, schemas)?;
    Ok(Connections { writer, readers: Vec::new(), warnings: Vec::new(), created: true })
}

/// Makes the folder and, when there is none, an empty file. Returns whether it made the file.
fn touch(path: &Path) -> Result<bool, StoreError> {
    let refused = |error: std::io::Error| unusable(path, &error);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(refused)?;
    }
    match files::create_new(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(refused(error)),
    }
}

fn open_writer(path: &Path, schemas: &[Schema]) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(|error| unusable(path, &error))?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    if conn.is_readonly("main")? {
        return Err(unusable(path, &"the file is read-only"));
    }
    // These checks leave the file as it is.
    damage::check(&conn, path)?;
    refuse_foreign(&conn, path)?;
    migrate::refuse_newer(&conn, schemas)?;
    configure(&conn)?;
    migrate::run(&mut conn, schemas)?;
    Ok(conn)
}

fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.execute_batch(&format!("PRAGMA cache_size = -{CACHE_KIB}; PRAGMA mmap_size = 0; PRAGMA query_only = ON"))?;
    Ok(conn)
}

/// Settings of the writing connection. `synchronous = FULL`: a commit returns when its data is on the disk.
fn configure(conn: &Connection) -> Result<(), StoreError> {
    conn.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA cache_size = -{CACHE_KIB};
         PRAGMA mmap_size = 0;
         PRAGMA journal_size_limit = {WAL_LIMIT};
         PRAGMA temp_store = MEMORY;"
    ))?;
    let present: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if present != APPLICATION_ID {
        conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    Ok(())
}

/// Bytes of the database, with free pages.
pub(crate) fn size(conn: &Connection) -> Result<u64, StoreError> {
    let pragma = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, u32>(0)).map(u64::from);
    Ok(pragma("PRAGMA page_count")? * pragma("PRAGMA page_size")?)
}

/// Writes the database anew without free pages, and cuts the file.
pub(crate) fn vacuum(conn: &Connection) -> Result<(), StoreError> {
    // The copy in between belongs on the disk: a small board has not the memory for it.
    conn.execute_batch("PRAGMA temp_store = FILE")?;
    let outcome = conn.execute_batch("VACUUM");
    conn.execute_batch("PRAGMA temp_store = MEMORY")?;
    outcome?;
    Ok(conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
}

/// An empty database may become ours, one with tables must already be.
fn refuse_foreign(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let empty: bool = conn.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    if empty { Ok(()) } else { require_ours(conn, path) }
}

/// Refuses what this program has not written.
pub(crate) fn require_ours(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let id: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if id == APPLICATION_ID { Ok(()) } else { Err(StoreError::Foreign { path: path.to_owned() }) }
}

/// Sets the damaged file aside, puts the newest good backup in its place and returns the warnings about it.
fn replace_damaged(path: &Path, backups: Option<&Path>, schemas: &[Schema], reason: &str) -> Result<Vec<String>, StoreError> {
    let fallback = backups.map_or(Ok(None), |folder| restore::choose_fallback(path, folder, schemas));
    let fallback = fallback.unwrap_or_else(|error| {
        tracing::error!(%error, "no backup of the database can be restored");
        None
    });
    let mut warnings = vec![format!("The database was damaged ({reason})")];
    if fallback.is_some() {
        warnings.extend(restore::carry_out(path, schemas, &stamp())?);
    } else {
        let kept = damage::set_aside(path, &stamp())?;
        warnings = vec![format!("The database was damaged ({reason}). It was kept as {} and a new, empty one was made", kept.display())];
    }
    warnings.iter().for_each(|text| tracing::warn!("{text}"));
    Ok(warnings)
}

/// The time of day in names of files.
fn stamp() -> String {
    jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string()
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> StoreError {
    StoreError::Location { path: path.to_owned(), reason: reason.to_string() }
}
