//! Scripts in execution: who asked, which steps are left, what the present step waits for.
//!
//! Everything that runs gcode goes through one queue, so one thing at a time holds the printer: that is the real host's gcode mutex.

use std::collections::VecDeque;

use super::heater::HeaterKind;

/// Names a piece of work so that its end can be told to whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ticket(pub u64);

/// Who wants a script to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A request; its end is reported.
    Request(Ticket),
    /// A line of the file being printed.
    File,
}

/// One step of a script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A line of gcode.
    Text(String),
    /// An inner part of a command.
    Inner(Inner),
}

/// Parts of commands that take time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inner {
    /// Home one axis (0 = X).
    HomeAxis(usize),
    /// Read the end stops.
    MeasureEndstops,
    /// Give the end stops to the request that asked.
    AnswerEndstops,
    /// Write the end stops to the console.
    PrintEndstops,
    /// Switch the motors off.
    MotorsOff,
    /// The bed was probed at all points.
    MeshDone,
    /// Let the printer come to rest.
    Settle,
    /// Restart the host; `true` also resets the microcontroller.
    Restart(bool),
    /// Wait until the plan is carried out.
    Finish,
}

/// What a step waits for before the next one may run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wait {
    /// Room in the motion queue.
    Room,
    /// All planned moves are over.
    Idle,
    /// A moment of model time, seconds.
    Until(f64),
    /// A heater is at its target; a temperature line goes out each second (next one at `report`).
    Heater {
        /// Which heater.
        kind: HeaterId,
        /// Next temperature line, seconds of model time.
        report: f64,
    },
    /// A sensor is between two temperatures, °C.
    Range {
        /// Which heater's sensor.
        kind: HeaterId,
        /// Lower end.
        minimum: f64,
        /// Upper end.
        maximum: f64,
        /// Next temperature line.
        report: f64,
    },
}

/// The two heaters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaterId {
    /// Hot end.
    Extruder,
    /// Bed.
    Bed,
}

impl HeaterId {
    /// Fixed properties.
    pub(crate) fn kind(self) -> HeaterKind {
        match self {
            Self::Extruder => super::heater::EXTRUDER,
            Self::Bed => super::heater::BED,
        }
    }
}

/// A script being executed or waiting for its turn.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Who asked.
    pub(crate) origin: Origin,
    /// Steps left.
    pub(crate) steps: VecDeque<Step>,
    /// What the last step waits for.
    pub(crate) wait: Option<Wait>,
    /// Macros within macros; bounded so that a macro calling itself ends.
    pub(crate) expansions: u32,
}

/// Macro expansions in one script.
pub(crate) const MAX_EXPANSIONS: u32 = 1000;

impl Job {
    /// A job of these steps.
    pub(crate) fn new(origin: Origin, steps: impl IntoIterator<Item = Step>) -> Self {
        Self { origin, steps: steps.into_iter().collect(), wait: None, expansions: 0 }
    }

    /// A job of gcode lines.
    pub(crate) fn script(origin: Origin, script: &str) -> Self {
        Self::new(origin, script.lines().map(|line| Step::Text(line.to_owned())))
    }

    /// Puts steps before the ones that are left.
    pub(crate) fn prepend(&mut self, steps: Vec<Step>) {
        for step in steps.into_iter().rev() {
            self.steps.push_front(step);
        }
    }
}
