//! One owner for every background task.
//!
//! ```text
//!            ┌────────── restart after a pause ◄─ panic or error ─┐
//! spawn ─► running ───────────────────────────────────────────────┤
//!            ├─ returns Ok, or stop: forgotten                    │
//!            └─ too many failures: failed, kept in the report ◄───┘
//! ```
//!
//! Each failure is logged once, here. Long-lived work is a named task ([`Supervisor::spawn`]); work that ends soon by
//! itself and needs no name goes through [`Supervisor::tracker`], so that the stop waits for it too.

mod restarts;
mod roster;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant, sleep, timeout};
pub use tokio_util::sync::CancellationToken as StopToken;
pub use tokio_util::task::TaskTracker;

pub use restarts::{FIRST_DELAY, MAX_DELAY, MAX_RESTARTS, WINDOW};
use restarts::{Restarts, Verdict};
use roster::{Entry, Roster};
pub use roster::{MAX_FAILED, MAX_FAILURE_CHARS, TaskReport, TaskState};

/// How long [`Supervisor::stop`] waits for aborted tasks to let go of what they hold. Only a task that blocks its
/// thread needs longer.
const ABORT_GRACE: Duration = Duration::from_millis(200);

/// How a task may end. `()` never fails; an error fails with its text.
pub trait Outcome {
    /// The text of the failure, if it is one.
    fn failure(self) -> Option<String>;
}

impl Outcome for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: Display> Outcome for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

/// Who had not ended at the deadline of [`Supervisor::stop`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StopReport {
    /// Names of the tasks that were aborted.
    pub aborted: Vec<Arc<str>>,
    /// Number of tracked short tasks that were left running.
    pub left_running: usize,
}

impl StopReport {
    /// Whether everything ended in time.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.aborted.is_empty() && self.left_running == 0
    }
}

/// Owns every background task. Clones share the same tasks. Spawning needs a tokio runtime.
#[derive(Clone, Default)]
pub struct Supervisor {
    stop: StopToken,
    roster: Arc<Roster>,
    named: TaskTracker,
    short: TaskTracker,
}

impl Supervisor {
    /// A supervisor without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs what `factory` makes, and makes it again after a panic or an error, with growing pauses; see
    /// [`MAX_RESTARTS`] for the end of patience. A future that returns without an error is done.
    ///
    /// The future is to return soon after its token is cancelled. The returned token stops this task alone. After
    /// [`Supervisor::stop`] nothing is started any more.
    pub fn spawn<F, Fut>(&self, name: impl Into<Arc<str>>, factory: F) -> StopToken
    where
        F: FnMut(StopToken) -> Fut + Send + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: Outcome,
    {
        let stop = self.stop.child_token();
        self.enter(name.into(), |entry| keep_running(entry, stop.clone(), factory));
        stop
    }

    /// Runs `work` once. A panic or an error marks it failed. It is not told about the stop: use
    /// [`Supervisor::stop_token`] inside if it is long.
    pub fn spawn_once<Fut>(&self, name: impl Into<Arc<str>>, work: Fut)
    where
        Fut: Future + Send + 'static,
        Fut::Output: Outcome,
    {
        self.enter(name.into(), |entry| run_once(entry, work));
    }

    /// For short work that needs no name: the stop waits for what is spawned here, but cannot abort it.
    #[must_use]
    pub fn tracker(&self) -> &TaskTracker {
        &self.short
    }

    /// Cancelled as soon as [`Supervisor::stop`] is called.
    #[must_use]
    pub fn stop_token(&self) -> &StopToken {
        &self.stop
    }

    /// The tasks that run, pause before a restart or have failed, oldest first.
    #[must_use]
    pub fn report(&self) -> Vec<TaskReport> {
        self.roster.report()
    }

    /// Cancels all tasks and waits until they and the tracked short work have ended, at most for `deadline`. Then
    /// aborts the named ones that are left and tells who they were.
    pub async fn stop(&self, deadline: Duration) -> StopReport {
        self.stop.cancel();
        self.named.close();
        self.short.close();
        let all_ended = async { tokio::join!(self.named.wait(), self.short.wait()) };
        if timeout(deadline, all_ended).await.is_ok() {
            return StopReport::default();
        }
        let report = StopReport { aborted: self.roster.abort_all(), left_running: self.short.len() };
        let let_go = timeout(ABORT_GRACE, self.named.wait()).await;
        if !report.is_clean() {
            let (tasks, blocked) = (&report.aborted, let_go.is_err());
            tracing::warn!(?tasks, left_running = report.left_running, blocked, "not everything ended before the deadline");
        }
        report
    }

    fn enter<Fut>(&self, name: Arc<str>, run: impl FnOnce(Entry) -> Fut)
    where
        Fut: Future<Output = ()> + Send + 'static,
    {
        if self.stop.is_cancelled() {
            return tracing::debug!(task = %name, "not started: the server is stopping");
        }
        let entry = Roster::enter(&self.roster, name);
        let id = entry.id();
        let handle = self.named.spawn(run(entry));
        self.roster.set_abort(id, handle.abort_handle());
    }
}

async fn keep_running<F, Fut>(entry: Entry, stop: StopToken, mut factory: F)
where
    F: FnMut(StopToken) -> Fut,
    Fut: Future,
    Fut::Output: Outcome,
{
    let mut restarts = Restarts::default();
    while !stop.is_cancelled() {
        let Some(failure) = failure_of(async { factory(stop.clone()).await }).await else { return };
        if stop.is_cancelled() {
            return tracing::warn!(task = entry.name(), failure, "task failed while stopping");
        }
        match restarts.after_failure(Instant::now()) {
            Verdict::RetryIn(pause) => {
                tracing::error!(task = entry.name(), failure, pause_ms = pause.as_millis(), "task failed and will be restarted");
                entry.set_pausing(&failure);
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = sleep(pause) => entry.set_running(),
                }
            }
            Verdict::GiveUp => {
                tracing::error!(task = entry.name(), failure, "task failed too often and is given up");
                return entry.set_failed(&failure);
            }
        }
    }
}

async fn run_once<Fut>(entry: Entry, work: Fut)
where
    Fut: Future,
    Fut::Output: Outcome,
{
    if let Some(failure) = failure_of(work).await {
        tracing::error!(task = entry.name(), failure, "task failed");
        entry.set_failed(&failure);
    }
}

/// Runs `work` to its end; a panic counts as a failure.
///
/// The future is dropped after a panic and never polled again, so that it cannot be seen half-changed.
async fn failure_of<Fut>(work: Fut) -> Option<String>
where
    Fut: Future,
    Fut::Output: Outcome,
{
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(outcome) => outcome.failure(),
        Err(payload) => Some(format!("panic: {}", panic_text(&*payload))),
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("(no text)")
}
