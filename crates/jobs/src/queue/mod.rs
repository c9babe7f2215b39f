//! The job queue: jobs that wait for the printer, one after the other.
//!
//! ```text
//! operations, macros ─► service ─► worker ─► model (pure): what follows
//! job events, host   ────────────►   │ ─► table (before the answer) ─► notifications (after it)
//!                                    └──► delay, transition gcode, start of the print
//! ```

mod api;
mod model;
mod options;
mod service;
mod table;
mod worker;

pub use model::MAX_QUEUED_JOBS;
pub use options::{HistoryOptions, JobQueueOptions};
pub use service::{Queue, QueueStatus};
