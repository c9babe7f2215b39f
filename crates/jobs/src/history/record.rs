//! A job as the database keeps it.

use fwhost::{PrintState, PrintStats};
use protocol::jobs::JobStatus;

/// Number of a job; never used twice.
pub(crate) type JobId = i64;

/// The id on the wire: upper-case hexadecimal, at least six digits.
pub(crate) fn wire_id(id: JobId) -> String {
    format!("{id:06X}")
}

/// Reads an id of the wire; leading zeros and case do not matter.
pub(crate) fn parse_id(text: &str) -> Option<JobId> {
    let digits = !text.is_empty() && text.len() <= 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| JobId::from_str_radix(text, 16).ok()).flatten().filter(|id| *id > 0)
}

/// The counters of a run, as the firmware host gives them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Numbers {
    /// Seconds since the start, pauses included.
    pub(crate) total_duration: f64,
    /// Seconds of printing.
    pub(crate) print_duration: f64,
    /// Millimetres.
    pub(crate) filament_used: f64,
}

impl Numbers {
    pub(crate) fn of(stats: &PrintStats) -> Self {
        Self { total_duration: stats.total_duration, print_duration: stats.print_duration, filament_used: stats.filament_used }
    }
}

/// A record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) id: JobId,
    pub(crate) user: Option<String>,
    pub(crate) filename: String,
    pub(crate) status: JobStatus,
    pub(crate) start_time: f64,
    pub(crate) end_time: Option<f64>,
    pub(crate) numbers: Numbers,
    /// A JSON object.
    pub(crate) metadata: String,
    /// A JSON array.
    pub(crate) auxiliary: String,
}

/// What was last seen of the printer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
    /// The run's record, if it has one.
    pub(crate) job: Option<JobId>,
    pub(crate) filename: String,
    pub(crate) state: PrintState,
    pub(crate) numbers: Numbers,
    /// When the run began, Unix seconds.
    pub(crate) start_time: f64,
    /// When that was, Unix seconds.
    pub(crate) seen_at: f64,
    /// Process id of the firmware host.
    pub(crate) host: Option<u64>,
    /// The service was stopped in order after that.
    pub(crate) orderly: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hexadecimal() {
        assert_eq!((wire_id(39), wire_id(0x0123_4567)), ("000027".to_owned(), "1234567".to_owned()));
        for text in ["27", "000027", "0027"] {
            assert_eq!(parse_id(text), Some(39));
        }
        assert_eq!(parse_id("00aB"), Some(0xab));
        for bad in ["", "0", "-1", "+1", " 1", "xyz", "None", "123456789abcdef01", "ffffffffffffffff"] {
            assert_eq!(parse_id(bad), None, "{bad}");
        }
    }
}
