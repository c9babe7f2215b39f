//! The history as a file for other programs.

use std::fmt::Write;
use std::sync::Arc;

use protocol::ApiError;
use protocol::jobs::JobEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// A table: comma-separated values with a head line, RFC 4180.
    #[default]
    Csv,
    /// An array of entries.
    Json,
}

/// The file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Export {
    /// What it is.
    format: Format,
    /// Jobs in it.
    count: usize,
    /// Its text.
    content: String,
}

const HEAD: &str = "job_id,status,filename,user,start_time,end_time,print_duration,total_duration,filament_used,filament_type,slicer";

/// Writes; on a thread of its own, since it can be much.
pub(crate) async fn write(format: Format, jobs: Arc<[JobEntry]>) -> Result<Export, ApiError> {
    let failed = |error: String| ApiError::internal(format!("The export could not be written: {error}"));
    let work = tokio::task::spawn_blocking(move || {
        let content = match format {
            Format::Csv => csv(&jobs),
            Format::Json => serde_json::to_string(&jobs).map_err(|error| error.to_string())?,
        };
        Ok(Export { format, count: jobs.len(), content })
    });
    work.await.map_err(|error| failed(error.to_string()))?.map_err(failed)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Material {
    filament_type: String,
    slicer: String,
}

fn csv(jobs: &[JobEntry]) -> String {
    let mut out = format!("{HEAD}\r\n");
    for job in jobs {
        let material: Material = serde_json::from_str(job.metadata.get()).unwrap_or_default();
        let end = job.end_time.map(|time| time.to_string()).unwrap_or_default();
        let _ = write!(
            out,
            "{},{},{},{},{},{end},{},{},{},{},{}\r\n",
            job.job_id,
            job.status.as_str(),
            cell(&job.filename),
            cell(job.user.as_deref().unwrap_or_default()),
            job.start_time,
            job.print_duration,
            job.total_duration,
            job.filament_used,
            cell(&material.filament_type),
            cell(&material.slicer),
        );
    }
    out
}

/// A cell of text. One that a spreadsheet would run as a formula is marked as text.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_cells() {
        let table = [
            ("a.gcode", "a.gcode"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("@x,y", "\"'@x,y\""),
            ("", ""),
        ];
        for (text, expected) in table {
            assert_eq!(cell(text), expected);
        }
    }
}
