//! The state machine of the queue. Pure: inputs come in, what is to be done comes out; the worker does it and reports back as further inputs.
//!
//! ```text
//!            Start, printer free            delay over, transition gcode done
//!   paused ──────────────────────► loading ──────────────────────────────────► starting
//!     ▲ │ Start, printer busy         ▲ │                                          │
//!     │ ▼                             │ │ Pause, empty, busy, error                │ started: the job leaves the queue
//!     │ ready ── job completes ───────┘ ▼                                          ▼
//!     └───┴──────────────────────── paused ◄──────── error, nothing left ── ready or paused
//! ```
//! Source: document 2 *Job queue state*, wire/2-files-jobs.md section 5.2; where they differ, document 2.

use std::collections::VecDeque;
use std::time::Duration;

use protocol::jobs::{QueueAction, QueueState};

use crate::state::JobEvent;

/// Jobs that may wait: more than anybody prints, few enough for every notification to carry them all.
pub const MAX_QUEUED_JOBS: usize = 5000;

/// A load that was asked for begins this long after.
const SOON: Duration = Duration::from_millis(10);

/// A load at the start of the firmware host begins this long after.
const AFTER_READY: Duration = Duration::from_secs(1);

/// A job that waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiting {
    /// 16 upper-case hexadecimal digits.
    pub(crate) id: String,
    /// Path relative to `gcodes`.
    pub(crate) filename: String,
    pub(crate) user: Option<String>,
    /// Unix seconds.
    pub(crate) time_added: f64,
}

/// What the owner decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rules {
    pub(crate) load_on_startup: bool,
    pub(crate) automatic_transition: bool,
    pub(crate) transition_delay: Duration,
    pub(crate) confirm_bed_clear: bool,
}

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    /// Somebody wants the queue to go on; whether a print could start now.
    Start { printer_free: bool },
    /// Somebody wants it to stop loading.
    Pause,
    /// Jobs are added at the end; `reset` removes the others first.
    Add { jobs: Vec<Waiting>, reset: bool },
    /// Jobs are removed.
    Remove { ids: Vec<String> },
    /// All jobs are removed.
    Clear,
    /// A job is moved to the front.
    Jump { id: String },
    /// The bed is clear.
    BedClear,
    /// Something happened to the job on the printer.
    Job(JobEvent),
    /// The firmware host is ready.
    HostReady,
    /// The firmware host shut down.
    HostShutdown,
    /// The delay is over; whether a print could start now.
    Due { printer_free: bool },
    /// The transition gcode ended.
    Transitioned { ok: bool },
    /// The start of the first job ended.
    Started { ok: bool },
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Report [`Input::Due`] after this time; an earlier wait is forgotten.
    Wait(Duration),
    /// Forget the load under way. A start that was sent is still reported.
    Forget,
    /// Run the transition gcode and report [`Input::Transitioned`].
    Transition,
    /// Start this job and report [`Input::Started`].
    Launch(Waiting),
    /// Tell clients.
    Tell(QueueAction),
    /// Tell clients that the order changed.
    TellOrder,
    /// The order of jobs, or which there are, is to be kept.
    Keep,
}

/// The queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Model {
    rules: Rules,
    pub(crate) state: QueueState,
    pub(crate) jobs: VecDeque<Waiting>,
    /// Somebody wants it paused until somebody starts it.
    pause_requested: bool,
    /// The load under way begins with the transition gcode.
    with_transition: bool,
    /// The next load waits until somebody says that the bed is clear.
    pub(crate) awaits_bed: bool,
    last_event: Option<JobEvent>,
    /// The job that is being started, which stays in the queue until it is.
    launching: Option<String>,
}

impl Model {
    pub(crate) fn new(rules: Rules, jobs: VecDeque<Waiting>) -> Self {
        let state = QueueState::Paused;
        Self { rules, state, jobs, pause_requested: false, with_transition: false, awaits_bed: false, last_event: None, launching: None }
    }

    /// Takes one step.
    pub(crate) fn step(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Start { printer_free } => self.start(printer_free),
            Input::Pause => {
                self.pause_requested = true;
                self.pause()
            }
            Input::HostShutdown => self.pause(),
            Input::Add { jobs, reset: false } if jobs.is_empty() => vec![],
            Input::Add { jobs, reset } => self.add(jobs, reset),
            Input::Remove { ids } => self.remove(&ids),
            Input::Clear if self.jobs.is_empty() => vec![],
            Input::Clear => {
                self.jobs.clear();
                vec![Effect::Keep, Effect::Tell(QueueAction::JobsRemoved)]
            }
            Input::Jump { id } => self.jump(&id),
            Input::BedClear if self.awaits_bed => {
                self.awaits_bed = false;
                match self.state {
                    QueueState::Ready if !self.jobs.is_empty() => self.load(self.rules.transition_delay, true),
                    _ => vec![],
                }
            }
            Input::BedClear => vec![],
            Input::Job(event) => self.job(event),
            Input::HostReady => match self.state {
                QueueState::Ready | QueueState::Paused if self.rules.load_on_startup && !self.jobs.is_empty() => {
                    self.load(AFTER_READY, false)
                }
                _ => vec![],
            },
            Input::Due { printer_free } => self.due(printer_free),
            Input::Transitioned { ok } => match self.state {
                QueueState::Loading if ok => self.launch(),
                QueueState::Loading => self.enter(QueueState::Paused),
                _ => vec![],
            },
            Input::Started { ok } => self.started(ok),
        }
    }

    fn start(&mut self, printer_free: bool) -> Vec<Effect> {
        if matches!(self.state, QueueState::Loading | QueueState::Starting) {
            return vec![];
        }
        self.pause_requested = false;
        self.awaits_bed = false;
        match (self.jobs.is_empty(), printer_free, self.launching.is_some()) {
            (true, _, _) => self.enter(QueueState::Paused),
            (false, true, false) => self.load(SOON, false),
            (false, _, _) => self.enter(QueueState::Ready),
        }
    }

    fn pause(&mut self) -> Vec<Effect> {
        let mut effects = vec![];
        if matches!(self.state, QueueState::Loading | QueueState::Starting) {
            effects.push(Effect::Forget);
        }
        effects.extend(self.enter(QueueState::Paused));
        effects
    }

    fn add(&mut self, jobs: Vec<Waiting>, reset: bool) -> Vec<Effect> {
        if reset {
            self.jobs.clear();
        }
        self.jobs.extend(jobs);
        let mut effects = vec![Effect::Keep, Effect::Tell(QueueAction::JobsAdded)];
        let busy = matches!(self.last_event, Some(JobEvent::Started | JobEvent::Resumed | JobEvent::Paused));
        if self.rules.automatic_transition && !self.pause_requested && busy && self.state == QueueState::Paused && !self.jobs.is_empty() {
            effects.extend(self.enter(QueueState::Ready));
        }
        effects
    }

    fn remove(&mut self, ids: &[String]) -> Vec<Effect> {
        if self.jobs.is_empty() {
            return vec![];
        }
        self.jobs.retain(|job| !ids.contains(&job.id));
        vec![Effect::Keep, Effect::Tell(QueueAction::JobsRemoved)]
    }

    fn jump(&mut self, id: &str) -> Vec<Effect> {
        let Some(job) = self.jobs.iter().position(|job| job.id == id).and_then(|place| self.jobs.remove(place)) else { return vec![] };
        self.jobs.push_front(job);
        vec![Effect::Keep, Effect::TellOrder]
    }

    fn job(&mut self, event: JobEvent) -> Vec<Effect> {
        self.last_event = Some(event);
        let waiting = !self.jobs.is_empty();
        match (event, self.state) {
            (JobEvent::Complete, QueueState::Ready) if !waiting || !self.rules.automatic_transition => self.enter(QueueState::Paused),
            (JobEvent::Complete, QueueState::Ready) if self.rules.confirm_bed_clear => {
                self.awaits_bed = true;
                vec![]
            }
            (JobEvent::Complete, QueueState::Ready) => self.load(self.rules.transition_delay, true),
            (event, _) if event.is_abort() && waiting => self.pause(),
            _ => vec![],
        }
    }

    fn load(&mut self, delay: Duration, with_transition: bool) -> Vec<Effect> {
        self.with_transition = with_transition;
        let mut effects = self.enter(QueueState::Loading);
        effects.push(Effect::Wait(delay));
        effects
    }

    fn due(&mut self, printer_free: bool) -> Vec<Effect> {
        match self.state {
            QueueState::Loading if self.jobs.is_empty() || !printer_free => self.enter(QueueState::Paused),
            QueueState::Loading if self.with_transition => vec![Effect::Transition],
            QueueState::Loading => self.launch(),
            _ => vec![],
        }
    }

    fn launch(&mut self) -> Vec<Effect> {
        // A start that outlived a pause is still under way: there is only ever one.
        let next = self.jobs.front().cloned().filter(|_| self.launching.is_none());
        let Some(job) = next else { return self.enter(QueueState::Paused) };
        self.launching = Some(job.id.clone());
        let mut effects = self.enter(QueueState::Starting);
        effects.push(Effect::Launch(job));
        effects
    }

    fn started(&mut self, ok: bool) -> Vec<Effect> {
        let launched = self.launching.take();
        if !ok {
            return self.enter(QueueState::Paused);
        }
        self.jobs.retain(|job| Some(&job.id) != launched.as_ref());
        if self.state == QueueState::Starting {
            // Clients learn of this state by the notification of the job.
            let goes_on = self.rules.automatic_transition && !self.jobs.is_empty() && !self.pause_requested;
            self.state = if goes_on { QueueState::Ready } else { QueueState::Paused };
        }
        vec![Effect::Keep, Effect::Tell(QueueAction::JobLoaded)]
    }

    fn enter(&mut self, state: QueueState) -> Vec<Effect> {
        if self.state == state {
            return vec![];
        }
        self.state = state;
        vec![Effect::Tell(QueueAction::StateChanged)]
    }
}

#[cfg(test)]
mod tests;
