//! What goes out: answers, console lines, status ticks, dump batches; and the faults that spoil messages.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::connection::ConnId;
use super::frame::{ETX, encode};
use super::host::{Connection, Host};
use super::request::{answer, push};
use super::status::Told;
use crate::clock::monotonic;
use crate::fault::Fault;

/// Time between status ticks.
const TICK: Duration = Duration::from_millis(250);

/// Time between batches of a dump stream.
const BATCH: Duration = Duration::from_millis(500);

impl Host {
    /// A console line to everybody who listens.
    pub(super) fn output(&mut self, line: &str) {
        self.broadcast(&json!({ "response": line }), |connection| connection.output.clone());
    }

    /// The same parameters to every connection that has a template for them.
    pub(super) fn broadcast(&mut self, params: &Value, template: impl Fn(&Connection) -> Option<Map<String, Value>>) {
        let targets: Vec<_> = self.connections.iter().filter_map(|(id, c)| template(c).map(|t| (*id, t))).collect();
        for (conn, template) in targets {
            self.send(conn, &push(&template, params.clone()));
        }
    }

    /// Evaluates queries and subscriptions when their time has come.
    pub(super) fn tick(&mut self) {
        let now = Instant::now();
        if self.status.has_queries() && self.next_tick.is_none() {
            self.next_tick = Some(now);
        }
        if self.next_tick.is_none_or(|at| now < at) {
            return;
        }
        let busy = self.status.has_queries() || self.status.has_subscriptions();
        let model = &self.model;
        for told in self.status.tick(monotonic(), |name| model.object(name)) {
            match told {
                Told::Answer(conn, id, result) => self.answer(conn, Some(&id), Ok(result)),
                Told::Update(conn, message) => self.send(conn, &message),
            }
        }
        self.next_tick = busy.then(|| now + TICK);
    }

    /// Sends the planned movements to everybody who dumps them.
    pub(super) fn send_batches(&mut self) {
        let now = Instant::now();
        if self.connections.values().all(|c| c.dumps.is_empty()) {
            self.next_batch = None;
            return;
        }
        if self.next_batch.is_some_and(|at| now < at) {
            return;
        }
        let first = self.next_batch.is_none();
        self.next_batch = Some(now + BATCH);
        if first {
            return;
        }
        let rows = self.model.take_trapezoids();
        if rows.is_empty() {
            return;
        }
        let streams: Vec<_> =
            self.connections.iter().flat_map(|(id, c)| c.dumps.iter().map(|(name, t)| (*id, name.clone(), t.clone()))).collect();
        for (conn, name, template) in streams {
            let data: Vec<Value> = rows.iter().map(|row| row.to_json(name == "extruder")).collect();
            self.send(conn, &push(&template, json!({ "data": data })));
        }
    }

    /// Sends the answers whose delay is over.
    pub(super) fn send_delayed(&mut self) {
        while self.delayed.front().is_some_and(|(at, _, _)| *at <= Instant::now()) {
            if let Some((_, conn, frame)) = self.delayed.pop_front() {
                self.write(conn, frame);
            }
        }
    }

    /// Answers a request, with the faults that concern answers.
    pub(super) fn answer(&mut self, conn: ConnId, id: Option<&Value>, result: Result<Value, String>) {
        let Some(id) = id else { return };
        let mut frame = encode(&answer(id, result));
        if let Some(bytes) = self.faults.find(|f| if let Fault::HugeReplies { bytes } = f { Some(*bytes) } else { None }) {
            frame.pop();
            frame.resize(frame.len().max(bytes), b' ');
            frame.push(ETX);
        }
        match self.faults.find(|f| if let Fault::SlowReplies { ms } = f { Some(*ms) } else { None }) {
            Some(ms) => self.delayed.push_back((Instant::now() + Duration::from_millis(ms), conn, frame)),
            None => self.write(conn, frame),
        }
    }

    fn send(&mut self, conn: ConnId, message: &Value) {
        self.write(conn, encode(message));
    }

    /// Queues a frame, with the faults that concern every frame.
    fn write(&mut self, conn: ConnId, mut frame: Vec<u8>) {
        let Some(connection) = self.connections.get(&conn) else { return };
        if self.faults.has(&Fault::InvalidJson) {
            connection.outbox.send(b"{\"this is\": no JSON \xff\x03".to_vec());
        }
        if self.faults.take(&Fault::HalfMessage) {
            frame.truncate(frame.len() / 2);
            connection.outbox.send(frame);
            return self.forget(conn);
        }
        connection.outbox.send(frame);
    }
}
