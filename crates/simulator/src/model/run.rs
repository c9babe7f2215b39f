//! The passing of time: runs what can run now, finds the next moment at which something happens, goes there.

use serde_json::json;

use super::commands::{self, Flow};
use super::job::{Inner, Job, MAX_EXPANSIONS, Origin, Step, Wait};
use super::line::{CommandError, Line};
use super::print::PrintState;
use super::state::{HostState, READY_MESSAGE};
use super::toolhead::{AXES, PLAN_AHEAD};
use super::{Effect, Model};

/// Extra seconds of motion planned before a script pauses, so that it need not wake for every short move.
const PLAN_SLACK: f64 = 0.25;

/// Shortest stretch of time, seconds: rounding must not make the loop stand still just before an event.
const HAIR: f64 = 1e-6;

/// Seconds that reading the end stops takes.
const ENDSTOP_QUERY: f64 = 0.2;

/// Seconds of rest before a restart in state ready.
const RESTART_DWELL: f64 = 0.5;

/// Result of a call to [`Model::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advance {
    /// The model reached the wanted time.
    Reached,
    /// The step budget ran out (or an alarm was raised) before.
    Stopped,
}

impl Model {
    /// Lets `seconds` of model time pass, executing at most `budget` steps of gcode.
    pub(crate) fn advance(&mut self, seconds: f64, budget: usize) -> Advance {
        let target = self.now + seconds.max(0.0);
        let mut budget = budget;
        loop {
            self.settle_state();
            self.run_ready(&mut budget);
            if budget == 0 {
                return Advance::Stopped;
            }
            if self.now >= target {
                return Advance::Reached;
            }
            let next = self.next_event().map_or(target, |at| at.clamp(self.now, target));
            self.pass((next - self.now).max(HAIR));
            if self.alarm_due() {
                self.settings.alarm = None;
                self.effects.push(Effect::Alarm);
                return Advance::Stopped;
            }
        }
    }

    /// Seconds of model time until something happens by itself; `None` if the printer only waits for commands.
    pub(crate) fn until_next_event(&self) -> Option<f64> {
        let more = match &self.running {
            Some(job) => job.wait.is_none(),
            None => self.sd.active || !self.waiting.is_empty(),
        };
        if more && self.abort_at.is_none() {
            return Some(0.0);
        }
        self.next_event().map(|at| (at - self.now).max(0.0))
    }

    fn next_event(&self) -> Option<f64> {
        if self.abort_at.is_some() {
            // Until then nothing runs, so no other wait can end.
            return self.abort_at;
        }
        let startup = (self.state == HostState::Startup).then_some(self.settings.startup);
        let wait = self.running.as_ref().and_then(|job| job.wait).map(|wait| self.wake_time(wait));
        let alarm = self.settings.alarm.filter(|_| self.print.state == PrintState::Printing);
        let alarm = alarm.map(|at| self.now + at - self.print.total_duration);
        [startup, wait, alarm].into_iter().flatten().reduce(f64::min)
    }

    /// When a wait can be over at the earliest.
    fn wake_time(&self, wait: Wait) -> f64 {
        match wait {
            Wait::Room => self.toolhead.print_time - PLAN_AHEAD,
            Wait::Idle => self.toolhead.print_time,
            Wait::Until(at) | Wait::Heater { report: at, .. } | Wait::Range { report: at, .. } => at,
        }
    }

    fn alarm_due(&self) -> bool {
        self.settings.alarm.is_some_and(|at| self.print.state == PrintState::Printing && self.print.total_duration >= at)
    }

    fn pass(&mut self, seconds: f64) {
        self.now += seconds;
        self.toolhead.pass(self.now);
        self.extruder.pass(seconds, &mut self.noise);
        self.bed.pass(seconds, &mut self.noise);
        self.sensors.pass(self.now, &mut self.noise);
        self.print.pass(seconds);
        let busy = self.toolhead.busy(self.now) || self.sd.active || self.running.is_some();
        if self.idle.pass(self.now, busy && self.state == HostState::Ready) {
            self.turn_off_heaters();
            self.motors_off();
        }
    }

    /// Transitions of the host's state that time brings.
    fn settle_state(&mut self) {
        if self.state == HostState::Startup && self.now >= self.settings.startup {
            if let Some(message) = self.settings.boot_error.clone() {
                self.state = HostState::Error;
                self.message = message;
            } else {
                self.state = HostState::Ready;
                self.configured = true;
                READY_MESSAGE.clone_into(&mut self.message);
                self.idle.ready(self.now);
                self.respond("// Klipper state: Ready");
            }
        }
        if self.abort_at.is_some_and(|at| self.now >= at) {
            self.abort_at = None;
            let error = CommandError(self.message.clone());
            if let Some(job) = self.running.take() {
                self.fail(&job, &error);
            }
            if self.sd.active {
                self.fail_print(&error);
            }
        }
    }

    fn run_ready(&mut self, budget: &mut usize) {
        while *budget > 0 {
            if self.abort_at.is_some() {
                return;
            }
            let Some(mut job) = self.running.take().or_else(|| self.next_job()) else {
                self.toolhead.flush(self.now);
                return;
            };
            if let Some(wait) = job.wait {
                match self.still_waiting(wait) {
                    Some(wait) => {
                        job.wait = Some(wait);
                        self.running = Some(job);
                        if wait != Wait::Room {
                            self.toolhead.flush(self.now);
                        }
                        return;
                    }
                    None => job.wait = None,
                }
            }
            *budget -= 1;
            self.run_step(job);
        }
    }

    /// What the wait has become, or `None` when it is over.
    fn still_waiting(&mut self, wait: Wait) -> Option<Wait> {
        let now = self.now;
        match wait {
            Wait::Room => (self.toolhead.ahead(now) > PLAN_AHEAD).then_some(wait),
            Wait::Idle => {
                self.toolhead.flush(now);
                self.toolhead.busy(now).then_some(wait)
            }
            Wait::Until(at) => (now < at).then_some(wait),
            Wait::Heater { kind, report } => {
                if self.heater(kind).settled() {
                    return None;
                }
                self.report_due(report).map(|report| Wait::Heater { kind, report })
            }
            Wait::Range { kind, minimum, maximum, report } => {
                if (minimum..=maximum).contains(&self.heater(kind).temperature) {
                    return None;
                }
                self.report_due(report).map(|report| Wait::Range { kind, minimum, maximum, report })
            }
        }
    }

    /// Pushes the temperature line that is due and returns when the next one is.
    fn report_due(&mut self, report: f64) -> Option<f64> {
        if self.now < report {
            return Some(report);
        }
        let line = self.temperature_line();
        self.respond(line);
        Some(self.now + 1.0)
    }

    /// Scripts come first; the printed file gets the turns in between.
    fn next_job(&mut self) -> Option<Job> {
        if let Some(job) = self.waiting.pop_front() {
            return Some(job);
        }
        if !self.sd.active {
            return None;
        }
        match self.sd.file.as_mut()?.next_line() {
            Ok(Some(line)) => {
                let trimmed = line.trim_start();
                if let Some(comment) = trimmed.strip_prefix(';') {
                    self.print.read_comment(comment);
                }
                Some(Job::new(Origin::File, [Step::Text(line)]))
            }
            Ok(None) if self.toolhead.busy(self.now) => Some(Job::new(Origin::File, [Step::Inner(Inner::Finish)])),
            Ok(None) => {
                self.sd.complete();
                self.print.finish(PrintState::Complete, "");
                self.respond("Done printing file");
                None
            }
            Err(error) => {
                self.fail_print(&CommandError(error.to_string()));
                None
            }
        }
    }

    /// Executes one step of a job and puts the job back unless it ended.
    fn run_step(&mut self, mut job: Job) {
        let result = match job.steps.pop_front() {
            None => return self.end(&job),
            Some(Step::Text(text)) => self.run_text(&text),
            Some(Step::Inner(inner)) => self.run_inner(inner, &mut job),
        };
        match result {
            Ok(Flow::Next) => {
                if self.toolhead.ahead(self.now) > PLAN_AHEAD + PLAN_SLACK {
                    job.wait = Some(Wait::Room);
                }
            }
            Ok(Flow::Wait(wait)) => job.wait = Some(wait),
            Ok(Flow::Steps(steps)) => {
                job.expansions += 1;
                if job.expansions > MAX_EXPANSIONS {
                    return self.fail(&job, &CommandError::new("Macro called recursively"));
                }
                job.prepend(steps);
            }
            Ok(Flow::Finished) => return,
            Err(error) => return self.fail(&job, &error),
        }
        // A file's line without a wait is done at once: no turn of the loop is spent on ending it.
        if job.steps.is_empty() && job.wait.is_none() {
            self.end(&job);
        } else {
            self.running = Some(job);
        }
    }

    fn run_text(&mut self, text: &str) -> Result<Flow, CommandError> {
        match Line::parse(text) {
            None => Ok(Flow::Next),
            Some(line) => commands::run(self, &line),
        }
    }

    fn run_inner(&mut self, inner: Inner, job: &mut Job) -> Result<Flow, CommandError> {
        match inner {
            Inner::Finish => Ok(Flow::Wait(Wait::Idle)),
            Inner::HomeAxis(axis) => {
                self.toolhead.home(self.now, axis);
                self.gcode.last = self.toolhead.position;
                self.gcode.axis_homed(axis, self.toolhead.position[axis]);
                Ok(Flow::Wait(Wait::Idle))
            }
            Inner::MeasureEndstops if self.state != HostState::Ready => Err(CommandError::new("Unable to obtain 'endstop_state' response")),
            Inner::MeasureEndstops => {
                let position = self.toolhead.position;
                self.endstops = std::array::from_fn(|axis| self.toolhead.homed[axis] && position[axis] <= 0.0);
                Ok(Flow::Wait(Wait::Until(self.now + ENDSTOP_QUERY)))
            }
            Inner::AnswerEndstops => {
                if let Origin::Request(ticket) = job.origin {
                    let named = self.named_endstops().map(|(name, word)| (name, json!(word))).collect();
                    self.effects.push(Effect::Done(ticket, Ok(named)));
                }
                Ok(Flow::Finished)
            }
            Inner::PrintEndstops => {
                let words: Vec<String> = self.named_endstops().map(|(name, word)| format!("{name}:{word}")).collect();
                self.respond(words.join(" "));
                Ok(Flow::Next)
            }
            Inner::MotorsOff => {
                self.motors_off();
                Ok(Flow::Next)
            }
            Inner::MeshDone => {
                self.mesh_probed();
                Ok(Flow::Next)
            }
            Inner::Settle => Ok(Flow::Wait(Wait::Until(self.now + RESTART_DWELL))),
            Inner::Restart(firmware) => {
                self.end(job);
                self.effects.push(Effect::Restart { firmware });
                Ok(Flow::Finished)
            }
        }
    }

    fn named_endstops(&self) -> impl Iterator<Item = (String, &'static str)> {
        endstop_names().zip(self.endstops.map(|hit| if hit { "TRIGGERED" } else { "open" }))
    }

    fn motors_off(&mut self) {
        self.toolhead.motors_off(self.now);
    }

    fn end(&mut self, job: &Job) {
        if let Origin::Request(ticket) = job.origin {
            self.effects.push(Effect::Done(ticket, Ok(json!({}))));
        }
    }

    fn fail(&mut self, job: &Job, error: &CommandError) {
        self.gcode.last = self.toolhead.position;
        match job.origin {
            Origin::Request(ticket) => {
                let is_gcode = !job.steps.contains(&Step::Inner(Inner::AnswerEndstops));
                if is_gcode {
                    self.respond_error(&error.0);
                }
                self.effects.push(Effect::Done(ticket, Err(error.0.clone())));
            }
            Origin::File => {
                self.respond_error(&error.0);
                self.fail_print(error);
            }
        }
    }

    /// Ends the print because a line of its file failed.
    fn fail_print(&mut self, error: &CommandError) {
        self.sd.active = false;
        self.print.finish(PrintState::Error, error.0.trim());
        self.turn_off_heaters();
    }
}

/// Names of the end stops.
pub(super) fn endstop_names() -> impl Iterator<Item = String> {
    AXES.iter().map(|axis| format!("stepper_{axis}"))
}
