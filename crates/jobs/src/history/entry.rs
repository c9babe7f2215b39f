//! Records as clients see them.

use protocol::jobs::JobEntry;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::record::{Record, wire_id};
use crate::ports::{FileStamp, JobFiles};

/// What metadata says of the file itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Known {
    size: Option<u64>,
    modified: Option<f64>,
}

/// The file of a record as it was printed.
pub(crate) fn stamp(record: &Record) -> FileStamp {
    let known: Known = serde_json::from_str(&record.metadata).unwrap_or_default();
    FileStamp { filename: record.filename.clone(), size: known.size, modified: known.modified }
}

/// Looks after the files of records and gives them their outer shape.
pub(crate) async fn entries(files: &dyn JobFiles, records: Vec<Record>) -> Vec<JobEntry> {
    let exist = files.unchanged(records.iter().map(stamp).collect()).await;
    records.into_iter().zip(exist.into_iter().chain(std::iter::repeat(false))).map(|(record, exists)| entry(record, exists)).collect()
}

fn entry(record: Record, exists: bool) -> JobEntry {
    JobEntry {
        job_id: wire_id(record.id),
        user: record.user,
        filename: record.filename,
        exists,
        status: record.status,
        start_time: record.start_time,
        end_time: record.end_time,
        print_duration: record.numbers.print_duration,
        total_duration: record.numbers.total_duration,
        filament_used: record.numbers.filament_used,
        metadata: raw(record.metadata, "{}"),
        auxiliary_data: raw(record.auxiliary, "[]"),
    }
}

/// Stored JSON as it stands, or `otherwise` when somebody has damaged it.
fn raw(json: String, otherwise: &str) -> Box<RawValue> {
    RawValue::from_string(json).or_else(|_| RawValue::from_string(otherwise.to_owned())).unwrap_or_default()
}
