//! Print jobs: what the printer does with them, what became of them, and which come next.
//!
//! ```text
//! firmware host ─► state (pure): what happened to the job ─► history: a record, written before anybody is told ─► notification
//!                                                        └─► queue: the next job ─► start of the print
//! ```
//! Source: document 2 *Job queue* and *Job history*, wire/2-files-jobs.md sections 5 and 6.

mod clock;
mod history;
mod ports;
mod queue;

pub mod state;

pub use history::auxiliary::{Auxiliary, AuxiliaryTotal, Field, FieldHandle, Initial, MAX_COLLECTED, MAX_FIELDS, Strategy};
pub use history::totals::JobTotals;
pub use history::{FilePrint, ForeignJob, ForeignTotal, History, Imported, SAVE_INTERVAL, SCHEMA, import, prints};
pub use ports::{FileStamp, JobFiles, Looked, NoFiles, PrintStarter};
pub use queue::{HistoryOptions, JobQueueOptions, MAX_QUEUED_JOBS, Queue, QueueStatus};

pub use state::JobEvent;
