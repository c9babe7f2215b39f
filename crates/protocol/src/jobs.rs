//! Jobs as clients see them: entries of the history, the queue, and the payloads of their notifications (document 2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `status` of a job (document 2, *Job History entry*; `server_exit`: wire/2-files-jobs.md section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Under way.
    InProgress,
    /// Finished.
    Completed,
    /// Cancelled by the user.
    Cancelled,
    /// Aborted by an error of execution.
    Error,
    /// Aborted by a shutdown of the firmware host.
    #[serde(rename = "klippy_shutdown", alias = "fwhost_shutdown")]
    FwhostShutdown,
    /// The firmware host went away during the job.
    #[serde(rename = "klippy_disconnect", alias = "fwhost_disconnect")]
    FwhostDisconnect,
    /// The service was stopped in order during the job, and nobody saw its end.
    ServerExit,
    /// The service ended abruptly during the job, and nobody saw its end.
    Interrupted,
}

impl JobStatus {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::InProgress,
        Self::Completed,
        Self::Cancelled,
        Self::Error,
        Self::FwhostShutdown,
        Self::FwhostDisconnect,
        Self::ServerExit,
        Self::Interrupted,
    ];

    /// The wire form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
            Self::FwhostShutdown => "klippy_shutdown",
            Self::FwhostDisconnect => "klippy_disconnect",
            Self::ServerExit => "server_exit",
            Self::Interrupted => "interrupted",
        }
    }

    /// Reads the wire form.
    #[must_use]
    pub fn from_wire(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// *Job History entry* of document 2.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct JobEntry {
    /// Upper-case hexadecimal, at least six digits.
    pub job_id: String,
    /// Who started it; null when that is not known.
    pub user: Option<String>,
    /// Path relative to `gcodes`.
    pub filename: String,
    /// The file is there and is the one that was printed.
    pub exists: bool,
    /// How it stands or went.
    pub status: JobStatus,
    /// Unix seconds.
    pub start_time: f64,
    /// Unix seconds; null while in progress and when nobody saw the end.
    pub end_time: Option<f64>,
    /// Seconds of printing, pauses excluded.
    pub print_duration: f64,
    /// Seconds since the start, pauses included.
    pub total_duration: f64,
    /// Millimetres.
    pub filament_used: f64,
    /// Metadata of the file at that time.
    #[schemars(with = "serde_json::Value")]
    pub metadata: Box<RawValue>,
    /// What other components recorded: provider, name, description, value, units.
    #[schemars(with = "serde_json::Value")]
    pub auxiliary_data: Box<RawValue>,
}

/// What happened to a job of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryAction {
    /// A job began.
    Added,
    /// It ended.
    Finished,
}

/// Payload of `notify_history_changed` (wire/2-files-jobs.md section 6.5).
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HistoryChange {
    /// What happened.
    pub action: HistoryAction,
    /// The whole entry.
    pub job: JobEntry,
}

/// `queue_state` (document 2, *Job queue state*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueState {
    /// Loads the next job when the current one completes.
    Ready,
    /// Waits for delay and transition gcode.
    Loading,
    /// Asks the firmware host to start the print.
    Starting,
    /// Does not load anything.
    Paused,
}

/// *Queued Job* of document 2.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueuedJob {
    /// Path relative to `gcodes`.
    pub filename: String,
    /// Unique.
    pub job_id: String,
    /// Unix seconds.
    pub time_added: f64,
    /// Seconds up to now.
    pub time_in_queue: f64,
}

/// What happened to the queue (wire/2-files-jobs.md section 5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueAction {
    /// Another state, or another order.
    StateChanged,
    /// Jobs came.
    JobsAdded,
    /// Jobs were removed.
    JobsRemoved,
    /// The first job was started and left the queue.
    JobLoaded,
}

/// Payload of `notify_job_queue_changed`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueueChange {
    /// What happened.
    pub action: QueueAction,
    /// All jobs; null when they are the same as before.
    pub updated_queue: Option<Vec<QueuedJob>>,
    /// The state at that moment.
    pub queue_state: QueueState,
}
