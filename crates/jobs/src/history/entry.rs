//! Records as clients see them.

use std::sync::Arc;

use protocol::jobs::JobEntry;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::record::{Record, wire_id};
use crate::ports::{FileStamp, JobFiles};

/// What metadata says of the file itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Printed {
    size: Option<u64>,
    modified: Option<f64>,
}

/// A record in its outer shape, before anybody looked after its file, and the file as it was printed.
pub(crate) fn of(record: Record) -> (JobEntry, FileStamp) {
    let metadata = raw(record.metadata, "{}");
    let printed: Printed = serde_json::from_str(metadata.get()).unwrap_or_default();
    let file = FileStamp { filename: record.filename.clone(), size: printed.size, modified: printed.modified };
    let entry = JobEntry {
        job_id: wire_id(record.id),
        user: record.user,
        filename: record.filename,
        exists: false,
        status: record.status,
        start_time: record.start_time,
        end_time: record.end_time,
        print_duration: record.numbers.print_duration,
        total_duration: record.numbers.total_duration,
        filament_used: record.numbers.filament_used,
        metadata,
        auxiliary_data: raw(record.auxiliary, "[]"),
    };
    (entry, file)
}

/// Entries with what a look at their files found.
pub(crate) fn with_files(entries: Vec<JobEntry>, unchanged: Vec<bool>) -> Arc<[JobEntry]> {
    let exist = unchanged.into_iter().chain(std::iter::repeat(false));
    entries.into_iter().zip(exist).map(|(entry, exists)| JobEntry { exists, ..entry }).collect()
}

/// The entry of one record.
pub(crate) async fn entry(files: &dyn JobFiles, record: Record) -> JobEntry {
    let (entry, file) = of(record);
    let exists = files.unchanged(vec![file]).await.unchanged.first().copied().unwrap_or(false);
    JobEntry { exists, ..entry }
}

/// Stored JSON as it stands, or `otherwise` when somebody has damaged it.
fn raw(json: String, otherwise: &str) -> Box<RawValue> {
    RawValue::from_string(json).or_else(|_| RawValue::from_string(otherwise.to_owned())).unwrap_or_default()
}
