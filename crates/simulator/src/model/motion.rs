//! One planned move: a trapezoid of speed along a straight line.

use serde_json::{Value, json};

/// Coordinates X, Y, Z (mm) and E (mm of filament).
pub(crate) type Coord = [f64; 4];

/// Index of Z in a [`Coord`].
pub(crate) const Z: usize = 2;
/// Index of the extruder in a [`Coord`].
pub(crate) const E: usize = 3;

/// A move with speeds settled, placed on the time line.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    /// Start on the model's time line, seconds.
    pub(crate) start_time: f64,
    /// Where it begins.
    pub(crate) start: Coord,
    /// Where it ends.
    pub(crate) end: Coord,
    /// Speeds along the path at start, middle and end, mm/s.
    pub(crate) speeds: [f64; 3],
    /// Durations of speeding up, cruising and slowing down, seconds.
    pub(crate) phases: [f64; 3],
    /// Length of the path, mm.
    pub(crate) distance: f64,
}

impl Move {
    /// Places a move of `draft` on the time line between two junction speeds.
    pub(crate) fn plan(draft: &Draft, start_time: f64, entry: f64, exit: f64) -> Self {
        let (d, a) = (draft.distance, draft.accel);
        // The top speed is what both ramps can reach within the distance, at most the wanted speed.
        let reachable = (a * d + (entry * entry + exit * exit) / 2.0).sqrt();
        let top = draft.speed.min(reachable).max(entry).max(exit);
        let up = (top - entry) / a;
        let down = (top - exit) / a;
        let ramps = up * (top + entry) / 2.0 + down * (top + exit) / 2.0;
        let cruise = ((d - ramps) / top).max(0.0);
        Self { start_time, start: draft.start, end: draft.end, speeds: [entry, top, exit], phases: [up, cruise, down], distance: d }
    }

    /// Length in time, seconds.
    pub(crate) fn duration(&self) -> f64 {
        self.phases.iter().sum()
    }

    /// When it is over.
    pub(crate) fn end_time(&self) -> f64 {
        self.start_time + self.duration()
    }

    /// Unit vector of the path.
    pub(crate) fn direction(&self) -> Coord {
        std::array::from_fn(|i| (self.end[i] - self.start[i]) / self.distance)
    }

    /// Position and speed along the path at a moment.
    pub(crate) fn at(&self, time: f64) -> (Coord, f64) {
        let mut t = (time - self.start_time).clamp(0.0, self.duration());
        let [entry, top, exit] = self.speeds;
        let mut way = 0.0;
        let mut speed = entry;
        for (length, from, to) in [(self.phases[0], entry, top), (self.phases[1], top, top), (self.phases[2], top, exit)] {
            let part = t.min(length);
            speed = if length > 0.0 { from + (to - from) * part / length } else { to };
            way += (from + speed) / 2.0 * part;
            t -= part;
            if t <= 0.0 {
                break;
            }
        }
        let share = (way / self.distance).min(1.0);
        (std::array::from_fn(|i| self.start[i] + (self.end[i] - self.start[i]) * share), speed)
    }

    /// Rows of the `motion_report/dump_trapq` stream: one per phase (wire document 5, section 8).
    pub(crate) fn trapezoid_rows(&self) -> Vec<TrapezoidRow> {
        let accels = [(self.speeds[1] - self.speeds[0]) / self.phases[0], 0.0, (self.speeds[2] - self.speeds[1]) / self.phases[2]];
        let mut begin = self.start_time;
        let mut rows = Vec::new();
        for (index, length) in self.phases.into_iter().enumerate() {
            if length > 0.0 {
                let (position, speed) = self.at(begin);
                rows.push(TrapezoidRow {
                    time: begin,
                    duration: length,
                    speed,
                    accel: accels[index],
                    position,
                    direction: self.direction(),
                });
            }
            begin += length;
        }
        rows
    }
}

/// One stretch of constant acceleration.
#[derive(Debug, Clone)]
pub(crate) struct TrapezoidRow {
    /// Start, seconds.
    pub(crate) time: f64,
    /// Length, seconds.
    pub(crate) duration: f64,
    /// Speed at the start, mm/s.
    pub(crate) speed: f64,
    /// Acceleration, mm/s².
    pub(crate) accel: f64,
    /// Position at the start.
    pub(crate) position: Coord,
    /// Unit vector of the path.
    pub(crate) direction: Coord,
}

impl TrapezoidRow {
    /// The row as the stream of a queue shows it: of the toolhead, or of the filament alone.
    pub(crate) fn to_json(&self, filament: bool) -> Value {
        let share = |c: Coord| if filament { [c[E], 0.0, 0.0] } else { [c[0], c[1], c[Z]] };
        json!([self.time, self.duration, self.speed, self.accel, share(self.position), share(self.direction)])
    }
}

/// A move whose end speed is not known yet because the next one has not come.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// Where it begins.
    pub(crate) start: Coord,
    /// Where it ends.
    pub(crate) end: Coord,
    /// Length of the path in mm; of the filament if only the extruder moves.
    pub(crate) distance: f64,
    /// Wanted speed, mm/s.
    pub(crate) speed: f64,
    /// Acceleration, mm/s².
    pub(crate) accel: f64,
}

impl Draft {
    /// Fastest speed at which `self` may go over into `next` (cheap rule: the share of the direction that is kept).
    pub(crate) fn junction_speed(&self, next: &Self) -> f64 {
        if self.is_extrude_only() || next.is_extrude_only() {
            return 0.0;
        }
        let dot: f64 = (0..E).map(|i| (self.end[i] - self.start[i]) * (next.end[i] - next.start[i])).sum();
        let kept = (dot / (self.distance * next.distance)).clamp(0.0, 1.0);
        kept * self.speed.min(next.speed).min(next.slowable()).min(self.slowable())
    }

    /// Speed from which the move can come to a stand within its length.
    pub(crate) fn slowable(&self) -> f64 {
        (2.0 * self.accel * self.distance).sqrt()
    }

    fn is_extrude_only(&self) -> bool {
        (0..E).all(|i| self.start[i] == self.end[i])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(from: f64, to: f64, speed: f64) -> Draft {
        Draft { start: [from, 0.0, 0.0, 0.0], end: [to, 0.0, 0.0, 0.0], distance: (to - from).abs(), speed, accel: 1000.0 }
    }

    #[test]
    fn a_long_move_has_three_phases() {
        let m = Move::plan(&draft(0.0, 100.0, 100.0), 5.0, 0.0, 0.0);
        assert!((m.duration() - 1.1).abs() < 1e-9, "{m:?}");
        assert_eq!(m.trapezoid_rows().len(), 3);
        let (start, speed) = m.at(5.0);
        assert_eq!((start[0], speed), (0.0, 0.0));
        let (middle, speed) = m.at(5.55);
        assert!((middle[0] - 50.0).abs() < 1e-9 && (speed - 100.0).abs() < 1e-9);
        let (end, speed) = m.at(99.0);
        assert!((end[0] - 100.0).abs() < 1e-9 && speed.abs() < 1e-9);
    }

    #[test]
    fn a_short_move_never_reaches_its_speed() {
        let m = Move::plan(&draft(0.0, 1.0, 100.0), 0.0, 0.0, 0.0);
        assert!(m.speeds[1] < 40.0);
        assert!((m.at(m.end_time()).0[0] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn corners_slow_down_and_straight_lines_do_not() {
        let a = draft(0.0, 50.0, 80.0);
        let b = draft(50.0, 100.0, 60.0);
        assert!((a.junction_speed(&b) - 60.0).abs() < 1e-9);
        assert_eq!(b.junction_speed(&a).signum(), 1.0);
        assert_eq!(a.junction_speed(&draft(50.0, 0.0, 60.0)), 0.0);
    }
}
