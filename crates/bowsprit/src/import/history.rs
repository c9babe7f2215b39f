//! The job history and its totals, and what the history says of files.

use std::path::Path;

use files::EarlierPrint;
use jobs::{FilePrint, ForeignJob, ForeignTotal};
use store::rusqlite::Connection;
use store::rusqlite::Row;
use store::rusqlite::types::ValueRef;
use store::{Foreign, Store, StoreError};

/// What is to be taken.
#[derive(Default)]
pub(super) struct Plan {
    jobs: Vec<ForeignJob>,
    totals: Vec<ForeignTotal>,
}

impl Plan {
    /// Reads the source; tables that it does not have give nothing.
    pub(super) fn read(foreign: &Foreign) -> Result<Self, StoreError> {
        let mut plan = Self::default();
        if foreign.has_table("job_history")? {
            let sql = "SELECT job_id, user, filename, status, start_time, end_time, print_duration, total_duration, filament_used, metadata, \
                       auxiliary_data FROM job_history ORDER BY job_id";
            let mut select = foreign.connection().prepare(sql)?;
            plan.jobs = select.query_map([], job)?.collect::<Result<_, _>>()?;
        }
        if foreign.has_table("job_totals")? {
            let mut select = foreign.connection().prepare("SELECT provider, field, maximum, total FROM job_totals")?;
            let total = |row: &Row<'_>| {
                Ok(ForeignTotal { provider: text(row, 0)?, field: text(row, 1)?, maximum: number(row, 2)?, total: number(row, 3)? })
            };
            plan.totals = select.query_map([], total)?.collect::<Result<_, _>>()?;
        }
        Ok(plan)
    }

    /// Takes everything in one transaction; `gcodes` is the folder whose files were printed.
    pub(super) async fn carry_out(self, store: &Store, gcodes: &Path) -> Result<Vec<String>, StoreError> {
        if self.jobs.is_empty() && self.totals.is_empty() {
            return Ok(Vec::new());
        }
        let gcodes = gcodes.to_owned();
        let take = move |conn: &Connection| {
            let done = jobs::import(conn, &self.jobs, &self.totals)?;
            let prints: Vec<_> = jobs::prints(conn)?.into_iter().filter_map(earlier).collect();
            files::note_prints(conn, &gcodes, &prints)?;
            Ok(done)
        };
        let done = store.write(take).await?;
        let mut report = vec![format!("job history: {} new, {} there already", done.kept_id + done.new_id, done.same)];
        if done.new_id > 0 {
            report.push(format!("job history: {} jobs got another number, since theirs was taken", done.new_id));
        }
        Ok(report)
    }
}

/// A print as the files want it; none when nobody knows what the file was then.
fn earlier(print: FilePrint) -> Option<EarlierPrint> {
    let FilePrint { file, start_time, job_id } = print;
    Some(EarlierPrint { filename: file.filename, size: file.size?, modified: file.modified?, start_time, job_id })
}

fn job(row: &Row<'_>) -> store::rusqlite::Result<ForeignJob> {
    Ok(ForeignJob {
        id: row.get(0)?,
        user: Some(text(row, 1)?),
        filename: text(row, 2)?,
        status: text(row, 3)?,
        start_time: number(row, 4)?,
        end_time: row.get::<_, Option<f64>>(5)?.filter(|time| time.is_finite()),
        print_duration: number(row, 6)?,
        total_duration: number(row, 7)?,
        filament_used: number(row, 8)?,
        metadata: text(row, 9)?,
        auxiliary: text(row, 10)?,
    })
}

/// Text, be it kept as text or as bytes; empty for anything else.
fn text(row: &Row<'_>, column: usize) -> store::rusqlite::Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    })
}

fn number(row: &Row<'_>, column: usize) -> store::rusqlite::Result<f64> {
    Ok(row.get::<_, Option<f64>>(column)?.filter(|number| number.is_finite()).unwrap_or_default())
}
