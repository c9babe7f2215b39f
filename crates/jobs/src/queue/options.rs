//! What the owner decides about the queue (wire/2-files-jobs.md section 9).

use std::time::Duration;

use super::model::Rules;

config::options! {
    /// The job queue.
    pub struct JobQueueOptions: "job_queue" {
        /// Loads the first job when the firmware host becomes ready.
        load_on_startup: bool = false,
        /// Loads the next job when one completes.
        automatic_transition: bool = false,
        /// Seconds between the end of a job and the load of the next one.
        job_transition_delay: f64 { above 0, max 86400 } = 0.01,
        /// Gcode that is run between two jobs, to clear the bed for example.
        job_transition_gcode: String = "",
        /// Holds the next job after the end of one until somebody confirms that the bed is clear: by `server.job_queue.bed_clear`, by the remote method `confirm_bed_clear` of a macro, or by a start of the queue.
        confirm_bed_clear: bool = false,
    }
}

config::options! {
    /// The history of jobs; there is nothing to decide about it.
    pub struct HistoryOptions: "history" {}
}

impl JobQueueOptions {
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            load_on_startup: self.load_on_startup,
            automatic_transition: self.automatic_transition,
            transition_delay: Duration::try_from_secs_f64(self.job_transition_delay).unwrap_or_default(),
            confirm_bed_clear: self.confirm_bed_clear,
        }
    }
}
