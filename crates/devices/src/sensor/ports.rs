//! What sensors need of the history of jobs.

use std::sync::Arc;

use protocol::sensor::SensorHistoryField;
use serde_json::Value;

/// Takes a number for a field of the history.
pub type Report = Arc<dyn Fn(Value) + Send + Sync>;

/// Gives the number with which a job begins.
pub type Initial = Arc<dyn Fn() -> Option<Value> + Send + Sync>;

/// Called when a job is about to begin or to end.
pub type Boundary = Arc<dyn Fn() + Send + Sync>;

/// Fields in the records of the history.
pub trait HistoryFields: Send + Sync {
    /// Adds a field.
    ///
    /// # Errors
    /// With a sentence.
    fn register(&self, field: &SensorHistoryField, initial: Option<Initial>) -> Result<Report, String>;

    /// Calls this before a job begins and before it ends, so that what waits can be reported.
    fn before_boundaries(&self, call: Boundary);
}
