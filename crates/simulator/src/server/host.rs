//! The host task: owns model, connections and subscriptions, and decides when to wake up.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::command::{Command, Order, Snapshot};
use super::connection::{ConnId, Outbox};
use super::fault_state::FaultState;
use super::frame::{ETX, encode};
use super::request::{answer, push};
use super::restart::Phase;
use super::status::{Status, Told};
use crate::clock::monotonic;
use crate::fault::Fault;
use crate::model::{Effect, Model, Ticket};
use crate::options::Options;

/// Time between status ticks.
const TICK: Duration = Duration::from_millis(250);

/// Time between batches of a dump stream.
const BATCH: Duration = Duration::from_millis(500);

/// Shortest sleep, so that a fast model does not keep a core busy.
const MIN_SLEEP: Duration = Duration::from_millis(1);

/// Gcode steps executed in one turn; what is left waits for the next turn.
const STEPS_PER_TURN: usize = 2000;

/// Connections at a time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 256;

/// Events kept while the host hangs; later ones are lost.
const MAX_HELD: usize = 1000;

/// Events handled in one turn before time is looked after again.
const EVENTS_PER_TURN: usize = 64;

/// Remote methods one connection may register.
pub(super) const MAX_REMOTE_METHODS: usize = 1000;

/// Something that happens to the host.
#[derive(Debug)]
pub(crate) enum Event {
    /// A client connected.
    Connected(UnixStream),
    /// A client sent a frame.
    Frame(ConnId, Vec<u8>),
    /// A client is gone.
    Closed(ConnId),
    /// A test or the command line wants something.
    Order(Order),
}

/// What the host knows of a connection.
pub(super) struct Connection {
    pub(super) outbox: Outbox,
    /// Template of the console subscription.
    pub(super) output: Option<Map<String, Value>>,
    /// Remote methods with their templates.
    pub(super) remote: HashMap<String, Map<String, Value>>,
    /// Dump streams: queue name and template.
    pub(super) dumps: Vec<(String, Map<String, Value>)>,
}

/// Who waits for the end of a script.
pub(super) enum Waiting {
    /// A request of a connection.
    Request(ConnId, Option<Value>),
    /// A control handle.
    Order(oneshot::Sender<Result<(), String>>),
}

/// The host.
pub(crate) struct Host {
    pub(super) options: Options,
    pub(super) faults: FaultState,
    pub(super) model: Model,
    pub(super) phase: Phase,
    pub(super) connections: BTreeMap<ConnId, Connection>,
    /// Connections that are open but silent for ever.
    pub(super) zombies: Vec<Connection>,
    pub(super) waiting: HashMap<Ticket, Waiting>,
    pub(super) status: Status,
    pub(super) starts: u64,
    pub(super) mcu_shutdown: bool,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) tasks: TaskTracker,
    next_id: u64,
    next_tick: Option<Instant>,
    next_batch: Option<Instant>,
    /// Answers held back by a fault: when, where, what.
    delayed: VecDeque<(Instant, ConnId, Vec<u8>)>,
    held: VecDeque<Event>,
    clock: Instant,
    snapshot: watch::Sender<Snapshot>,
}

impl Host {
    /// A host with a model that begins to start up, not yet listening.
    pub(crate) fn new(options: Options, events: mpsc::Sender<Event>, tasks: TaskTracker) -> Self {
        let mut faults = FaultState::default();
        for fault in options.faults.iter().cloned() {
            faults.add(fault);
        }
        let model = super::restart::build_model(&options, &faults, false);
        let snapshot = watch::Sender::new(take_snapshot(&model));
        Self {
            options,
            faults,
            model,
            phase: Phase::Dead,
            connections: BTreeMap::new(),
            zombies: Vec::new(),
            waiting: HashMap::new(),
            status: Status::default(),
            starts: 0,
            mcu_shutdown: false,
            events,
            tasks,
            next_id: 0,
            next_tick: None,
            next_batch: None,
            delayed: VecDeque::new(),
            held: VecDeque::new(),
            clock: Instant::now(),
            snapshot,
        }
    }

    /// For watching the printer's state.
    pub(crate) fn watch(&self) -> watch::Receiver<Snapshot> {
        self.snapshot.subscribe()
    }

    /// Runs until the token is cancelled.
    pub(crate) async fn run(mut self, mut events: mpsc::Receiver<Event>, stop: CancellationToken) {
        self.clock = Instant::now();
        loop {
            self.turn();
            let wake = self.next_wake();
            tokio::select! {
                () = stop.cancelled() => break,
                event = events.recv() => {
                    let Some(event) = event else { break };
                    self.receive(event);
                    for _ in 1..EVENTS_PER_TURN {
                        let Ok(event) = events.try_recv() else { break };
                        self.receive(event);
                    }
                }
                () = sleep_until(wake) => {}
            }
        }
        self.leave();
    }

    fn receive(&mut self, event: Event) {
        if let Event::Order(order) = event {
            return self.obey(order);
        }
        if self.faults.hangs() {
            if self.held.len() < MAX_HELD {
                self.held.push_back(event);
            }
            return;
        }
        match event {
            Event::Connected(stream) => self.connect(stream),
            Event::Frame(conn, frame) => self.handle_frame(conn, &frame),
            Event::Closed(conn) => self.forget(conn),
            Event::Order(order) => self.obey(order),
        }
    }

    /// Everything that time brings: held events, the model, ticks, late answers, the end of a restart.
    fn turn(&mut self) {
        if self.faults.hangs() {
            self.clock = Instant::now();
            return;
        }
        while let Some(event) = self.held.pop_front() {
            self.receive(event);
        }
        self.come_back();
        self.run_model();
        self.tick();
        self.send_batches();
        while self.delayed.front().is_some_and(|(at, _, _)| *at <= Instant::now()) {
            if let Some((_, conn, frame)) = self.delayed.pop_front() {
                self.write(conn, frame);
            }
        }
        let mut snapshot = take_snapshot(&self.model);
        snapshot.listening = matches!(self.phase, Phase::Listening(_));
        snapshot.connections = self.connections.len();
        snapshot.starts = self.starts;
        self.snapshot.send_if_modified(|old| {
            let changed = *old != snapshot;
            *old = snapshot;
            changed
        });
    }

    /// The earliest moment at which there is something to do; `None` if only events matter.
    fn next_wake(&self) -> Option<Instant> {
        if self.faults.hangs() {
            return None;
        }
        let now = Instant::now();
        let model = self.model.until_next_event().filter(|_| !matches!(self.phase, Phase::Dead));
        let model = model.and_then(|seconds| Duration::try_from_secs_f64(seconds / self.options.speed).ok());
        let model = model.and_then(|pause| now.checked_add(pause.max(MIN_SLEEP)));
        let delayed = self.delayed.front().map(|(at, _, _)| *at);
        let all = [model, self.next_tick, self.next_batch, delayed, self.phase.until(), self.faults.hang_time()];
        all.into_iter().flatten().min()
    }

    fn run_model(&mut self) {
        let now = Instant::now();
        let seconds = (now - self.clock).as_secs_f64() * self.options.speed;
        self.clock = now;
        if matches!(self.phase, Phase::Dead) {
            return;
        }
        self.model.advance(seconds, STEPS_PER_TURN);
        self.deliver();
    }

    /// Lets model time pass at once, in bounded portions.
    fn leap(&mut self, seconds: f64) {
        let end = self.model.now() + seconds;
        while self.model.now() < end && !matches!(self.phase, Phase::Dead) {
            self.model.advance(end - self.model.now(), STEPS_PER_TURN);
            self.deliver();
        }
    }

    /// Hands out what the model has to tell.
    pub(super) fn deliver(&mut self) {
        for effect in self.model.take_effects() {
            match effect {
                Effect::Output(line) => self.output(&line),
                Effect::Done(ticket, result) => match self.waiting.remove(&ticket) {
                    Some(Waiting::Request(conn, id)) => self.answer(conn, id.as_ref(), result),
                    Some(Waiting::Order(done)) => {
                        let _ = done.send(result.map(|_| ()));
                    }
                    None => {}
                },
                Effect::Remote { method, arguments } => {
                    self.broadcast(&Value::Object(arguments), |connection| connection.remote.get(&method).cloned());
                }
                Effect::Restart { firmware } => return self.restart(firmware),
                Effect::Alarm => return self.alarm(),
            }
        }
    }

    /// A console line to everybody who listens.
    pub(super) fn output(&mut self, line: &str) {
        self.broadcast(&json!({ "response": line }), |connection| connection.output.clone());
    }

    fn broadcast(&mut self, params: &Value, template: impl Fn(&Connection) -> Option<Map<String, Value>>) {
        let targets: Vec<_> = self.connections.iter().filter_map(|(id, c)| template(c).map(|t| (*id, t))).collect();
        for (conn, template) in targets {
            self.send(conn, &push(&template, params.clone()));
        }
    }

    fn tick(&mut self) {
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

    fn send_batches(&mut self) {
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

    fn connect(&mut self, stream: UnixStream) {
        if self.connections.len() >= MAX_CONNECTIONS || !matches!(self.phase, Phase::Listening(_)) {
            return;
        }
        self.next_id += 1;
        let id = ConnId(self.next_id);
        let outbox = Outbox::start(id, stream, self.events.clone(), &self.tasks);
        self.connections.insert(id, Connection { outbox, output: None, remote: HashMap::new(), dumps: Vec::new() });
    }

    /// Drops what belongs to a connection; its outbox writes what is queued and closes.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.connections.remove(&conn);
        self.status.forget(conn);
        self.delayed.retain(|(_, to, _)| *to != conn);
    }

    /// A ticket for a script on whose end somebody waits.
    pub(super) fn ticket(&mut self, waiting: Waiting) -> Ticket {
        self.next_id += 1;
        let ticket = Ticket(self.next_id);
        self.waiting.insert(ticket, waiting);
        ticket
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

    fn obey(&mut self, order: Order) {
        let Order { command, done } = order;
        match command {
            Command::Inject(Fault::Die) => self.die(),
            Command::Inject(fault) => {
                self.faults.add(fault);
                self.apply_faults();
            }
            Command::Clear(fault) => {
                self.faults.clear(&fault);
                self.apply_faults();
            }
            Command::ClearAll => {
                self.faults.clear_all();
                self.apply_faults();
            }
            Command::Revive => {
                let _ = done.send(self.revive());
                return;
            }
            Command::Restart(firmware) => self.restart(firmware),
            Command::Shutdown(cause) => {
                self.model.shutdown(&cause);
                self.deliver();
            }
            Command::Advance(seconds) => self.leap(seconds),
            Command::Script(script) => {
                let ticket = self.ticket(Waiting::Order(done));
                self.model.submit_script(ticket, &script);
                return;
            }
        }
        self.turn();
        let _ = done.send(Ok(()));
    }

    /// Tells the model about faults that concern it.
    fn apply_faults(&mut self) {
        self.model.set_alarm(self.faults.alarm());
        self.model.set_non_finite(self.faults.has(&Fault::NonFinite));
    }
}

fn take_snapshot(model: &Model) -> Snapshot {
    Snapshot {
        listening: false,
        state: model.state(),
        message: model.message().to_owned(),
        print_state: model.print_state(),
        print_file: model.print_file().to_owned(),
        position: model.live_position(),
        temperatures: model.temperatures(),
        model_seconds: model.now(),
        connections: 0,
        starts: 0,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
