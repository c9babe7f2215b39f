//! What gcode coordinates mean: absolute or relative, offsets, speed and flow factors. Turns `G1` words into toolhead positions.

use super::line::{CommandError, Params};
use super::motion::{Coord, E};

/// Coordinate state of the gcode interpreter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GcodeMove {
    /// `G90` / `G91`.
    pub(crate) absolute_coordinates: bool,
    /// `M82` / `M83`.
    pub(crate) absolute_extrude: bool,
    /// Origin set by `G92` plus offsets.
    pub(crate) base: Coord,
    /// Last commanded toolhead position.
    pub(crate) last: Coord,
    /// Offset set by `SET_GCODE_OFFSET`.
    pub(crate) homing_origin: Coord,
    /// Last `F`, mm/min.
    pub(crate) feed: f64,
    /// `M220` as a factor.
    pub(crate) speed_factor: f64,
    /// `M221` as a factor.
    pub(crate) extrude_factor: f64,
}

impl Default for GcodeMove {
    fn default() -> Self {
        Self {
            absolute_coordinates: true,
            absolute_extrude: true,
            base: [0.0; 4],
            last: [0.0; 4],
            homing_origin: [0.0; 4],
            feed: 1500.0,
            speed_factor: 1.0,
            extrude_factor: 1.0,
        }
    }
}

const WORDS: [&str; 4] = ["X", "Y", "Z", "E"];

impl GcodeMove {
    /// Takes in `X Y Z E F` of a move and returns the wanted position.
    ///
    /// # Errors
    /// A number that cannot be parsed, or a speed that is not above zero.
    pub(crate) fn take_words(&mut self, params: &Params, text: &str) -> Result<Coord, CommandError> {
        let parse_error = || CommandError(format!("Unable to parse move '{text}'"));
        let mut next = self.last;
        for (axis, word) in WORDS.iter().enumerate() {
            let Some(value) = params.number(word).map_err(|_| parse_error())? else {
                continue;
            };
            let value = if axis == E { value * self.extrude_factor } else { value };
            let absolute = self.absolute_coordinates && (axis != E || self.absolute_extrude);
            next[axis] = if absolute { value + self.base[axis] } else { next[axis] + value };
        }
        if let Some(feed) = params.number("F").map_err(|_| parse_error())? {
            if feed <= 0.0 {
                return Err(CommandError(format!("Invalid speed in '{text}'")));
            }
            self.feed = feed;
        }
        Ok(next)
    }

    /// Speed of the next move, mm/s.
    pub(crate) fn speed(&self) -> f64 {
        self.feed * self.speed_factor / 60.0
    }

    /// Position as gcode sees it.
    pub(crate) fn gcode_position(&self) -> Coord {
        let mut position: Coord = std::array::from_fn(|i| self.last[i] - self.base[i]);
        position[E] /= self.extrude_factor;
        position
    }

    /// `G92`: names the present position.
    ///
    /// # Errors
    /// A number that cannot be parsed.
    pub(crate) fn rename_position(&mut self, params: &Params) -> Result<(), CommandError> {
        if params.is_empty() {
            self.base = self.last;
        }
        for (axis, word) in WORDS.iter().enumerate() {
            if let Some(value) = params.number(word)? {
                let value = if axis == E { value * self.extrude_factor } else { value };
                self.base[axis] = self.last[axis] - value;
            }
        }
        Ok(())
    }

    /// `SET_GCODE_OFFSET`: returns how far each axis was shifted.
    ///
    /// # Errors
    /// A number that cannot be parsed.
    pub(crate) fn shift_origin(&mut self, params: &Params) -> Result<Coord, CommandError> {
        let mut shift = [0.0; 4];
        for (axis, word) in WORDS.iter().enumerate() {
            let wanted = match (params.number(word)?, params.number(&format!("{word}_ADJUST"))?) {
                (Some(offset), _) => offset,
                (None, Some(adjust)) => self.homing_origin[axis] + adjust,
                (None, None) => continue,
            };
            shift[axis] = wanted - self.homing_origin[axis];
            self.base[axis] += shift[axis];
            self.homing_origin[axis] = wanted;
        }
        Ok(shift)
    }

    /// After homing an axis stands where the toolhead says, and `G92` offsets of it are gone.
    pub(crate) fn axis_homed(&mut self, axis: usize, position: f64) {
        self.last[axis] = position;
        self.base[axis] = self.homing_origin[axis];
    }

    /// `M221`: the filament position keeps its gcode value.
    pub(crate) fn set_extrude_factor(&mut self, factor: f64) {
        let e = self.gcode_position()[E];
        self.extrude_factor = factor;
        self.base[E] = self.last[E] - e * factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::line::Line;

    fn go(state: &mut GcodeMove, text: &str) {
        let line = Line::parse(text).unwrap();
        state.last = state.take_words(&line.params().unwrap(), text).unwrap();
    }

    #[test]
    fn relative_offsets_and_factors() {
        let mut g = GcodeMove::default();
        go(&mut g, "G1 X10 E1 F600");
        g.absolute_extrude = false;
        go(&mut g, "G1 E1");
        g.absolute_coordinates = false;
        go(&mut g, "G1 X-4");
        assert_eq!(g.last, [6.0, 0.0, 0.0, 2.0]);
        assert_eq!(g.speed(), 10.0);
        g.rename_position(&Line::parse("G92 E0").unwrap().params().unwrap()).unwrap();
        assert_eq!(g.gcode_position(), [6.0, 0.0, 0.0, 0.0]);
        g.set_extrude_factor(0.5);
        go(&mut g, "G1 E4");
        assert_eq!((g.last[3], g.gcode_position()[3]), (4.0, 4.0));
        let shift = g.shift_origin(&Line::parse("SET_GCODE_OFFSET Z_ADJUST=0.1").unwrap().params().unwrap()).unwrap();
        assert_eq!(shift[2], 0.1);
        assert_eq!(g.homing_origin[2], 0.1);
    }
}
