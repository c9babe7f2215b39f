//! The tables of the history. Every function is one step inside a transaction of the store, so what belongs together is written together.

use fwhost::PrintState;
use protocol::jobs::JobStatus;
use store::rusqlite::types::Value as SqlValue;
use store::rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use store::{Migration, Schema, StoreError};

use super::auxiliary::{Contribution, OWN};
use super::record::{JobId, Mark, Numbers, Record};
use super::totals::{self, JobTotals};

/// Tables of history and queue; whoever opens the store passes this.
pub const SCHEMA: Schema = Schema {
    part: "jobs",
    migrations: &[Migration {
        version: 1,
        name: "history, totals and queue",
        sql: "CREATE TABLE job (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                filename TEXT NOT NULL,
                user TEXT,
                status TEXT NOT NULL,
                start_time REAL NOT NULL,
                end_time REAL,
                total_duration REAL NOT NULL,
                print_duration REAL NOT NULL,
                filament_used REAL NOT NULL,
                metadata TEXT NOT NULL,
                auxiliary TEXT NOT NULL,
                gathered TEXT NOT NULL
              ) STRICT;
              CREATE INDEX job_start_time ON job (start_time);
              CREATE INDEX job_status ON job (status);
              CREATE INDEX job_filename ON job (filename, user);
              CREATE TABLE job_total (
                provider TEXT NOT NULL,
                field TEXT NOT NULL,
                total REAL NOT NULL,
                maximum REAL NOT NULL,
                PRIMARY KEY (provider, field)
              ) STRICT, WITHOUT ROWID;
              CREATE TABLE job_mark (
                one INTEGER PRIMARY KEY CHECK (one = 1),
                job INTEGER,
                filename TEXT NOT NULL,
                state TEXT NOT NULL,
                total_duration REAL NOT NULL,
                print_duration REAL NOT NULL,
                filament_used REAL NOT NULL,
                start_time REAL NOT NULL,
                seen_at REAL NOT NULL,
                host INTEGER,
                orderly INTEGER NOT NULL
              ) STRICT;
              CREATE TABLE queued_job (
                id TEXT PRIMARY KEY,
                position INTEGER NOT NULL UNIQUE,
                filename TEXT NOT NULL,
                user TEXT,
                time_added REAL NOT NULL
              ) STRICT, WITHOUT ROWID;",
    }],
};

const COLUMNS: &str =
    "id, filename, user, status, start_time, end_time, total_duration, print_duration, filament_used, metadata, auxiliary";

const IN_PROGRESS: &str = "in_progress";

/// A record that is about to be written.
#[derive(Debug, Clone)]
pub(crate) struct NewJob {
    pub(crate) filename: String,
    pub(crate) user: Option<String>,
    pub(crate) start_time: f64,
    pub(crate) numbers: Numbers,
    pub(crate) metadata: String,
    pub(crate) auxiliary: String,
    pub(crate) gathered: String,
}

/// How a record ends.
#[derive(Debug, Clone)]
pub(crate) struct Finish {
    pub(crate) status: JobStatus,
    pub(crate) end_time: Option<f64>,
    pub(crate) numbers: Numbers,
    /// Replaces the user of the record when it was not known before.
    pub(crate) user: Option<String>,
    /// Replaces the metadata of the record.
    pub(crate) metadata: Option<String>,
    /// Replaces the auxiliary data of the record; none when what was gathered is not known.
    pub(crate) auxiliary: Option<String>,
    /// What the auxiliary data was made of.
    pub(crate) gathered: Option<String>,
    pub(crate) contributions: Vec<Contribution>,
}

/// Which records a list holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filter {
    /// Began after.
    pub(crate) since: Option<f64>,
    /// Began before.
    pub(crate) before: Option<f64>,
    /// One of these; all when empty.
    pub(crate) statuses: Vec<JobStatus>,
    /// This file.
    pub(crate) filename: Option<String>,
    /// Words in the name of the file or the user, in any case.
    pub(crate) search: Option<String>,
    pub(crate) newest_first: bool,
    /// All when none.
    pub(crate) limit: Option<u64>,
    pub(crate) offset: u64,
}

/// Adds a record.
pub(crate) fn start(conn: &Connection, job: &NewJob) -> Result<JobId, StoreError> {
    let sql =
        "INSERT INTO job (filename, user, status, start_time, total_duration, print_duration, filament_used, metadata, auxiliary, gathered)
               VALUES (?1, ?2, 'in_progress', ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let Numbers { total_duration, print_duration, filament_used } = job.numbers;
    conn.prepare_cached(sql)?.execute(params![
        job.filename,
        job.user,
        job.start_time,
        total_duration,
        print_duration,
        filament_used,
        job.metadata,
        job.auxiliary,
        job.gathered
    ])?;
    Ok(conn.last_insert_rowid())
}

/// Keeps the counters of a record that is in progress.
pub(crate) fn save(conn: &Connection, id: JobId, numbers: Numbers, gathered: &str) -> Result<(), StoreError> {
    let sql = "UPDATE job SET total_duration = ?2, print_duration = ?3, filament_used = ?4, gathered = ?5 WHERE id = ?1 AND status = 'in_progress'";
    let Numbers { total_duration, print_duration, filament_used } = numbers;
    conn.prepare_cached(sql)?.execute(params![id, total_duration, print_duration, filament_used, gathered])?;
    Ok(())
}

/// Ends a record and counts it. Nothing happens to one that is not in progress: nothing is counted twice.
pub(crate) fn finish(conn: &Connection, id: JobId, finish: &Finish) -> Result<Option<Record>, StoreError> {
    let sql = "UPDATE job SET status = ?2, end_time = ?3, total_duration = ?4, print_duration = ?5, filament_used = ?6,
               user = coalesce(user, ?7), metadata = coalesce(?8, metadata), auxiliary = coalesce(?9, auxiliary), gathered = coalesce(?10, gathered)
               WHERE id = ?1 AND status = 'in_progress'";
    let Numbers { total_duration, print_duration, filament_used } = finish.numbers;
    let changed = conn.prepare_cached(sql)?.execute(params![
        id,
        finish.status.as_str(),
        finish.end_time,
        total_duration,
        print_duration,
        filament_used,
        finish.user,
        finish.metadata,
        finish.auxiliary,
        finish.gathered
    ])?;
    if changed == 0 {
        return Ok(None);
    }
    totals::add(conn, &finish.numbers, &finish.contributions)?;
    get(conn, id)
}

/// Takes the end of a record back, and what it counted; false when there is no such ended record.
pub(crate) fn reopen(conn: &Connection, id: JobId, contributions: &[Contribution]) -> Result<bool, StoreError> {
    let Some(record) = get(conn, id)?.filter(|record| record.status != JobStatus::InProgress) else { return Ok(false) };
    conn.execute("UPDATE job SET status = 'in_progress', end_time = NULL WHERE id = ?1", [id])?;
    totals::take_back(conn, &record.numbers, contributions)?;
    Ok(true)
}

/// The record with this id.
pub(crate) fn get(conn: &Connection, id: JobId) -> Result<Option<Record>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM job WHERE id = ?1");
    Ok(conn.prepare_cached(&sql)?.query_row([id], record).optional()?)
}

/// What was gathered for the auxiliary data of a record.
pub(crate) fn gathered(conn: &Connection, id: JobId) -> Result<String, StoreError> {
    let sql = "SELECT gathered FROM job WHERE id = ?1";
    Ok(conn.query_row(sql, [id], |row| row.get(0)).optional()?.unwrap_or_default())
}

/// Ids of the records in progress, newest first.
pub(crate) fn open(conn: &Connection) -> Result<Vec<JobId>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT id FROM job WHERE status = ?1 ORDER BY id DESC")?;
    let ids = statement.query_map([IN_PROGRESS], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Records that fit, handed out one after the other until `take` has enough.
pub(crate) fn list(conn: &Connection, filter: &Filter, mut take: impl FnMut(Record) -> Result<(), StoreError>) -> Result<(), StoreError> {
    // The inner query finds the ids in the indexes alone; whole records are read for the answer only.
    let mut sql = format!("SELECT {COLUMNS} FROM job WHERE id IN (SELECT id FROM job WHERE 1");
    let mut values: Vec<SqlValue> = Vec::new();
    let mut condition = |text: &str, value: SqlValue| {
        sql.push_str(text);
        values.push(value);
    };
    if let Some(since) = filter.since {
        condition(" AND start_time > ?", since.into());
    }
    if let Some(before) = filter.before {
        condition(" AND start_time < ?", before.into());
    }
    if let Some(filename) = &filter.filename {
        condition(" AND filename = ?", filename.clone().into());
    }
    for word in filter.search.iter().flat_map(|text| text.split_whitespace()) {
        let pattern = format!("%{}%", word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
        condition(" AND (filename || ' ' || ifnull(user, '')) LIKE ? ESCAPE '\\'", pattern.into());
    }
    if !filter.statuses.is_empty() {
        let marks = vec!["?"; filter.statuses.len()].join(",");
        sql.push_str(&format!(" AND status IN ({marks})"));
        values.extend(filter.statuses.iter().map(|status| SqlValue::from(status.as_str().to_owned())));
    }
    let order = if filter.newest_first { " ORDER BY id DESC" } else { " ORDER BY id" };
    sql.push_str(order);
    if let Some(limit) = filter.limit {
        sql.push_str(" LIMIT ? OFFSET ?");
        values.extend([limit, filter.offset].map(|number| SqlValue::from(i64::try_from(number).unwrap_or(i64::MAX))));
    }
    sql.push(')');
    sql.push_str(order);
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        take(record(row)?)?;
    }
    Ok(())
}

/// Removes a record that is not in progress; tells whether it was there.
pub(crate) fn delete(conn: &Connection, id: JobId) -> Result<bool, StoreError> {
    Ok(conn.execute("DELETE FROM job WHERE id = ?1 AND status != 'in_progress'", [id])? > 0)
}

/// Removes all records that are not in progress.
pub(crate) fn delete_all(conn: &Connection) -> Result<Vec<JobId>, StoreError> {
    let mut statement = conn.prepare("DELETE FROM job WHERE status != 'in_progress' RETURNING id")?;
    let ids = statement.query_map([], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// What was last seen of the printer.
pub(crate) fn mark(conn: &Connection) -> Result<Option<Mark>, StoreError> {
    let sql =
        "SELECT job, filename, state, total_duration, print_duration, filament_used, start_time, seen_at, host, orderly FROM job_mark";
    let read = |row: &Row<'_>| {
        let state: String = row.get(2)?;
        Ok(Mark {
            job: row.get(0)?,
            filename: row.get(1)?,
            state: PrintState::from_wire(&state).unwrap_or(PrintState::Standby),
            numbers: Numbers { total_duration: row.get(3)?, print_duration: row.get(4)?, filament_used: row.get(5)? },
            start_time: row.get(6)?,
            seen_at: row.get(7)?,
            host: row.get::<_, Option<i64>>(8)?.map(i64::cast_unsigned),
            orderly: row.get(9)?,
        })
    };
    Ok(conn.query_row(sql, [], read).optional()?)
}

/// Keeps what was last seen.
pub(crate) fn set_mark(conn: &Connection, mark: &Mark) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO job_mark
               (one, job, filename, state, total_duration, print_duration, filament_used, start_time, seen_at, host, orderly)
               VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let Numbers { total_duration, print_duration, filament_used } = mark.numbers;
    conn.prepare_cached(sql)?.execute(params![
        mark.job,
        mark.filename,
        mark.state.as_str(),
        total_duration,
        print_duration,
        filament_used,
        mark.start_time,
        mark.seen_at,
        mark.host.map(u64::cast_signed),
        mark.orderly
    ])?;
    Ok(())
}

/// True when a job is in progress.
pub(crate) fn is_busy(conn: &Connection) -> Result<bool, StoreError> {
    Ok(!open(conn)?.is_empty())
}

/// Our own totals.
pub(crate) fn own_totals(conn: &Connection) -> Result<JobTotals, StoreError> {
    Ok(JobTotals::read(|field| totals::get(conn, OWN, field).unwrap_or_default()))
}

fn record(row: &Row<'_>) -> store::rusqlite::Result<Record> {
    let status: String = row.get(3)?;
    Ok(Record {
        id: row.get(0)?,
        filename: row.get(1)?,
        user: row.get(2)?,
        // A word of a later version: nobody knows how it ended.
        status: JobStatus::from_wire(&status).unwrap_or(JobStatus::Interrupted),
        start_time: row.get(4)?,
        end_time: row.get(5)?,
        numbers: Numbers { total_duration: row.get(6)?, print_duration: row.get(7)?, filament_used: row.get(8)? },
        metadata: row.get(9)?,
        auxiliary: row.get(10)?,
    })
}

#[cfg(test)]
mod tests;
