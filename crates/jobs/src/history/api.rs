//! The operations of document 2, *Job history*. Thin.

use std::sync::Arc;

use protocol::ApiError;
use protocol::jobs::{JobEntry, JobStatus};
use rpc::{Access, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auxiliary::AuxiliaryTotal;
use super::export::{self, Export, Format};
use super::service::History;
use super::table::Filter;
use super::totals::JobTotals;

/// Entries of a list when nothing else is asked for.
const DEFAULT_LIMIT: i64 = 50;

fn default_limit() -> i64 {
    DEFAULT_LIMIT
}

fn descending() -> String {
    "desc".to_owned()
}

/// Parameters of the list.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Entries at most; all when 0 or less.
    #[serde(default = "default_limit")]
    limit: i64,
    /// Entries to skip.
    #[serde(default)]
    start: i64,
    /// Only jobs that began before this time, Unix seconds.
    #[serde(default)]
    before: Option<f64>,
    /// Only jobs that began after this time, Unix seconds.
    #[serde(default)]
    since: Option<f64>,
    /// `desc` begins with the newest job, `asc` with the oldest.
    #[serde(default = "descending")]
    order: String,
    /// Only jobs with one of these statuses, separated by commas.
    #[serde(default)]
    status: Option<String>,
    /// Only jobs of this file, relative to `gcodes`.
    #[serde(default)]
    filename: Option<String>,
    /// Only jobs in whose file name or user all of these words are found.
    #[serde(default)]
    search: Option<String>,
}

/// Parameters of the export.
#[derive(Debug, Deserialize, JsonSchema)]
struct ExportParams {
    /// `csv` or `json`.
    #[serde(default)]
    format: Format,
    /// Only jobs that began before this time, Unix seconds.
    #[serde(default)]
    before: Option<f64>,
    /// Only jobs that began after this time, Unix seconds.
    #[serde(default)]
    since: Option<f64>,
    /// `asc` begins with the oldest job, `desc` with the newest.
    #[serde(default = "descending")]
    order: String,
    /// Only jobs with one of these statuses, separated by commas.
    #[serde(default)]
    status: Option<String>,
    /// Only jobs of this file, relative to `gcodes`.
    #[serde(default)]
    filename: Option<String>,
    /// Only jobs in whose file name or user all of these words are found.
    #[serde(default)]
    search: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct JobParams {
    /// Id of the job.
    uid: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct DeleteParams {
    /// Id of the job.
    #[serde(default)]
    uid: Option<String>,
    /// All jobs but the one in progress.
    #[serde(default)]
    all: bool,
}

#[derive(Serialize, JsonSchema)]
struct JobList {
    /// How many are in `jobs`.
    count: usize,
    jobs: Arc<[JobEntry]>,
}

#[derive(Serialize, JsonSchema)]
struct OneJob {
    job: JobEntry,
}

#[derive(Serialize, JsonSchema)]
struct Deleted {
    /// Ids of the deleted jobs.
    deleted_jobs: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct TotalsAnswer {
    job_totals: JobTotals,
    auxiliary_totals: Vec<AuxiliaryTotal>,
}

#[derive(Serialize, JsonSchema)]
struct LastTotals {
    last_totals: JobTotals,
    last_auxiliary_totals: Vec<AuxiliaryTotal>,
}

impl ListParams {
    fn filter(self) -> Result<Filter, ApiError> {
        if self.start < 0 {
            return Err(ApiError::argument(format!("Invalid value for argument [start]: {}, expected 0 or more", self.start)));
        }
        let limit = u64::try_from(self.limit).ok().filter(|limit| *limit > 0);
        Ok(Filter {
            since: given(self.since),
            before: given(self.before),
            statuses: statuses(self.status.as_deref())?,
            filename: self.filename,
            search: self.search,
            newest_first: newest_first(&self.order)?,
            limit,
            offset: self.start.unsigned_abs(),
        })
    }
}

impl ExportParams {
    fn filter(&self) -> Result<Filter, ApiError> {
        Ok(Filter {
            since: given(self.since),
            before: given(self.before),
            statuses: statuses(self.status.as_deref())?,
            filename: self.filename.clone(),
            search: self.search.clone(),
            newest_first: newest_first(&self.order)?,
            limit: None,
            offset: 0,
        })
    }
}

/// Clients send -1 for a time that is not given.
#[allow(clippy::float_cmp, reason = "the very number")]
fn given(time: Option<f64>) -> Option<f64> {
    time.filter(|time| *time != -1.0)
}

fn newest_first(order: &str) -> Result<bool, ApiError> {
    match order.to_ascii_lowercase().as_str() {
        "asc" => Ok(false),
        "desc" => Ok(true),
        _ => Err(ApiError::bad_request(format!("Invalid `order` value: {order:.32}, expected asc or desc"))),
    }
}

fn statuses(list: Option<&str>) -> Result<Vec<JobStatus>, ApiError> {
    let words = list.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            serde_json::from_value(serde_json::Value::String(word.to_owned())).map_err(|_| {
                let known = JobStatus::ALL.map(JobStatus::as_str).join(", ");
                ApiError::argument(format!("Invalid value for argument [status]: {word:.32}, expected of {known}"))
            })
        })
        .collect()
}

impl History {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.history.list")
            .get("/server/history/list")
            .access(Access::View)
            .doc("Past jobs and the one in progress, newest first.")
            .handle(self, |history, _, params: ListParams| async move {
                let jobs = history.list(params.filter()?).await?;
                Ok(JobList { count: jobs.len(), jobs })
            });
        registry
            .op("server.history.get_job")
            .get("/server/history/job")
            .access(Access::View)
            .doc("One job of the history.")
            .handle(self, |history, _, params: JobParams| async move { Ok(OneJob { job: history.job(&params.uid).await? }) });
        registry
            .op("server.history.totals")
            .get("/server/history/totals")
            .access(Access::View)
            .doc("Totals over all finished jobs, also over deleted ones.")
            .handle(self, |history, _, (): ()| async move {
                let totals = history.totals().await?;
                Ok(TotalsAnswer { job_totals: totals.jobs, auxiliary_totals: totals.auxiliary })
            });
        registry
            .op("server.history.export")
            .get("/server/history/export")
            .access(Access::View)
            .doc("Jobs as the text of a CSV or JSON file.")
            .handle(self, |history, _, params: ExportParams| async move {
                let jobs = history.list(params.filter()?).await?;
                export::write(params.format, jobs).await.map(|export: Export| export)
            });
        registry
            .op("server.history.reset_totals")
            .post("/server/history/reset_totals")
            .access(Access::Control)
            .doc("Sets all totals to zero and answers what they were.")
            .handle(self, |history, _, (): ()| async move {
                let last = history.reset_totals().await?;
                Ok(LastTotals { last_totals: last.jobs, last_auxiliary_totals: last.auxiliary })
            });
        registry
            .op("server.history.delete_job")
            .delete("/server/history/job")
            .access(Access::Control)
            .doc("Forgets a job, or all of them but the one in progress. Totals stay.")
            .handle(self, |history, _, params: DeleteParams| async move {
                let deleted_jobs = match (params.all, params.uid) {
                    (true, _) => history.delete_all().await?,
                    (false, Some(uid)) => vec![history.delete(&uid).await?],
                    (false, None) => return Err(ApiError::argument("No data for argument: uid")),
                };
                Ok(Deleted { deleted_jobs })
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_in_both_vocabularies() {
        let read = statuses(Some("completed, fwhost_shutdown,klippy_disconnect,")).unwrap();
        assert_eq!(read, [JobStatus::Completed, JobStatus::FwhostShutdown, JobStatus::FwhostDisconnect]);
        assert!(statuses(Some("done")).unwrap_err().message.contains("[status]"));
        assert_eq!(statuses(None).unwrap(), []);
    }

    #[test]
    fn times_that_are_not_given() {
        assert_eq!((given(Some(-1.0)), given(Some(-2.0)), given(None)), (None, Some(-2.0), None));
    }
}
