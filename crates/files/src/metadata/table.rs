//! The table of scanned files. Blocks; a database that fails costs metadata, never a file operation.

use std::collections::HashMap;
use std::sync::Arc;

use store::rusqlite::{Connection, OptionalExtension, Row, params};
use store::{KeptAnswers, Migration, Schema, Store, StoreError};

use super::wait::wait;
use super::{Record, Stamp};
use crate::path::RelPath;

/// The table; whoever opens the store passes this. Folder and name stand apart, so that the files of a folder lie together.
pub const SCHEMA: Schema = Schema {
    part: "files",
    migrations: &[Migration {
        version: 1,
        name: "metadata of gcode files",
        sql: "CREATE TABLE gcode_metadata (
                folder TEXT NOT NULL,
                name TEXT NOT NULL,
                size INTEGER NOT NULL,
                modified_ns INTEGER NOT NULL,
                inode INTEGER NOT NULL,
                document TEXT NOT NULL,
                objects_done INTEGER NOT NULL,
                print_start_time REAL,
                job_id TEXT,
                PRIMARY KEY (folder, name)
              ) STRICT, WITHOUT ROWID",
    }],
};

const COLUMNS: &str = "size, modified_ns, inode, document, objects_done, print_start_time, job_id";

/// Rows of a folder and of all folders below it; `0` is the character after `/`.
const IN_TREE: &str = "(folder = ?1 OR (folder >= ?1 || '/' AND folder < ?1 || '0'))";

/// Access to the table.
#[derive(Clone)]
pub(crate) struct Table {
    store: Store,
    /// What was read of single files.
    kept: Arc<KeptAnswers<RelPath, Option<Record>>>,
}

impl Table {
    pub(crate) fn new(store: Store) -> Self {
        let weigh = |record: &Option<Record>| record.as_ref().map_or(0, |record| record.document.len());
        Self { store, kept: Arc::new(KeptAnswers::new(weigh)) }
    }

    pub(crate) fn get(&self, path: &RelPath) -> Option<Record> {
        let key = Key::of(path);
        let read = self.store.recall(&self.kept, path.clone(), move |conn| {
            let sql = format!("SELECT {COLUMNS} FROM gcode_metadata WHERE folder = ?1 AND name = ?2");
            Ok(conn.prepare_cached(&sql)?.query_row(params![key.folder, key.name], |row| record(row, 0)).optional()?)
        });
        or_default(wait(read))
    }

    /// All records of one folder by file name.
    pub(crate) fn folder(&self, folder: &RelPath) -> HashMap<String, Record> {
        let folder = folder.as_str().to_owned();
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(&format!("SELECT name, {COLUMNS} FROM gcode_metadata WHERE folder = ?1"))?;
            let rows = statement.query_map([folder], |row| Ok((row.get(0)?, record(row, 1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The state in which each file was scanned, by path.
    pub(crate) fn stamps(&self) -> HashMap<String, Stamp> {
        self.read(|conn| {
            let mut statement = conn.prepare("SELECT folder, name, size, modified_ns, inode FROM gcode_metadata")?;
            let rows = statement.query_map([], |row| {
                let (folder, name): (String, String) = (row.get(0)?, row.get(1)?);
                Ok((if folder.is_empty() { name } else { format!("{folder}/{name}") }, stamp(row, 2)?))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    pub(crate) fn put(&self, path: &RelPath, record: Record) {
        let key = Key::of(path);
        self.write(move |conn| {
            // A new look at the same file does not make its last print undone.
            let same = "CASE WHEN size = excluded.size AND modified_ns = excluded.modified_ns THEN";
            let sql = format!(
                "INSERT INTO gcode_metadata (folder, name, {COLUMNS}) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)
                 ON CONFLICT DO UPDATE SET size = excluded.size, modified_ns = excluded.modified_ns, inode = excluded.inode,
                   document = excluded.document, objects_done = excluded.objects_done,
                   print_start_time = {same} coalesce(excluded.print_start_time, print_start_time) ELSE excluded.print_start_time END,
                   job_id = {same} coalesce(excluded.job_id, job_id) ELSE excluded.job_id END"
            );
            let Record { stamp: Stamp { size, modified_ns, inode }, document, objects_done, print_start_time, job_id } = record;
            let (size, inode) = (size.cast_signed(), inode.cast_signed());
            conn.prepare_cached(&sql)?.execute(params![
                key.folder,
                key.name,
                size,
                modified_ns,
                inode,
                document,
                objects_done,
                print_start_time,
                job_id
            ])?;
            Ok(())
        });
    }

    /// Takes down the last print of a file; nothing happens when there is no record of the file.
    pub(crate) fn printed(&self, path: &RelPath, start_time: f64, job_id: String) {
        let key = Key::of(path);
        self.write(move |conn| {
            let sql = "UPDATE gcode_metadata SET print_start_time = ?3, job_id = ?4 WHERE folder = ?1 AND name = ?2";
            conn.execute(sql, params![key.folder, key.name, start_time, job_id])?;
            Ok(())
        });
    }

    pub(crate) fn remove(&self, path: &RelPath) {
        let key = Key::of(path);
        self.write(move |conn| {
            conn.execute("DELETE FROM gcode_metadata WHERE folder = ?1 AND name = ?2", params![key.folder, key.name])?;
            Ok(())
        });
    }

    /// Removes the records of a folder and everything below it.
    pub(crate) fn remove_tree(&self, folder: &RelPath) {
        let folder = folder.as_str().to_owned();
        self.write(move |conn| {
            conn.execute(&format!("DELETE FROM gcode_metadata WHERE {IN_TREE}"), params![folder])?;
            Ok(())
        });
    }

    /// Gives a file's record another path; what was there is replaced.
    pub(crate) fn rename(&self, from: &RelPath, to: &RelPath) {
        let (from, to) = (Key::of(from), Key::of(to));
        self.write(move |conn| {
            let sql = "UPDATE OR REPLACE gcode_metadata SET folder = ?3, name = ?4 WHERE folder = ?1 AND name = ?2";
            conn.execute(sql, params![from.folder, from.name, to.folder, to.name])?;
            Ok(())
        });
    }

    /// Gives the records of a folder and everything below it another place.
    pub(crate) fn rename_tree(&self, from: &RelPath, to: &RelPath) {
        let (from, to) = (from.as_str().to_owned(), to.as_str().to_owned());
        self.write(move |conn| {
            let sql = format!("UPDATE OR REPLACE gcode_metadata SET folder = ?2 || substr(folder, length(?1) + 1) WHERE {IN_TREE}");
            conn.execute(&sql, params![from, to])?;
            Ok(())
        });
    }

    fn read<T: Default + Send + 'static>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static) -> T {
        or_default(wait(self.store.read(work)))
    }

    fn write(&self, work: impl FnOnce(&Connection) -> Result<(), StoreError> + Send + 'static) {
        or_default(wait(self.store.write(work)));
    }
}

fn or_default<T: Default>(result: Result<T, StoreError>) -> T {
    result.unwrap_or_else(|error| {
        // At the end of the program the store may be closed before the last scan is over.
        if !matches!(error, StoreError::Closed) {
            tracing::warn!(%error, "metadata could not be read or kept");
        }
        T::default()
    })
}

/// Where a file's row is.
pub(super) struct Key {
    pub(super) folder: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn of(path: &RelPath) -> Self {
        Self { folder: path.parent().to_string(), name: path.name().to_owned() }
    }
}

fn stamp(row: &Row<'_>, at: usize) -> store::rusqlite::Result<Stamp> {
    let (size, inode): (i64, i64) = (row.get(at)?, row.get(at + 2)?);
    Ok(Stamp { size: size.cast_unsigned(), modified_ns: row.get(at + 1)?, inode: inode.cast_unsigned() })
}

fn record(row: &Row<'_>, at: usize) -> store::rusqlite::Result<Record> {
    Ok(Record {
        stamp: stamp(row, at)?,
        document: row.get(at + 3)?,
        objects_done: row.get(at + 4)?,
        print_start_time: row.get(at + 5)?,
        job_id: row.get(at + 6)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    fn sample(size: u64) -> Record {
        let stamp = Stamp { size, modified_ns: -5, inode: u64::MAX };
        Record { stamp, document: "{}".into(), objects_done: true, print_start_time: Some(1.5), job_id: Some("00".into()) }
    }

    #[test]
    fn records_go_with_their_files_and_folders() {
        let table = Table::new(Store::in_memory(&[SCHEMA]).unwrap());
        for (text, size) in [("a.gcode", 1), ("ü/b.gcode", 2), ("ü/x/c.gcode", 3), ("ü0/d.gcode", 4), ("ü-/e.gcode", 5)] {
            table.put(&path(text), sample(size));
        }
        assert_eq!(table.get(&path("a.gcode")), Some(sample(1)));
        assert_eq!(table.folder(&path("ü")).into_keys().collect::<Vec<_>>(), ["b.gcode"]);
        assert_eq!(table.stamps().len(), 5);

        table.rename_tree(&path("ü"), &path("neu/y"));
        assert_eq!(table.get(&path("neu/y/x/c.gcode")), Some(sample(3)));
        assert_eq!(table.get(&path("ü0/d.gcode")), Some(sample(4)), "a name that only begins the same");
        table.rename(&path("a.gcode"), &path("neu/y/b.gcode"));
        assert_eq!((table.get(&path("neu/y/b.gcode")), table.get(&path("a.gcode"))), (Some(sample(1)), None));
        table.remove_tree(&path("neu"));
        table.remove(&path("ü0/d.gcode"));
        assert_eq!(table.stamps().into_keys().collect::<Vec<_>>(), ["ü-/e.gcode"]);
    }

    #[test]
    fn the_last_print_is_kept_as_long_as_the_file_is_the_same() {
        let table = Table::new(Store::in_memory(&[SCHEMA]).unwrap());
        let unprinted = |size| Record { print_start_time: None, job_id: None, ..sample(size) };
        let last = || table.get(&path("x/a.gcode")).map(|record| (record.print_start_time, record.job_id));
        table.printed(&path("x/a.gcode"), 1.0, "000001".into());
        assert_eq!(last(), None);
        table.put(&path("x/a.gcode"), unprinted(1));
        table.printed(&path("x/a.gcode"), 2.5, "000002".into());
        table.put(&path("x/a.gcode"), unprinted(1));
        assert_eq!(last(), Some((Some(2.5), Some("000002".into()))), "scanned again");
        table.put(&path("x/a.gcode"), unprinted(2));
        assert_eq!(last(), Some((None, None)), "another file of that name");
    }

    #[test]
    fn a_database_without_the_table_gives_nothing() {
        let table = Table::new(Store::in_memory(&[]).unwrap());
        table.put(&path("a.gcode"), sample(1));
        assert_eq!(table.get(&path("a.gcode")), None);
    }
}
