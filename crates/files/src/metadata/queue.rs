//! Which files wait for a scan: asked for by somebody, or found in the background. A file waits once, whoever asks. No I/O here.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::list::MAX_LISTED_FILES;
use crate::path::RelPath;

/// Most files that wait: as many as a list can show.
const MAX_WAITING: usize = MAX_LISTED_FILES;

/// How often files whose object processing was put off are tried again.
const RETRY_DEFERRED: Duration = Duration::from_secs(5);

/// What the scanning thread is to do next.
#[derive(Debug)]
pub(crate) enum Task {
    /// Scan a file.
    Scan(Job),
    /// Everything found at the start is scanned.
    Settled,
}

/// A file that waits for a scan.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) path: RelPath,
    pub(crate) force: bool,
    /// Only its objects are due.
    pub(crate) deferred: bool,
    pub(crate) waiters: Vec<oneshot::Sender<()>>,
}

/// How a scan is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Somebody waits; only when the record is not valid.
    Now,
    /// Somebody waits, and wants it read again.
    Force,
    /// When nothing else is to do.
    Background,
}

#[derive(Default)]
struct Waiting {
    force: bool,
    deferred: bool,
    waiters: Vec<oneshot::Sender<()>>,
}

#[derive(Default)]
struct State {
    urgent: VecDeque<RelPath>,
    background: VecDeque<RelPath>,
    waiting: HashMap<RelPath, Waiting>,
    deferred: Vec<RelPath>,
    /// When those are due.
    retry: Option<Instant>,
    start: Start,
    stopped: bool,
}

#[derive(Default, PartialEq, Eq)]
enum Start {
    #[default]
    Looking,
    Given,
    Told,
}

impl State {
    /// Puts what was put off into line again when its time has come, however busy the queue is.
    fn take_deferred(&mut self, now: Instant) {
        if self.retry.is_none_or(|due| due > now) {
            return;
        }
        self.retry = None;
        for path in std::mem::take(&mut self.deferred) {
            self.waiting.entry(path.clone()).or_insert_with(|| Waiting { deferred: true, ..Waiting::default() });
            self.background.push_back(path);
        }
    }
}

/// The queue.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

impl Queue {
    /// Asks for a scan; the receiver ends when it is done, at once when too much waits.
    pub(crate) fn ask(&self, path: &RelPath, how: Ask) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let state = &mut *self.state.lock();
        if state.stopped || (state.waiting.len() >= MAX_WAITING && !state.waiting.contains_key(path)) {
            return receiver;
        }
        let line = if how == Ask::Background { &mut state.background } else { &mut state.urgent };
        // Twice in line is harmless: the second time nothing waits under this path.
        if how != Ask::Background || !state.waiting.contains_key(path) {
            line.push_back(path.clone());
        }
        let waiting = state.waiting.entry(path.clone()).or_default();
        waiting.force |= how == Ask::Force;
        waiting.deferred = false;
        waiting.waiters.push(sender);
        self.wake.notify_one();
        receiver
    }

    /// Puts a file's object processing off.
    pub(crate) fn defer(&self, path: RelPath) {
        let mut state = self.state.lock();
        if state.deferred.len() < MAX_WAITING && !state.deferred.contains(&path) {
            state.deferred.push(path);
            state.retry.get_or_insert_with(|| Instant::now() + RETRY_DEFERRED);
        }
    }

    /// Everything that the start found is given; `any` when there were files.
    pub(crate) fn start_is_given(&self, any: bool) {
        self.state.lock().start = if any { Start::Given } else { Start::Told };
        self.wake.notify_one();
    }

    /// True when the thread is about to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// True when the start's files are scanned.
    #[cfg(test)]
    pub(crate) fn is_settled(&self) -> bool {
        self.state.lock().start == Start::Told
    }

    /// Ends the thread after the task it has; what waits is dropped.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        // Nobody waits for what will not be done.
        state.waiting.clear();
        self.wake.notify_one();
    }

    /// The next task; waits for one. `None` when it is over.
    pub(crate) fn next(&self) -> Option<Task> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            state.take_deferred(Instant::now());
            if let Some(path) = state.urgent.pop_front().or_else(|| state.background.pop_front()) {
                if let Some(Waiting { force, deferred, waiters }) = state.waiting.remove(&path) {
                    return Some(Task::Scan(Job { path, force, deferred, waiters }));
                }
                continue;
            }
            if state.start == Start::Given {
                state.start = Start::Told;
                return Some(Task::Settled);
            }
            match state.retry {
                None => self.wake.wait(&mut state),
                Some(due) => drop(self.wake.wait_until(&mut state, due)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    fn next(queue: &Queue) -> Job {
        match queue.next() {
            Some(Task::Scan(job)) => job,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_put_off_comes_again_after_its_time_and_not_before() {
        let queue = Queue::default();
        queue.defer(path("a"));
        queue.defer(path("a"));
        drop(queue.ask(&path("b"), Ask::Background));
        assert_eq!(next(&queue).path.as_str(), "b");
        let due = queue.state.lock().retry.unwrap();
        assert!(due > Instant::now() + RETRY_DEFERRED / 2);
        queue.state.lock().take_deferred(due - Duration::from_millis(1));
        assert_eq!(queue.state.lock().background.len(), 0);
        // Other work that comes all the time does not push it back.
        drop(queue.ask(&path("c"), Ask::Background));
        queue.state.lock().take_deferred(due);
        assert_eq!(next(&queue).path.as_str(), "c");
        let again = next(&queue);
        assert!(again.path.as_str() == "a" && again.deferred);
        assert!(queue.state.lock().retry.is_none());
    }

    #[test]
    fn asked_for_comes_first_and_nobody_scans_twice() {
        let queue = Queue::default();
        drop(queue.ask(&path("a"), Ask::Background));
        drop(queue.ask(&path("b"), Ask::Background));
        let mut b = queue.ask(&path("b"), Ask::Now);
        drop(queue.ask(&path("b"), Ask::Force));
        let job = next(&queue);
        assert_eq!((job.path.as_str(), job.force, job.waiters.len()), ("b", true, 3));
        assert!(b.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
        drop(job);
        assert!(b.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
        queue.start_is_given(true);
        assert_eq!(next(&queue).path.as_str(), "a");
        assert!(matches!(queue.next(), Some(Task::Settled)));
        queue.stop();
        assert!(queue.next().is_none());
        assert!(queue.ask(&path("c"), Ask::Now).try_recv().is_err());
    }
}
