//! The simulated printer: a synchronous model without sockets or threads. Time passes only in [`Model::advance`]; everything that the
//! outside must hear about comes out of [`Model::take_effects`].

pub(crate) mod job;
pub(crate) mod line;
pub(crate) mod state;
pub(crate) mod storage;

mod bed_mesh;
pub(crate) mod commands;
mod console;
mod exclude;
mod gcode_move;
mod heater;
mod idle;
mod literal;
mod motion;
mod noise;
mod objects;
mod print;
mod printer_config;
mod run;
mod sensors;
mod toolhead;

use std::collections::{HashMap, VecDeque};

use indexmap::IndexMap;
use serde_json::{Map, Value};

pub(crate) use job::Ticket;
pub(crate) use motion::{Coord, TrapezoidRow};
pub use print::PrintState;
pub use printer_config::printer_cfg;
pub use state::HostState;

use bed_mesh::BedMesh;
use exclude::Exclude;
use gcode_move::GcodeMove;
use heater::{BED, EXTRUDER, Heater};
use idle::Idle;
use job::{HeaterId, Inner, Job, Origin, Step};
use noise::Noise;
use print::{PrintStats, VirtualSd};
use sensors::Sensors;
use storage::Storage;
use toolhead::Toolhead;

/// Version that the simulated host reports; shaped like a real one so that clients can parse it.
pub const SOFTWARE_VERSION: &str = "v0.13.0-0-gsimulated";

/// Scripts waiting for their turn; more are refused.
const MAX_WAITING: usize = 1000;

/// A text literal with this prefix is written bare into the JSON (`NaN`, `Infinity`), as one of the real host's encoders does.
pub(crate) const BARE_WORD: &str = "\u{1}bare:";

/// What a model is built with.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Seconds of model time between birth and ready.
    pub(crate) startup: f64,
    /// Start-up ends in `error` with this state message.
    pub(crate) boot_error: Option<String>,
    /// Model seconds per wall second; only for reactions that must stay visible on the wall clock.
    pub(crate) speed: f64,
    /// Objects that the printer does not have.
    pub(crate) without: Vec<String>,
    /// The chamber sensor reads not-a-number.
    pub(crate) non_finite: bool,
    /// Seed of the sensor noise.
    pub(crate) seed: u64,
    /// Seconds of printing after which [`Effect::Alarm`] is raised, once.
    pub(crate) alarm: Option<f64>,
    /// Memory that the machine has left, in kB.
    pub(crate) memory: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { startup: 0.5, boot_error: None, speed: 1.0, without: Vec::new(), non_finite: false, seed: 1, alarm: None, memory: 600_000 }
    }
}

/// Something the outside must hear about, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// A console line (with its prefix; may hold several lines).
    Output(String),
    /// A request ended: its result, or the error message.
    Done(Ticket, Result<Value, String>),
    /// Call a method that clients registered.
    Remote {
        /// Method name.
        method: String,
        /// Named arguments.
        arguments: Map<String, Value>,
    },
    /// The host restarts; `firmware` also resets the microcontroller.
    Restart {
        /// `FIRMWARE_RESTART` rather than `RESTART`.
        firmware: bool,
    },
    /// The print reached the duration of [`Settings::alarm`].
    Alarm,
}

/// What survives a restart of the host: matter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Physical {
    /// °C.
    pub(crate) extruder: f64,
    /// °C.
    pub(crate) bed: f64,
}

/// The printer.
pub(crate) struct Model {
    settings: Settings,
    storage: Box<dyn Storage>,
    /// Seconds since the model was built.
    now: f64,
    noise: Noise,

    state: HostState,
    message: String,
    /// The host was ready once, so the microcontroller holds a configuration.
    configured: bool,
    /// When the job that was running at a shutdown notices it.
    abort_at: Option<f64>,

    toolhead: Toolhead,
    gcode: GcodeMove,
    saved_states: HashMap<String, GcodeMove>,
    extruder: Heater,
    bed: Heater,
    fan: f64,
    sensors: Sensors,
    light: f64,
    endstops: [bool; 3],

    print: PrintStats,
    sd: VirtualSd,
    paused: bool,
    display_progress: Option<f64>,
    display_message: Option<String>,
    idle: Idle,
    exclude: Exclude,
    mesh: BedMesh,
    variables: IndexMap<&'static str, Map<String, Value>>,
    pressure_advance: f64,

    running: Option<Job>,
    waiting: VecDeque<Job>,
    effects: Vec<Effect>,
}

impl Model {
    /// A printer that begins to start up.
    pub(crate) fn new(settings: Settings, storage: Box<dyn Storage>) -> Self {
        let noise = Noise::new(settings.seed);
        Self {
            settings,
            storage,
            now: 0.0,
            noise,
            state: HostState::Startup,
            message: state::STARTUP_MESSAGE.to_owned(),
            configured: false,
            abort_at: None,
            toolhead: Toolhead::default(),
            gcode: GcodeMove::default(),
            saved_states: HashMap::new(),
            extruder: Heater::new(EXTRUDER),
            bed: Heater::new(BED),
            fan: 0.0,
            sensors: Sensors::default(),
            light: 0.0,
            endstops: [false; 3],
            print: PrintStats::default(),
            sd: VirtualSd::default(),
            paused: false,
            display_progress: None,
            display_message: None,
            idle: Idle::default(),
            exclude: Exclude::default(),
            mesh: BedMesh::default(),
            variables: commands::macro_variables(),
            pressure_advance: 0.04,
            running: None,
            waiting: VecDeque::new(),
            effects: Vec::new(),
        }
    }

    /// Takes over what a restart does not change.
    pub(crate) fn set_physical(&mut self, physical: Physical) {
        self.extruder.temperature = physical.extruder;
        self.bed.temperature = physical.bed;
    }

    /// What the next model takes over.
    pub(crate) fn physical(&self) -> Physical {
        Physical { extruder: self.extruder.temperature, bed: self.bed.temperature }
    }

    /// Runs a script. Its end comes as [`Effect::Done`].
    pub(crate) fn submit_script(&mut self, ticket: Ticket, script: &str) {
        self.submit(Job::script(Origin::Request(ticket), script));
    }

    /// Reads the end stops. The result comes as [`Effect::Done`].
    pub(crate) fn submit_endstop_query(&mut self, ticket: Ticket) {
        self.submit(Job::new(Origin::Request(ticket), [Inner::Finish, Inner::MeasureEndstops, Inner::AnswerEndstops].map(Step::Inner)));
    }

    fn submit(&mut self, job: Job) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back(job);
        } else if let Origin::Request(ticket) = job.origin {
            self.effects.push(Effect::Done(ticket, Err("too many scripts are waiting".to_owned())));
        }
    }

    /// Stops everything for safety. `cause` becomes the first line of the state message.
    pub(crate) fn shutdown(&mut self, cause: &str) {
        if self.state == HostState::Shutdown {
            return;
        }
        if self.state != HostState::Error {
            self.message = state::shutdown(cause);
        }
        self.state = HostState::Shutdown;
        self.toolhead.halt(self.now);
        self.gcode.last = self.toolhead.position;
        self.turn_off_heaters();
        self.fan = 0.0;
        // The script in progress notices a little later, so that clients see the host's state change first.
        if self.running.as_ref().is_some_and(|job| job.wait.is_some()) || self.sd.active {
            self.abort_at = Some(self.now + ABORT_DELAY * self.settings.speed);
        }
        self.respond("// Klipper state: Shutdown");
    }

    /// Everything to be told since the last call.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// State of the host.
    pub(crate) fn state(&self) -> HostState {
        self.state
    }

    /// The microcontroller refuses work until it is reset.
    pub(crate) fn mcu_is_shutdown(&self) -> bool {
        self.configured && self.state == HostState::Shutdown
    }

    /// Temperatures of hot end and bed, °C.
    pub(crate) fn temperatures(&self) -> (f64, f64) {
        (self.extruder.temperature, self.bed.temperature)
    }

    /// The message that goes with the state.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Seconds since the model was built.
    pub(crate) fn now(&self) -> f64 {
        self.now
    }

    /// State of the print job.
    pub(crate) fn print_state(&self) -> PrintState {
        self.print.state
    }

    /// Name of the printed file, empty without a job.
    pub(crate) fn print_file(&self) -> &str {
        &self.print.filename
    }

    /// Where the toolhead is at this moment.
    pub(crate) fn live_position(&self) -> Coord {
        self.toolhead.live(self.now).0
    }

    /// Trapezoids planned since the last call.
    pub(crate) fn take_trapezoids(&mut self) -> Vec<TrapezoidRow> {
        self.toolhead.take_rows()
    }

    /// Sets the print duration at which [`Effect::Alarm`] is raised.
    pub(crate) fn set_alarm(&mut self, seconds: Option<f64>) {
        self.settings.alarm = seconds;
    }

    /// Makes the chamber sensor read not-a-number.
    pub(crate) fn set_non_finite(&mut self, on: bool) {
        self.settings.non_finite = on;
    }

    fn heater(&self, id: HeaterId) -> &Heater {
        match id {
            HeaterId::Extruder => &self.extruder,
            HeaterId::Bed => &self.bed,
        }
    }

    fn heater_mut(&mut self, id: HeaterId) -> &mut Heater {
        match id {
            HeaterId::Extruder => &mut self.extruder,
            HeaterId::Bed => &mut self.bed,
        }
    }

    fn turn_off_heaters(&mut self) {
        self.extruder.target = 0.0;
        self.bed.target = 0.0;
    }

    fn has(&self, object: &str) -> bool {
        !self.settings.without.iter().any(|missing| missing == object)
    }
}

/// Wall seconds until a running script notices a shutdown (wire document 5, section 11: 0.3 s).
const ABORT_DELAY: f64 = 0.3;

#[cfg(test)]
mod tests;
