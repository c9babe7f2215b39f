//! What waits to be written to one connection.
//!
//! Answers and notifications queue in order and are never dropped; status updates of a reader that lags merge into one (the latest value of each
//! field wins), so that a slow client costs at most one full status. A connection whose queue outgrows the limit is closed with a reason.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use protocol::Frame;
use protocol::status::{PendingStatus, Selection, StatusDiff};
use tokio::sync::Notify;

/// Bytes that may wait for one connection before one more message closes it; a single message of any size passes.
pub const MAX_OUTBOX_BYTES: usize = 4 * 1024 * 1024;

/// Messages that may wait for one connection.
pub const MAX_OUTBOX_MESSAGES: usize = 8192;

/// Queued messages from which on status updates merge instead of queueing.
const STATUS_BACKLOG: usize = 8;

/// Why a connection is closed from our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The server stops or restarts.
    Shutdown,
    /// The reader does not keep up.
    TooSlow,
    /// A stranger did not authenticate in time.
    Unauthorised,
    /// The other side has gone; nobody reads this.
    Gone,
}

impl CloseReason {
    /// Text in the websocket close frame.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Shutdown => "Server Shutdown",
            Self::TooSlow => "Client does not keep up with its messages",
            Self::Unauthorised => "Not authenticated in time",
            Self::Gone => "Gone",
        }
    }
}

/// The queue of one connection: filled by anybody, emptied by the connection's own loop.
#[derive(Debug, Default)]
pub struct Outbox {
    state: Mutex<State>,
    filled: Notify,
    /// Counts subscription requests: only the latest one counts.
    subscriptions: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Frame>,
    bytes: usize,
    status: PendingStatus,
    /// Status waits while a subscription's answer is not queued yet.
    holds: usize,
    closed: Option<CloseReason>,
}

/// While it lives, status updates merge instead of being queued.
pub struct StatusHold(Arc<Outbox>);

impl Drop for StatusHold {
    fn drop(&mut self) {
        self.0.state.lock().holds -= 1;
        self.0.filled.notify_one();
    }
}

impl Outbox {
    /// Queues a message.
    pub fn push(&self, frame: Frame) {
        self.state.lock().push(frame);
        self.filled.notify_one();
    }

    /// Queues several messages in a row.
    pub fn push_all(&self, frames: &[Frame]) {
        let mut state = self.state.lock();
        for frame in frames {
            state.push(frame.clone());
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Queues a status update, or merges it when the reader lags.
    pub fn push_status(&self, frame: &Frame, diff: &StatusDiff, selection: &Selection) {
        let mut state = self.state.lock();
        if state.closed.is_some() {
            return;
        }
        if state.holds > 0 || !state.status.is_empty() || state.queue.len() >= STATUS_BACKLOG {
            state.status.merge(diff, selection);
        } else {
            state.push(frame.clone());
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Holds status updates back until the guard is dropped: they must not overtake the answer that they build upon.
    #[must_use]
    pub fn hold_status(self: &Arc<Self>) -> StatusHold {
        self.state.lock().holds += 1;
        StatusHold(self.clone())
    }

    /// Notes a new subscription request (also one that cancels) and gives its number.
    pub fn next_subscription(&self) -> u64 {
        self.subscriptions.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// True while no later request came and the connection is open.
    #[must_use]
    pub fn is_current(&self, subscription: u64) -> bool {
        self.subscriptions.load(Ordering::Acquire) == subscription && self.closed().is_none()
    }

    /// Bytes that wait.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Forgets status that was not queued yet.
    pub fn drop_status(&self) {
        self.state.lock().status.clear();
    }

    /// Asks the connection's loop to end.
    pub fn close(&self, reason: CloseReason) {
        self.state.lock().closed.get_or_insert(reason);
        self.filled.notify_one();
    }

    /// Why the connection has to end, if it has to. What was queued before may still be sent.
    #[must_use]
    pub fn closed(&self) -> Option<CloseReason> {
        self.state.lock().closed
    }

    /// Moves at most `limit` messages to `out`; pending status follows when the queue is empty. True when something was moved.
    pub fn take(&self, out: &mut Vec<Frame>, limit: usize) -> bool {
        let mut state = self.state.lock();
        while out.len() < limit
            && let Some(frame) = state.queue.pop_front()
        {
            state.bytes -= frame.len();
            out.push(frame);
        }
        if state.queue.is_empty() && state.holds == 0 && out.len() < limit {
            out.extend(state.status.take());
        }
        // A burst must not leave its buffer behind in every connection.
        if state.queue.is_empty() && state.queue.capacity() > 64 {
            state.queue = VecDeque::new();
        }
        !out.is_empty()
    }

    /// Waits until something may have been queued or closed.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }
}

impl State {
    fn push(&mut self, frame: Frame) {
        if self.closed.is_some() {
            return;
        }
        if self.bytes > MAX_OUTBOX_BYTES || self.queue.len() >= MAX_OUTBOX_MESSAGES {
            self.closed = Some(CloseReason::TooSlow);
            self.queue = VecDeque::new();
            self.bytes = 0;
            self.status.clear();
            return;
        }
        self.bytes += frame.len();
        self.queue.push_back(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::status::ObjectDiff;

    fn diff(value: u32) -> StatusDiff {
        StatusDiff {
            eventtime: value.to_string().into(),
            objects: vec![ObjectDiff { name: "fan".into(), fields: vec![("speed".into(), value.to_string().into())] }],
        }
    }

    fn taken(outbox: &Outbox) -> Vec<String> {
        let mut out = Vec::new();
        outbox.take(&mut out, usize::MAX);
        out.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
    }

    #[test]
    fn order_is_kept() {
        let outbox = Outbox::default();
        outbox.push(Frame::from_static(b"1"));
        outbox.push_all(&[Frame::from_static(b"2"), Frame::from_static(b"3")]);
        assert_eq!(taken(&outbox), ["1", "2", "3"]);
    }

    #[test]
    fn status_of_a_slow_reader_merges_and_stays_bounded() {
        let outbox = Outbox::default();
        let all = Selection::from_json(r#"{"fan":null}"#).unwrap();
        for value in 0..10_000 {
            let diff = diff(value);
            outbox.push_status(&diff.notification(&all).unwrap(), &diff, &all);
        }
        outbox.push(Frame::from_static(b"answer"));
        let all = taken(&outbox);
        assert_eq!(all.len(), STATUS_BACKLOG + 2);
        assert_eq!(all[STATUS_BACKLOG], "answer");
        assert!(all.last().unwrap().contains(r#"{"fan":{"speed":9999}},9999"#));
    }

    #[test]
    fn status_waits_for_the_answer_of_its_subscription() {
        let outbox = Arc::new(Outbox::default());
        let all = Selection::from_json(r#"{"fan":null}"#).unwrap();
        let hold = outbox.hold_status();
        outbox.push_status(&diff(1).notification(&all).unwrap(), &diff(1), &all);
        assert!(taken(&outbox).is_empty());
        outbox.push(Frame::from_static(b"answer"));
        drop(hold);
        let all = taken(&outbox);
        assert_eq!(all[0], "answer");
        assert!(all[1].contains("notify_status_update"));
    }

    #[test]
    fn only_the_latest_subscription_of_an_open_connection_counts() {
        let outbox = Outbox::default();
        let first = outbox.next_subscription();
        assert!(outbox.is_current(first));
        let second = outbox.next_subscription();
        assert!(!outbox.is_current(first) && outbox.is_current(second));
        outbox.close(CloseReason::Gone);
        assert!(!outbox.is_current(second));
    }

    #[test]
    fn a_queue_over_its_limit_closes_the_connection_and_frees_memory() {
        let outbox = Outbox::default();
        let big = Frame::from(vec![b'x'; MAX_OUTBOX_BYTES + 1]);
        outbox.push(big.clone());
        assert_eq!(outbox.closed(), None, "a single large answer passes");
        outbox.push(big);
        assert_eq!(outbox.closed(), Some(CloseReason::TooSlow));
        assert!(taken(&outbox).is_empty());
        outbox.push(Frame::from_static(b"late"));
        assert!(taken(&outbox).is_empty());
    }
}
