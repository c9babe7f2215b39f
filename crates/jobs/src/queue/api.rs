//! The operations of document 2, *Job queue*. Thin.

use std::sync::Arc;

use protocol::ApiError;
use rpc::{Access, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

use super::model::Input;
use super::service::Queue;

fn one() -> u32 {
    1
}

#[derive(Debug, Deserialize, JsonSchema)]
struct AddParams {
    /// Paths relative to `gcodes`, in the order in which they are to be printed; the same file may stand there repeatedly.
    filenames: Vec<String>,
    /// Empties the queue first.
    #[serde(default)]
    reset: bool,
    /// How often each file is to be printed.
    #[serde(default = "one")]
    copies: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RemoveParams {
    /// Ids of jobs; unknown ones are ignored.
    #[serde(default)]
    job_ids: Option<Vec<String>>,
    /// All jobs.
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct JumpParams {
    /// Id of the job.
    job_id: String,
}

impl Queue {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.job_queue.status")
            .get("/server/job_queue/status")
            .access(Access::View)
            .doc("The jobs that wait, and what the queue does.")
            .handle(self, |queue, _, (): ()| async move { queue.status().await });
        registry
            .op("server.job_queue.post_job")
            .post("/server/job_queue/job")
            .access(Access::Control)
            .doc("Adds jobs at the end of the queue. When a file does not exist, nothing is added.")
            .handle(self, |queue, call, params: AddParams| async move {
                queue.enqueue(params.filenames, params.copies, params.reset, call.identity.name()).await
            });
        registry
            .op("server.job_queue.delete_job")
            .delete("/server/job_queue/job")
            .access(Access::Control)
            .doc("Removes jobs from the queue.")
            .handle(self, |queue, _, params: RemoveParams| async move {
                let input = match (params.all, params.job_ids) {
                    (true, _) => Input::Clear,
                    (false, Some(ids)) => Input::Remove { ids },
                    (false, None) => return Err(ApiError::argument("No data for argument: job_ids")),
                };
                queue.ask(Some(input)).await
            });
        registry
            .op("server.job_queue.pause")
            .post("/server/job_queue/pause")
            .access(Access::Control)
            .doc("Lets the queue load nothing more; a load under way is aborted.")
            .handle(self, |queue, _, (): ()| async move { queue.ask(Some(Input::Pause)).await });
        registry
            .op("server.job_queue.start")
            .post("/server/job_queue/start")
            .access(Access::Control)
            .doc("Loads the first job, or lets it be loaded when the printer has completed its present one.")
            .handle(self, |queue, _, (): ()| async move { queue.start().await });
        registry
            .op("server.job_queue.jump")
            .post("/server/job_queue/jump")
            .access(Access::Control)
            .doc("Moves a job to the front.")
            .handle(self, |queue, _, params: JumpParams| async move { queue.ask(Some(Input::Jump { id: params.job_id })).await });
        registry
            .op("server.job_queue.bed_clear")
            .post("/server/job_queue/bed_clear")
            .access(Access::Control)
            .doc("Confirms that the bed is clear, so that the next job is loaded. Of use with the option `confirm_bed_clear`.")
            .handle(self, |queue, _, (): ()| async move { queue.ask(Some(Input::BedClear)).await });
    }
}
