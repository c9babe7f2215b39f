//! The list of tasks behind [`Supervisor::report`](super::Supervisor::report).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

/// Failed tasks that are remembered; the oldest are forgotten first.
pub const MAX_FAILED: usize = 64;

/// Characters of a failure text that are remembered.
pub const MAX_FAILURE_CHARS: usize = 500;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It runs.
    Running,
    /// It failed and waits for its restart.
    Pausing,
    /// It failed and will not run again.
    Failed,
}

/// One task, as the supervisor sees it.
#[derive(Clone, Debug)]
pub struct TaskReport {
    /// The name it was spawned with.
    pub name: Arc<str>,
    /// Where it stands.
    pub state: TaskState,
    /// How often it was started again.
    pub restarts: u64,
    /// Text of its last failure.
    pub last_failure: Option<String>,
}

struct Record {
    report: TaskReport,
    abort: Option<AbortHandle>,
}

#[derive(Default)]
struct Records {
    next_id: u64,
    by_id: BTreeMap<u64, Record>,
}

/// All tasks that have not ended well.
#[derive(Default)]
pub(super) struct Roster {
    records: Mutex<Records>,
}

impl Roster {
    /// Adds a task that is about to run. It leaves the roster when the entry is dropped.
    pub(super) fn enter(roster: &Arc<Self>, name: Arc<str>) -> Entry {
        let report = TaskReport { name: name.clone(), state: TaskState::Running, restarts: 0, last_failure: None };
        let mut records = roster.records.lock();
        let id = records.next_id;
        records.next_id += 1;
        records.by_id.insert(id, Record { report, abort: None });
        Entry { roster: roster.clone(), id, name }
    }

    /// Remembers how to abort a task, unless it has ended already.
    pub(super) fn set_abort(&self, id: u64, abort: AbortHandle) {
        if let Some(record) = self.records.lock().by_id.get_mut(&id) {
            record.abort = Some(abort);
        }
    }

    pub(super) fn report(&self) -> Vec<TaskReport> {
        self.records.lock().by_id.values().map(|record| record.report.clone()).collect()
    }

    /// Aborts what has not ended and returns the names.
    pub(super) fn abort_all(&self) -> Vec<Arc<str>> {
        let unfinished: Vec<_> = {
            let records = self.records.lock();
            let live = records.by_id.values().filter(|record| record.report.state != TaskState::Failed);
            live.map(|record| (record.report.name.clone(), record.abort.clone())).collect()
        };
        // Without the lock: aborting may drop the task here and now, and with it its entry.
        unfinished
            .into_iter()
            .map(|(name, abort)| {
                abort.iter().for_each(AbortHandle::abort);
                name
            })
            .collect()
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut TaskReport)) {
        if let Some(record) = self.records.lock().by_id.get_mut(&id) {
            change(&mut record.report);
        }
    }

    fn leave(&self, id: u64) {
        let mut records = self.records.lock();
        let failed: Vec<u64> =
            records.by_id.iter().filter(|(_, record)| record.report.state == TaskState::Failed).map(|(id, _)| *id).collect();
        if !failed.contains(&id) {
            records.by_id.remove(&id);
        }
        for old in failed.iter().rev().skip(MAX_FAILED) {
            records.by_id.remove(old);
        }
    }
}

/// A task's own place in the roster, held by the task itself: whatever ends the task also clears the place, except
/// that a failed one is kept.
pub(super) struct Entry {
    roster: Arc<Roster>,
    id: u64,
    name: Arc<str>,
}

impl Entry {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn set_running(&self) {
        self.roster.change(self.id, |report| {
            report.state = TaskState::Running;
            report.restarts += 1;
        });
    }

    pub(super) fn set_pausing(&self, failure: &str) {
        self.fail(TaskState::Pausing, failure);
    }

    pub(super) fn set_failed(self, failure: &str) {
        self.fail(TaskState::Failed, failure);
    }

    fn fail(&self, state: TaskState, failure: &str) {
        self.roster.change(self.id, |report| {
            report.state = state;
            report.last_failure = Some(failure.chars().take(MAX_FAILURE_CHARS).collect());
        });
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.roster.leave(self.id);
    }
}
