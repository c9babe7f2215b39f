//! The host task: owns model, connections and subscriptions, and decides when to wake up.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::command::{Order, Snapshot};
use super::connection::{ConnId, Outbox};
use super::fault_state::FaultState;
use super::restart::Phase;
use super::status::Status;
use crate::fault::Fault;
use crate::model::{Effect, Model, Ticket};
use crate::options::Options;

/// Shortest sleep, so that a fast model does not keep a core busy.
const MIN_SLEEP: Duration = Duration::from_millis(1);

/// Gcode steps executed in one turn; what is left waits for the next turn.
pub(super) const STEPS_PER_TURN: usize = 2000;

/// Allowed speeds, model seconds per wall second.
const SPEEDS: RangeInclusive<f64> = 0.001..=100_000.0;

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
    pub(super) next_tick: Option<Instant>,
    pub(super) next_batch: Option<Instant>,
    /// Answers held back by a fault: when, where, what.
    pub(super) delayed: VecDeque<(Instant, ConnId, Vec<u8>)>,
    held: VecDeque<Event>,
    clock: Instant,
    snapshot: watch::Sender<Snapshot>,
}

impl Host {
    /// A host with a model that begins to start up, not yet listening.
    pub(crate) fn new(mut options: Options, events: mpsc::Sender<Event>, tasks: TaskTracker) -> Self {
        options.speed = if options.speed.is_nan() { 1.0 } else { options.speed.clamp(*SPEEDS.start(), *SPEEDS.end()) };
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

    pub(super) fn listening(&self) -> bool {
        matches!(self.phase, Phase::Listening(_))
    }

    /// For watching the printer's state.
    pub(crate) fn watch(&self) -> watch::Receiver<Snapshot> {
        self.snapshot.subscribe()
    }

    /// Runs until the token is cancelled.
    pub(crate) async fn run(mut self, mut events: mpsc::Receiver<Event>, stop: CancellationToken) {
        self.clock = Instant::now();
        if self.faults.take(&Fault::Die) {
            self.die();
        }
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
    pub(super) fn turn(&mut self) {
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
        self.send_delayed();
        let mut snapshot = take_snapshot(&self.model);
        snapshot.listening = self.listening();
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
        let model = self.model.until_next_event().filter(|_| self.listening());
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
        if self.listening() {
            self.model.advance(seconds, STEPS_PER_TURN);
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

    fn connect(&mut self, stream: UnixStream) {
        if self.connections.len() >= MAX_CONNECTIONS || !self.listening() {
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
