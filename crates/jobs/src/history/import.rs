//! Jobs and totals of another server's database: what was read there is added to ours. Doing it again adds nothing twice.

use protocol::jobs::JobStatus;
use serde_json::Value;
use store::StoreError;
use store::rusqlite::{Connection, OptionalExtension, params};

use super::auxiliary::IMPORTED;
use super::totals;

/// A job of another server.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignJob {
    /// Its number there, which is kept when it is free: notes of front ends name it.
    pub id: i64,
    /// Who started it.
    pub user: Option<String>,
    /// Path relative to `gcodes`.
    pub filename: String,
    /// Word of the status.
    pub status: String,
    /// Unix seconds.
    pub start_time: f64,
    /// Unix seconds.
    pub end_time: Option<f64>,
    /// Seconds.
    pub print_duration: f64,
    /// Seconds.
    pub total_duration: f64,
    /// Millimetres.
    pub filament_used: f64,
    /// JSON text.
    pub metadata: String,
    /// JSON text.
    pub auxiliary: String,
}

/// A total of another server.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignTotal {
    /// Whose field; `history` for the server's own.
    pub provider: String,
    /// Which field.
    pub field: String,
    /// The largest value.
    pub maximum: f64,
    /// The sum.
    pub total: f64,
}

/// What an import did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    /// Jobs under the number that they had.
    pub kept_id: usize,
    /// Jobs that got another number, since theirs was taken.
    pub new_id: usize,
    /// Jobs that were there already.
    pub same: usize,
}

/// Adds jobs and totals; one step inside a transaction.
///
/// # Errors
/// Those of the database.
pub fn import(conn: &Connection, jobs: &[ForeignJob], totals: &[ForeignTotal]) -> Result<Imported, StoreError> {
    let mut imported = Imported::default();
    for job in jobs {
        let known = "SELECT EXISTS (SELECT 1 FROM job WHERE start_time = ?1 AND filename = ?2)";
        if conn.prepare_cached(known)?.query_row(params![job.start_time, job.filename], |row| row.get(0))? {
            imported.same += 1;
            continue;
        }
        let taken = conn.prepare_cached("SELECT 1 FROM job WHERE id = ?1")?.query_row([job.id], |_| Ok(())).optional()?.is_some();
        let id = (job.id > 0 && !taken).then_some(job.id);
        add(conn, id, job)?;
        if id.is_some() {
            imported.kept_id += 1;
        } else {
            imported.new_id += 1;
        }
    }
    for total in totals {
        // What was taken over before is kept as a total of its own, so that only what came since is added.
        let key = format!("{}/{}", total.provider, total.field);
        let (before, _) = totals::get(conn, IMPORTED, &key)?;
        let more = (total.total - before).max(0.0);
        totals::count(conn, &total.provider, &total.field, more, total.maximum)?;
        totals::count(conn, IMPORTED, &key, more, 0.0)?;
    }
    Ok(imported)
}

fn add(conn: &Connection, id: Option<i64>, job: &ForeignJob) -> Result<(), StoreError> {
    let status = match JobStatus::from_wire(&job.status) {
        // Nobody follows it any more.
        None | Some(JobStatus::InProgress) => JobStatus::Interrupted,
        Some(status) => status,
    };
    let metadata = serde_json::from_str(&job.metadata).ok().filter(Value::is_object).map_or("{}", |_| job.metadata.as_str());
    let auxiliary = serde_json::from_str(&job.auxiliary).ok().filter(Value::is_array).map_or("[]", |_| job.auxiliary.as_str());
    let sql = "INSERT INTO job (id, filename, user, status, start_time, end_time, total_duration, print_duration, filament_used, metadata, auxiliary, gathered)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, '{}')";
    // The other server's words for nobody.
    let user = job.user.as_deref().filter(|user| !user.is_empty() && *user != "No User");
    conn.prepare_cached(sql)?.execute(params![
        id,
        job.filename,
        user,
        status.as_str(),
        job.start_time,
        job.end_time,
        job.total_duration,
        job.print_duration,
        job.filament_used,
        metadata,
        auxiliary
    ])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::table::{self, Filter};
    use store::Store;

    fn job(id: i64, filename: &str) -> ForeignJob {
        ForeignJob {
            id,
            user: Some("No User".to_owned()),
            filename: filename.to_owned(),
            status: "in_progress".to_owned(),
            start_time: 5.0,
            end_time: None,
            print_duration: 1.0,
            total_duration: 2.0,
            filament_used: 3.0,
            metadata: "not json".to_owned(),
            auxiliary: "[]".to_owned(),
        }
    }

    fn total(field: &str, total: f64, maximum: f64) -> ForeignTotal {
        ForeignTotal { provider: "history".to_owned(), field: field.to_owned(), maximum, total }
    }

    #[tokio::test]
    async fn importing_again_adds_only_what_came_since() {
        let store = Store::in_memory(&[crate::SCHEMA]).unwrap();
        let work = |conn: &Connection| {
            let jobs = [job(7, "a.gcode"), ForeignJob { status: "completed".into(), user: Some("ann".into()), ..job(7, "b.gcode") }];
            let first = import(conn, &jobs, &[total("total_jobs", 10.0, 0.0), total("longest_job", 0.0, 50.0)])?;
            assert_eq!(first, Imported { kept_id: 1, new_id: 1, same: 0 });
            let again = import(conn, &jobs, &[total("total_jobs", 12.0, 0.0), total("longest_job", 0.0, 50.0)])?;
            assert_eq!(again, Imported { kept_id: 0, new_id: 0, same: 2 });
            let totals = table::own_totals(conn)?;
            assert_eq!((totals.total_jobs, totals.longest_job), (12, 50.0));
            let mut seen = Vec::new();
            table::list(conn, &Filter::default(), |record| {
                seen.push((record.id, record.status, record.user, record.metadata));
                Ok(())
            })?;
            let expected = [(7, JobStatus::Interrupted, None, "{}".into()), (8, JobStatus::Completed, Some("ann".into()), "{}".into())];
            assert_eq!(seen, expected);
            Ok(())
        };
        store.write(work).await.unwrap();
    }
}
