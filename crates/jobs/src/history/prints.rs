//! The history as something said of files: for whoever keeps last prints beside the files and has lost or never had them.

use store::StoreError;
use store::rusqlite::Connection;

use super::entry;
use super::table::{self, Filter};
use crate::ports::FileStamp;

/// A print of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FilePrint {
    /// The file as it was printed.
    pub file: FileStamp,
    /// Unix seconds.
    pub start_time: f64,
    /// Id as clients see it.
    pub job_id: String,
}

/// All prints, latest first; one step inside a transaction.
///
/// # Errors
/// Those of the database.
pub fn prints(conn: &Connection) -> Result<Vec<FilePrint>, StoreError> {
    let mut prints = Vec::new();
    table::list(conn, &Filter::default(), |record| {
        let (entry, file) = entry::of(record);
        prints.push(FilePrint { file, start_time: entry.start_time, job_id: entry.job_id });
        Ok(())
    })?;
    // Imported records may have higher ids than later ones of ours.
    prints.sort_by(|one, other| other.start_time.total_cmp(&one.start_time));
    Ok(prints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{ForeignJob, import};
    use store::Store;

    #[tokio::test]
    async fn the_latest_comes_first_whatever_its_number() {
        let job = |id, start_time, metadata: &str| ForeignJob {
            id,
            user: None,
            filename: "a.gcode".to_owned(),
            status: "completed".to_owned(),
            start_time,
            end_time: None,
            print_duration: 1.0,
            total_duration: 2.0,
            filament_used: 3.0,
            metadata: metadata.to_owned(),
            auxiliary: "[]".to_owned(),
        };
        let store = Store::in_memory(&[crate::SCHEMA]).unwrap();
        let jobs = [job(1, 50.0, r#"{"size": 4, "modified": 2.5}"#), job(2, 40.0, "{}")];
        let work = move |conn: &Connection| {
            import(conn, &jobs, &[])?;
            prints(conn)
        };
        let print = |size, modified, start_time, job_id: &str| {
            let file = FileStamp { filename: "a.gcode".to_owned(), size, modified };
            FilePrint { file, start_time, job_id: job_id.to_owned() }
        };
        assert_eq!(store.write(work).await.unwrap(), [print(Some(4), Some(2.5), 50.0, "000001"), print(None, None, 40.0, "000002")]);
    }
}
