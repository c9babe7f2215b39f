//! The toolhead: limits, homing and the queue of planned moves on the model's time line.

use std::collections::VecDeque;

use super::line::CommandError;
use super::motion::{Coord, Draft, E, Move, TrapezoidRow, Z};

/// Seconds of motion planned ahead; a command that plans more waits until the queue is this short again.
pub(crate) const PLAN_AHEAD: f64 = 1.0;

/// Trapezoids kept for `dump_trapq` between two batches; the oldest go first when nobody collects them.
const MAX_ROWS: usize = 2000;

/// Lowest positions (roomy, so that files sliced for most printers run; the real origin is 0, 0) of X, Y, Z, mm.
pub(crate) const AXIS_MIN: [f64; 3] = [-10.0, -10.0, -5.0];
/// Highest positions of X, Y, Z, mm.
pub(crate) const AXIS_MAX: [f64; 3] = [300.0, 300.0, 350.0];
/// Names of the axes.
pub(crate) const AXES: [char; 3] = ['x', 'y', 'z'];

const MAX_Z_SPEED: f64 = 15.0;
const MAX_Z_ACCEL: f64 = 300.0;
const MAX_EXTRUDE_ONLY_SPEED: f64 = 80.0;
const MAX_EXTRUDE_ONLY_ACCEL: f64 = 800.0;
/// Homing speeds of X, Y, Z, mm/s.
const HOMING_SPEED: [f64; 3] = [60.0, 60.0, 12.0];
/// How far an axis backs off before its second, slower approach, mm.
const HOMING_RETRACT: f64 = 5.0;

/// Changeable speed limits (`SET_VELOCITY_LIMIT`, `M204`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// mm/s.
    pub(crate) max_velocity: f64,
    /// mm/s².
    pub(crate) max_accel: f64,
    /// Share of a move that must be cruising.
    pub(crate) minimum_cruise_ratio: f64,
    /// mm/s.
    pub(crate) square_corner_velocity: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_velocity: 300.0, max_accel: 3000.0, minimum_cruise_ratio: 0.5, square_corner_velocity: 5.0 }
    }
}

/// Toolhead with its motion queue. All times are seconds of model time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Toolhead {
    /// Where the planned moves end: the position that `toolhead.position` shows.
    pub(crate) position: Coord,
    /// Homed axes.
    pub(crate) homed: [bool; 3],
    /// Enabled motors of X, Y, Z and the extruder.
    pub(crate) enabled: [bool; 4],
    /// Speed limits.
    pub(crate) limits: Limits,
    /// When the last planned move (or dwell) ends.
    pub(crate) print_time: f64,
    queue: VecDeque<Move>,
    pending: Option<Draft>,
    /// Speed at which the pending draft begins.
    entry: f64,
    rows: VecDeque<TrapezoidRow>,
}

impl Toolhead {
    /// Plans a straight move.
    ///
    /// # Errors
    /// `Must home axis first: …` and `Move out of range: …` with the wanted position.
    pub(crate) fn move_to(&mut self, now: f64, end: Coord, speed: f64) -> Result<(), CommandError> {
        for axis in 0..E {
            if end[axis] == self.position[axis] {
                continue;
            }
            if !self.homed[axis] {
                return Err(CommandError(format!("Must home axis first: {}", coordinates(&end))));
            }
            if end[axis] < AXIS_MIN[axis] || end[axis] > AXIS_MAX[axis] {
                return Err(CommandError(format!("Move out of range: {}", coordinates(&end))));
            }
        }
        self.plan(now, end, speed);
        Ok(())
    }

    /// Plans without looking at homing and limits.
    fn plan(&mut self, now: f64, end: Coord, speed: f64) {
        let delta: Coord = std::array::from_fn(|i| end[i] - self.position[i]);
        let path = delta[..E].iter().map(|d| d * d).sum::<f64>().sqrt();
        let mut draft = if path > 1e-9 {
            let mut speed = speed.min(self.limits.max_velocity);
            let mut accel = self.limits.max_accel;
            if delta[Z] != 0.0 {
                let share = path / delta[Z].abs();
                speed = speed.min(MAX_Z_SPEED * share);
                accel = accel.min(MAX_Z_ACCEL * share);
            }
            Draft { start: self.position, end, distance: path, speed, accel }
        } else if delta[E] != 0.0 {
            let speed = speed.min(MAX_EXTRUDE_ONLY_SPEED);
            Draft { start: self.position, end, distance: delta[E].abs(), speed, accel: MAX_EXTRUDE_ONLY_ACCEL }
        } else {
            return;
        };
        // A speed of zero would last for ever.
        draft.speed = draft.speed.max(0.01);
        for (axis, moved) in delta.iter().enumerate() {
            self.enabled[axis] |= *moved != 0.0;
        }
        self.position = end;
        let junction = self.pending.as_ref().map_or(0.0, |before| before.junction_speed(&draft));
        self.settle(now, junction);
        self.entry = self.entry.min(draft.slowable());
        self.pending = Some(draft);
    }

    /// Puts the pending draft on the time line, leaving it at `exit` mm/s.
    fn settle(&mut self, now: f64, exit: f64) {
        let Some(draft) = self.pending.take() else {
            self.entry = 0.0;
            return;
        };
        let reachable = (self.entry * self.entry + 2.0 * draft.accel * draft.distance).sqrt();
        let exit = exit.min(reachable);
        let planned = Move::plan(&draft, self.print_time.max(now), self.entry, exit);
        self.entry = exit;
        self.print_time = planned.end_time();
        self.rows.extend(planned.trapezoid_rows());
        let surplus = self.rows.len().saturating_sub(MAX_ROWS);
        self.rows.drain(..surplus);
        self.queue.push_back(planned);
    }

    /// No further move follows at once: the last one ends at a stand.
    pub(crate) fn flush(&mut self, now: f64) {
        self.settle(now, 0.0);
    }

    /// Nothing moves for `seconds` after the planned moves.
    pub(crate) fn dwell(&mut self, now: f64, seconds: f64) {
        self.flush(now);
        self.print_time = self.print_time.max(now) + seconds;
    }

    /// Approaches the end stop of an axis twice and marks the axis as homed.
    pub(crate) fn home(&mut self, now: f64, axis: usize) {
        self.flush(now);
        if !self.homed[axis] {
            // Nobody knows where the axis stands; a quarter of its way is as good a guess as any.
            self.position[axis] = AXIS_MAX[axis] / 4.0;
        }
        self.homed[axis] = true;
        let speed = HOMING_SPEED[axis];
        for (target, speed) in [(0.0, speed), (HOMING_RETRACT, speed), (0.0, speed / 2.0)] {
            let mut end = self.position;
            end[axis] = target;
            self.plan(now, end, speed);
            self.flush(now);
        }
    }

    /// Sets the position without moving (`SET_KINEMATIC_POSITION`).
    pub(crate) fn set_position(&mut self, now: f64, position: Coord) {
        self.flush(now);
        self.position = position;
    }

    /// Motors off: positions are lost.
    pub(crate) fn motors_off(&mut self, now: f64) {
        self.flush(now);
        self.homed = [false; 3];
        self.enabled = [false; 4];
    }

    /// Stops at once and forgets all plans; the toolhead stays where it is.
    pub(crate) fn halt(&mut self, now: f64) {
        self.position = self.live(now).0;
        self.queue.clear();
        self.pending = None;
        self.entry = 0.0;
        self.print_time = now;
    }

    /// Seconds of motion still to come.
    pub(crate) fn ahead(&self, now: f64) -> f64 {
        (self.print_time - now).max(0.0)
    }

    /// Something is planned or moving.
    pub(crate) fn busy(&self, now: f64) -> bool {
        self.pending.is_some() || self.print_time > now
    }

    /// Forgets moves that are over.
    pub(crate) fn pass(&mut self, now: f64) {
        while self.queue.front().is_some_and(|m| m.end_time() <= now) {
            self.queue.pop_front();
        }
    }

    /// Position at this moment, speed along the path (mm/s) and speed of the filament (mm/s).
    pub(crate) fn live(&self, now: f64) -> (Coord, f64, f64) {
        if let Some(current) = self.queue.iter().find(|m| m.end_time() > now) {
            let (position, speed) = current.at(now);
            // Before its start (during a dwell) a move stands still.
            let speed = if now < current.start_time { 0.0 } else { speed };
            let filament = current.direction()[E] * speed;
            let extrude_only = current.start[..E] == current.end[..E];
            return (position, if extrude_only { 0.0 } else { speed }, filament);
        }
        let position = self.pending.as_ref().map_or(self.position, |draft| draft.start);
        (position, 0.0, 0.0)
    }

    /// Trapezoids planned since the last call.
    pub(crate) fn take_rows(&mut self) -> Vec<TrapezoidRow> {
        self.rows.drain(..).collect()
    }

    /// Homed axes as letters: `xy`.
    pub(crate) fn homed_axes(&self) -> String {
        AXES.iter().zip(self.homed).filter(|(_, homed)| *homed).map(|(axis, _)| *axis).collect()
    }
}

/// `10.000 0.000 0.000 [0.000]`, as movement errors show a position.
fn coordinates(c: &Coord) -> String {
    format!("{:.3} {:.3} {:.3} [{:.3}]", c[0], c[1], c[2], c[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unhomed_and_far_moves_fail() {
        let mut t = Toolhead::default();
        let error = t.move_to(0.0, [10.0, 0.0, 0.0, 0.0], 50.0).unwrap_err();
        assert_eq!(error.0, "Must home axis first: 10.000 0.000 0.000 [0.000]");
        t.home(0.0, 0);
        assert_eq!(t.homed_axes(), "x");
        let error = t.move_to(0.0, [99999.0, 0.0, 0.0, 0.0], 50.0).unwrap_err();
        assert_eq!(error.0, "Move out of range: 99999.000 0.000 0.000 [0.000]");
    }

    #[test]
    fn a_polyline_is_continuous_in_place_and_time() {
        let mut t = Toolhead { homed: [true; 3], ..Toolhead::default() };
        for (x, y) in [(10.0, 0.0), (20.0, 0.0), (20.0, 10.0), (20.05, 10.0), (60.0, 10.0)] {
            t.move_to(1.0, [x, y, 0.0, x / 50.0], 100.0).unwrap();
        }
        t.flush(1.0);
        assert!((0.5..3.0).contains(&t.ahead(1.0)), "{}", t.ahead(1.0));
        let mut last = t.live(1.0).0;
        let mut now = 1.0;
        while t.busy(now) {
            now += 0.01;
            let here = t.live(now).0;
            let step: f64 = (0..2).map(|i| (here[i] - last[i]).abs()).sum();
            assert!(step < 2.1, "jump of {step} at {now}");
            last = here;
            t.pass(now);
        }
        assert_eq!(t.live(now).0, [60.0, 10.0, 0.0, 1.2]);
        assert!(!t.take_rows().is_empty());
    }

    #[test]
    fn halting_keeps_the_place() {
        let mut t = Toolhead { homed: [true; 3], ..Toolhead::default() };
        t.move_to(0.0, [100.0, 0.0, 0.0, 0.0], 100.0).unwrap();
        t.flush(0.0);
        t.halt(0.5);
        assert!((30.0..60.0).contains(&t.position[0]), "{:?}", t.position);
        assert!(!t.busy(0.5));
    }
}
