//! Requests on their way: queued in two lanes, numbered, awaited.
//!
//! Nothing here waits for anything; the session takes what is to be written and brings what was answered. A caller that goes away takes
//! its entry with it (the request itself is sent all the same: a script whose sender left still runs).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use protocol::envelope::write_string;
use protocol::status::{Selection, Text};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::failure::Failure;
use crate::frame::END;

/// Requests of callers that may wait for an answer at the same time. Scripts behind a heat-up wait for minutes, so this is generous.
pub(crate) const MAX_PENDING: usize = 2048;

/// Requests that may wait to be written.
const MAX_QUEUED: usize = 4096;

/// Bytes that may wait to be written.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;

/// In which order requests are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Before everything else that waits.
    Urgent,
    /// In the order of arrival.
    Normal,
}

/// What we asked for ourselves, and thus what its answer means.
#[derive(Debug, Clone)]
pub(crate) enum Purpose {
    /// State of the host; also the sign of life.
    Info,
    /// Endpoints that it offers.
    Endpoints,
    /// Names of its printer objects.
    Objects,
    /// The subscription to these objects.
    Standing(Arc<[Text]>),
    /// Nothing but an error is of interest.
    Plain,
}

/// Who waits for an answer.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// A caller. The result of a query goes into the mirror first.
    Caller { answer: oneshot::Sender<Result<Arc<str>, Failure>>, query: Option<Selection> },
    /// The session.
    Own(Purpose),
}

/// A request without an answer so far.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) endpoint: Text,
    pub(crate) waiter: Waiter,
    /// The printer may be different afterwards.
    pub(crate) command: bool,
    since: Instant,
    deadline: Option<Instant>,
    reports: u32,
}

/// Whose answer it is.
#[derive(Debug)]
pub(crate) enum Taken {
    /// Somebody waits.
    Pending(Pending),
    /// The caller has gone.
    Abandoned,
    /// Nobody ever asked that on this connection.
    NeverAsked,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Closed,
    /// Only for ourselves: nothing was answered yet.
    Greeting,
    Open,
}

#[derive(Default)]
struct State {
    stage: Stage,
    next_id: u64,
    /// The first id of this connection.
    first_id: u64,
    pending: HashMap<u64, Pending>,
    urgent: VecDeque<(u64, Bytes)>,
    normal: VecDeque<(u64, Bytes)>,
    queued_bytes: usize,
    writing: Option<u64>,
}

/// All requests of the link.
#[derive(Default)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    wake: Notify,
}

impl Exchange {
    /// A new connection: our own requests may go.
    pub(crate) fn greet(&self) {
        let mut state = self.state.lock();
        state.stage = Stage::Greeting;
        state.first_id = state.next_id;
    }

    /// The host answered: callers' requests may go.
    pub(crate) fn open(&self) {
        self.state.lock().stage = Stage::Open;
    }

    /// The connection is over: everybody who waits is told.
    pub(crate) fn close(&self) {
        let (pending, unsent) = {
            let mut state = self.state.lock();
            state.stage = Stage::Closed;
            state.queued_bytes = 0;
            let queued = std::mem::take(&mut state.urgent).into_iter().chain(std::mem::take(&mut state.normal));
            let unsent: HashSet<u64> = queued.map(|(id, _)| id).chain(state.writing.take()).collect();
            (std::mem::take(&mut state.pending), unsent)
        };
        for (id, pending) in pending {
            if let Waiter::Caller { answer, .. } = pending.waiter {
                let failure = if unsent.contains(&id) { Failure::NotWritten } else { Failure::Disconnected };
                // The caller may have gone in this moment.
                let _ = answer.send(Err(failure));
            }
        }
    }

    /// Asks for a caller. `params` is the text of a JSON object.
    pub(crate) fn ask(
        &self,
        endpoint: &str,
        params: Option<&str>,
        lane: Lane,
        command: bool,
        query: Option<Selection>,
    ) -> Result<Ticket<'_>, Failure> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if state.stage != Stage::Open {
            return Err(Failure::NotConnected);
        }
        let full = state.pending.len() >= MAX_PENDING
            || state.normal.len() >= MAX_QUEUED
            || state.queued_bytes + params.map_or(0, str::len) > MAX_QUEUED_BYTES;
        if full && lane == Lane::Normal {
            return Err(Failure::Busy);
        }
        let id = state.enqueue(endpoint, params, lane, Waiter::Caller { answer, query }, command, None);
        drop(state);
        self.wake.notify_one();
        Ok(Ticket { exchange: self, id, receiver })
    }

    /// Asks for ourselves; the connection is given up when no answer came by then.
    pub(crate) fn ask_own(&self, endpoint: &str, params: Option<&str>, purpose: Purpose, limit: Duration) {
        let mut state = self.state.lock();
        if state.stage != Stage::Closed {
            state.enqueue(endpoint, params, Lane::Normal, Waiter::Own(purpose), false, Some(Instant::now() + limit));
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Our own requests of this endpoint must be answered within `limit` from now. False when there is none.
    pub(crate) fn hasten(&self, endpoint: &str, limit: Duration) -> bool {
        let latest = Instant::now() + limit;
        let mut state = self.state.lock();
        let mut found = false;
        for pending in state.pending.values_mut().filter(|pending| &*pending.endpoint == endpoint) {
            if let Some(deadline) = &mut pending.deadline {
                *deadline = latest.min(*deadline);
                found = true;
            }
        }
        found
    }

    /// Gives our own requests more time.
    pub(crate) fn postpone(&self, by: Duration) {
        for deadline in self.state.lock().pending.values_mut().filter_map(|pending| pending.deadline.as_mut()) {
            *deadline += by;
        }
    }

    /// The next request to write. [`Exchange::written`] must follow.
    pub(crate) async fn next_write(&self) -> Bytes {
        loop {
            if let Some(frame) = self.state.lock().pop() {
                return frame;
            }
            self.wake.notified().await;
        }
    }

    /// What [`Exchange::next_write`] gave has been written completely.
    pub(crate) fn written(&self) {
        self.state.lock().writing = None;
    }

    /// An answer came.
    pub(crate) fn take(&self, id: Option<u64>) -> Taken {
        let mut state = self.state.lock();
        let Some(id) = id.filter(|id| (state.first_id..state.next_id).contains(id)) else { return Taken::NeverAsked };
        state.pending.remove(&id).map_or(Taken::Abandoned, Taken::Pending)
    }

    /// One of our own requests that is unanswered beyond its limit.
    pub(crate) fn overdue(&self, now: Instant) -> Option<Text> {
        let state = self.state.lock();
        state
            .pending
            .values()
            .find(|pending| pending.deadline.is_some_and(|deadline| deadline <= now))
            .map(|pending| pending.endpoint.clone())
    }

    /// True when a request is under way whose answer must come in time.
    pub(crate) fn has_deadline(&self) -> bool {
        self.state.lock().pending.values().any(|pending| pending.deadline.is_some())
    }

    /// Requests that have been pending for another `interval` since they were last reported, and for how many seconds.
    pub(crate) fn long_pending(&self, now: Instant, interval: Duration) -> Vec<(Text, u64)> {
        let mut state = self.state.lock();
        let mut report = Vec::new();
        for pending in state.pending.values_mut() {
            let waited = now.duration_since(pending.since);
            if waited >= interval * (pending.reports + 1) {
                pending.reports += 1;
                report.push((pending.endpoint.clone(), waited.as_secs()));
            }
        }
        report
    }

    #[cfg(test)]
    pub(crate) fn pending(&self) -> usize {
        self.state.lock().pending.len()
    }
}

impl State {
    fn enqueue(
        &mut self,
        endpoint: &str,
        params: Option<&str>,
        lane: Lane,
        waiter: Waiter,
        command: bool,
        deadline: Option<Instant>,
    ) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let frame = request(id, endpoint, params);
        self.queued_bytes += frame.len();
        match lane {
            Lane::Urgent => self.urgent.push_back((id, frame)),
            Lane::Normal => self.normal.push_back((id, frame)),
        }
        let since = Instant::now();
        self.pending.insert(id, Pending { endpoint: endpoint.into(), waiter, command, since, deadline, reports: 0 });
        id
    }

    fn pop(&mut self) -> Option<Bytes> {
        let (id, frame) = self.urgent.pop_front().or_else(|| self.normal.pop_front())?;
        self.queued_bytes -= frame.len();
        self.writing = Some(id);
        Some(frame)
    }
}

fn request(id: u64, endpoint: &str, params: Option<&str>) -> Bytes {
    let mut out = format!(r#"{{"id":{id},"method":"#).into_bytes();
    write_string(&mut out, endpoint);
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params.as_bytes());
    }
    out.extend_from_slice(&[b'}', END]);
    out.into()
}

/// A caller's place in the queue; given up when dropped.
pub(crate) struct Ticket<'a> {
    exchange: &'a Exchange,
    id: u64,
    receiver: oneshot::Receiver<Result<Arc<str>, Failure>>,
}

impl Ticket<'_> {
    /// The JSON text of the result (empty for a query, whose result is in the mirror).
    pub(crate) async fn answer(mut self) -> Result<Arc<str>, Failure> {
        (&mut self.receiver).await.unwrap_or(Err(Failure::Disconnected))
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.exchange.state.lock().pending.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn open() -> Exchange {
        let exchange = Exchange::default();
        exchange.greet();
        exchange.open();
        exchange
    }

    fn ask<'a>(exchange: &'a Exchange, endpoint: &str, lane: Lane) -> Result<Ticket<'a>, Failure> {
        exchange.ask(endpoint, Some("{}"), lane, true, None)
    }

    fn written(exchange: &Exchange) -> Option<String> {
        let frame = exchange.next_write().now_or_never()?;
        exchange.written();
        Some(String::from_utf8(frame.to_vec()).unwrap())
    }

    fn answer(exchange: &Exchange, id: u64, result: &str) {
        match exchange.take(Some(id)) {
            Taken::Pending(Pending { waiter: Waiter::Caller { answer, .. }, .. }) => answer.send(Ok(result.into())).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn answers_find_their_callers_in_any_order() {
        let exchange = open();
        let first = ask(&exchange, "gcode/script", Lane::Normal).unwrap();
        let second = ask(&exchange, "a \"b\"", Lane::Normal).unwrap();
        assert_eq!(written(&exchange).unwrap(), "{\"id\":0,\"method\":\"gcode/script\",\"params\":{}}\u{3}");
        assert_eq!(written(&exchange).unwrap(), "{\"id\":1,\"method\":\"a \\\"b\\\"\",\"params\":{}}\u{3}");
        assert_eq!(written(&exchange), None);
        answer(&exchange, 1, "2");
        answer(&exchange, 0, "1");
        assert_eq!(&*second.answer().await.unwrap(), "2");
        assert_eq!(&*first.answer().await.unwrap(), "1");
        assert!(matches!(exchange.take(Some(0)), Taken::Abandoned), "answered twice");
        assert!(matches!(exchange.take(Some(2)), Taken::NeverAsked));
        assert!(matches!(exchange.take(None), Taken::NeverAsked));
    }

    #[tokio::test]
    async fn urgent_overtakes() {
        let exchange = open();
        let _a = ask(&exchange, "a", Lane::Normal).unwrap();
        let _b = ask(&exchange, "emergency_stop", Lane::Urgent).unwrap();
        assert!(written(&exchange).unwrap().contains("emergency_stop"));
    }

    #[tokio::test]
    async fn the_end_of_the_connection_tells_everybody_and_whether_it_was_sent() {
        let exchange = open();
        let sent = ask(&exchange, "sent", Lane::Normal).unwrap();
        let _ = written(&exchange);
        let writing = ask(&exchange, "writing", Lane::Normal).unwrap();
        let _ = exchange.next_write().now_or_never();
        let queued = ask(&exchange, "queued", Lane::Normal).unwrap();
        exchange.close();
        assert_eq!(sent.answer().await, Err(Failure::Disconnected));
        assert_eq!(writing.answer().await, Err(Failure::NotWritten));
        assert_eq!(queued.answer().await, Err(Failure::NotWritten));
        assert!(matches!(ask(&exchange, "late", Lane::Normal), Err(Failure::NotConnected)));
        exchange.greet();
        assert!(matches!(ask(&exchange, "early", Lane::Normal), Err(Failure::NotConnected)));
        assert!(matches!(exchange.take(Some(0)), Taken::NeverAsked), "an id of the connection before");
        assert_eq!(written(&exchange), None);
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_leaves_nothing_behind() {
        let exchange = open();
        for _ in 0..10 {
            drop(ask(&exchange, "x", Lane::Normal).unwrap());
        }
        assert_eq!(exchange.pending(), 0);
        assert!(matches!(exchange.take(Some(3)), Taken::Abandoned));
    }

    #[tokio::test]
    async fn waiting_requests_are_bounded_but_not_the_emergency_stop() {
        let exchange = open();
        let tickets: Vec<_> = std::iter::from_fn(|| ask(&exchange, "x", Lane::Normal).ok()).collect();
        assert_eq!(tickets.len(), MAX_PENDING);
        assert!(matches!(ask(&exchange, "x", Lane::Normal), Err(Failure::Busy)));
        assert!(ask(&exchange, "emergency_stop", Lane::Urgent).is_ok());
        drop(tickets);
        let big = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_QUEUED_BYTES));
        assert!(matches!(exchange.ask("x", Some(&big), Lane::Normal, true, None), Err(Failure::Busy)));
    }

    #[tokio::test(start_paused = true)]
    async fn own_requests_have_limits_and_long_ones_are_reported() {
        let exchange = open();
        exchange.ask_own("info", None, Purpose::Info, Duration::from_secs(10));
        let _ticket = ask(&exchange, "gcode/script", Lane::Normal).unwrap();
        let start = Instant::now();
        assert_eq!(exchange.overdue(start + Duration::from_secs(9)), None);
        assert_eq!(exchange.overdue(start + Duration::from_secs(10)).as_deref(), Some("info"));
        assert!(exchange.hasten("info", Duration::from_secs(3)));
        assert!(!exchange.hasten("gcode/script", Duration::from_secs(3)));
        assert_eq!(exchange.overdue(start + Duration::from_secs(3)).as_deref(), Some("info"));
        exchange.postpone(Duration::from_secs(5));
        assert_eq!(exchange.overdue(start + Duration::from_secs(7)), None);
        let minute = Duration::from_secs(60);
        assert!(exchange.long_pending(start + minute / 2, minute).is_empty());
        assert_eq!(exchange.long_pending(start + minute, minute).len(), 2);
        assert!(exchange.long_pending(start + minute, minute).is_empty(), "once a minute");
        assert_eq!(exchange.long_pending(start + minute * 2, minute).len(), 2);
    }
}
