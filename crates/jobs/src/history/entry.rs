//! Records as clients see them.

use std::sync::Arc;

use protocol::jobs::JobEntry;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::record::{Record, wire_id};
use crate::ports::{FileStamp, JobFiles, Looked};

/// What metadata says of the file itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Printed {
    size: Option<u64>,
    modified: Option<f64>,
}

/// A record in its outer shape, except that nobody looked after its file.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    entry: JobEntry,
    file: FileStamp,
}

impl Known {
    /// Length of the stored text.
    pub(crate) fn bytes(&self) -> usize {
        self.entry.metadata.get().len() + self.entry.auxiliary_data.get().len()
    }
}

impl From<Record> for Known {
    fn from(record: Record) -> Self {
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
        Self { entry, file }
    }
}

/// Looks after the files of records; also gives how long that holds.
pub(crate) async fn entries(files: &dyn JobFiles, jobs: &[Known]) -> (Arc<[JobEntry]>, Option<u64>) {
    let Looked { unchanged, mark } = files.unchanged(jobs.iter().map(|job| job.file.clone()).collect()).await;
    let exist = unchanged.into_iter().chain(std::iter::repeat(false));
    (jobs.iter().zip(exist).map(|(job, exists)| JobEntry { exists, ..job.entry.clone() }).collect(), mark)
}

/// The same for one.
pub(crate) async fn entry(files: &dyn JobFiles, record: Record) -> JobEntry {
    let Known { entry, file } = record.into();
    let exists = files.unchanged(vec![file]).await.unchanged.first().copied().unwrap_or(false);
    JobEntry { exists, ..entry }
}

/// Stored JSON as it stands, or `otherwise` when somebody has damaged it.
fn raw(json: String, otherwise: &str) -> Box<RawValue> {
    RawValue::from_string(json).or_else(|_| RawValue::from_string(otherwise.to_owned())).unwrap_or_default()
}
