//! Totals over all jobs, also over those whose records were deleted.

use schemars::JsonSchema;
use serde::Serialize;
use store::StoreError;
use store::rusqlite::{Connection, OptionalExtension, params};

use super::auxiliary::{AuxiliaryTotal, Contribution, OWN};
use super::record::Numbers;

/// *Job Totals* of document 2.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct JobTotals {
    /// Number of jobs.
    pub total_jobs: u64,
    /// Seconds, pauses included.
    pub total_time: f64,
    /// Seconds of printing.
    pub total_print_time: f64,
    /// Millimetres.
    pub total_filament_used: f64,
    /// The longest job in seconds, pauses included.
    pub longest_job: f64,
    /// The longest job in seconds of printing.
    pub longest_print: f64,
}

/// All totals.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Totals {
    pub(crate) jobs: JobTotals,
    pub(crate) auxiliary: Vec<AuxiliaryTotal>,
}

impl JobTotals {
    /// From the stored total and maximum of each field.
    pub(crate) fn read(look_up: impl Fn(&str) -> (f64, f64)) -> Self {
        Self {
            total_jobs: whole(look_up("total_jobs").0),
            total_time: look_up("total_time").0,
            total_print_time: look_up("total_print_time").0,
            total_filament_used: look_up("total_filament_used").0,
            longest_job: look_up("longest_job").1,
            longest_print: look_up("longest_print").1,
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, kept as the number that it is")]
fn whole(count: f64) -> u64 {
    count.round().max(0.0) as u64
}

/// Counts a finished job.
pub(crate) fn add(conn: &Connection, numbers: &Numbers, contributions: &[Contribution]) -> Result<(), StoreError> {
    let own = [
        ("total_jobs", 1.0, 0.0),
        ("total_time", numbers.total_duration, 0.0),
        ("total_print_time", numbers.print_duration, 0.0),
        ("total_filament_used", numbers.filament_used, 0.0),
        ("longest_job", 0.0, numbers.total_duration),
        ("longest_print", 0.0, numbers.print_duration),
    ];
    for (field, total, maximum) in own {
        count(conn, OWN, field, total, maximum)?;
    }
    for Contribution { provider, field, value } in contributions {
        count(conn, provider, field, *value, *value)?;
    }
    Ok(())
}

/// Uncounts a job that goes on after all; it is counted again at its end, when it is longer. Never below nothing: the totals may have been
/// reset meanwhile.
pub(crate) fn take_back(conn: &Connection, numbers: &Numbers, contributions: &[Contribution]) -> Result<(), StoreError> {
    let sql = "UPDATE job_total SET total = max(0, total - ?3) WHERE provider = ?1 AND field = ?2";
    let mut statement = conn.prepare_cached(sql)?;
    for (field, amount) in [
        ("total_jobs", 1.0),
        ("total_time", numbers.total_duration),
        ("total_print_time", numbers.print_duration),
        ("total_filament_used", numbers.filament_used),
    ] {
        statement.execute(params![OWN, field, amount])?;
    }
    for Contribution { provider, field, value } in contributions {
        statement.execute(params![provider, field, value])?;
    }
    Ok(())
}

/// Adds to the total of a field and raises its maximum.
pub(crate) fn count(conn: &Connection, provider: &str, field: &str, total: f64, maximum: f64) -> Result<(), StoreError> {
    let sql = "INSERT INTO job_total (provider, field, total, maximum) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO UPDATE SET total = total + excluded.total, maximum = max(maximum, excluded.maximum)";
    conn.prepare_cached(sql)?.execute(params![provider, field, total, maximum])?;
    Ok(())
}

/// Total and maximum of a field; zeros when nothing was counted.
pub(crate) fn get(conn: &Connection, provider: &str, field: &str) -> Result<(f64, f64), StoreError> {
    let sql = "SELECT total, maximum FROM job_total WHERE provider = ?1 AND field = ?2";
    let both = conn.prepare_cached(sql)?.query_row([provider, field], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(both.unwrap_or_default())
}

/// Forgets all totals.
pub(crate) fn reset(conn: &Connection) -> Result<(), StoreError> {
    conn.execute("DELETE FROM job_total", [])?;
    Ok(())
}
