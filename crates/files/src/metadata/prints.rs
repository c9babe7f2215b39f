//! Last prints that are known from elsewhere: from the history of another server. Blocks.

use std::fs;
use std::path::Path;

use store::StoreError;
use store::rusqlite::{Connection, params};

use super::Stamp;
use super::table::Key;
use crate::item;
use crate::path::RelPath;

/// A print of a gcode file, and what the file was then.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierPrint {
    /// Path relative to `gcodes`.
    pub filename: String,
    /// Bytes.
    pub size: u64,
    /// Unix seconds.
    pub modified: f64,
    /// Unix seconds.
    pub start_time: f64,
    /// Id in our job history.
    pub job_id: String,
}

/// Takes down the last print of each file in the folder `gcodes`: the latest of `prints` whose file is still the same. One step inside a transaction.
/// A file without a record gets one that no file fits, for it has no inode; the scan at the start fills it and keeps the print.
///
/// # Errors
/// Those of the database.
pub fn note_prints(conn: &Connection, gcodes: &Path, prints: &[EarlierPrint]) -> Result<(), StoreError> {
    let sql = "INSERT INTO gcode_metadata (folder, name, size, modified_ns, inode, document, objects_done, print_start_time, job_id)
               VALUES (?1, ?2, ?3, ?4, 0, '{}', 0, ?5, ?6)
               ON CONFLICT DO UPDATE SET print_start_time = excluded.print_start_time, job_id = excluded.job_id
               WHERE size = excluded.size AND modified_ns = excluded.modified_ns
                 AND (print_start_time IS NULL OR print_start_time < excluded.print_start_time)";
    let mut insert = conn.prepare_cached(sql)?;
    for print in prints {
        let Ok(path) = RelPath::parse(&print.filename) else { continue };
        let Ok(now) = fs::metadata(path.below(gcodes)) else { continue };
        if now.is_file() && item::is_unchanged(&now, Some(print.size), Some(print.modified)) {
            let (Key { folder, name }, stamp) = (Key::of(&path), Stamp::of(&now));
            insert.execute(params![folder, name, stamp.size.cast_signed(), stamp.modified_ns, print.start_time, print.job_id])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use store::Store;

    use super::*;
    use crate::metadata::{Record, Table};

    fn print(filename: &str, size: u64, modified: f64, start_time: f64) -> EarlierPrint {
        EarlierPrint { filename: filename.into(), size, modified, start_time, job_id: format!("of {start_time}") }
    }

    fn last(table: &Table, name: &str) -> Option<(Option<f64>, Option<String>)> {
        table.get(&RelPath::parse(name).unwrap()).map(|record| (record.print_start_time, record.job_id))
    }

    #[tokio::test]
    async fn the_latest_print_of_the_same_file_counts() {
        let gcodes = tempfile::tempdir().unwrap();
        fs::create_dir(gcodes.path().join("sub")).unwrap();
        for name in ["a.gcode", "sub/b.gcode", "known.gcode"] {
            fs::write(gcodes.path().join(name), "G28").unwrap();
        }
        let now = |name: &str| fs::metadata(gcodes.path().join(name)).unwrap();
        let modified = |name: &str| item::modified(&now(name));
        let store = Store::in_memory(&[crate::SCHEMA]).unwrap();
        let table = Table::new(store.clone());
        let stamp = Stamp::of(&now("known.gcode"));
        let known = Record {
            stamp,
            document: r#"{"slicer":"x"}"#.into(),
            objects_done: true,
            print_start_time: Some(6.0),
            job_id: Some("own".into()),
        };
        table.put(&RelPath::parse("known.gcode").unwrap(), known.clone());
        let prints = vec![
            print("a.gcode", 4, modified("a.gcode"), 9.0),
            print("a.gcode", 3, modified("a.gcode") + 1.0, 8.0),
            print("a.gcode", 3, modified("a.gcode") + 0.000_001, 7.0),
            print("a.gcode", 3, modified("a.gcode"), 5.0),
            print("sub/b.gcode", 3, modified("sub/b.gcode"), 4.0),
            print("known.gcode", 3, modified("known.gcode"), 3.0),
            print("gone.gcode", 3, 0.0, 2.0),
            print("../x.gcode", 3, 0.0, 2.0),
            print("sub", now("sub").len(), modified("sub"), 1.0),
        ];
        let folder = gcodes.path().to_owned();
        store.write(move |conn| note_prints(conn, &folder, &prints)).await.unwrap();

        assert_eq!(last(&table, "a.gcode"), Some((Some(7.0), Some("of 7".into()))), "the same although its time was rounded");
        assert_eq!(last(&table, "sub/b.gcode"), Some((Some(4.0), Some("of 4".into()))));
        assert_eq!(table.get(&RelPath::parse("known.gcode").unwrap()), Some(known), "a later print of ours stays");
        assert_eq!(table.stamps().len(), 3);

        let a = RelPath::parse("a.gcode").unwrap();
        assert_ne!(table.get(&a).unwrap().stamp, Stamp::of(&now("a.gcode")), "it is still to be scanned");
        let scanned =
            Record { stamp: Stamp::of(&now("a.gcode")), document: "{}".into(), objects_done: false, print_start_time: None, job_id: None };
        table.put(&a, scanned.clone());
        assert_eq!(last(&table, "a.gcode"), Some((Some(7.0), Some("of 7".into()))));
        table.put(&a, Record { stamp: Stamp { size: 5, ..scanned.stamp }, ..scanned });
        assert_eq!(last(&table, "a.gcode"), Some((None, None)), "another file of that name");
    }
}
