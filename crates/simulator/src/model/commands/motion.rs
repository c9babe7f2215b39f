//! Movement: straight lines, arcs, dwell, homing.

use std::f64::consts::TAU;

use super::{Command, Flow, Ran, accept};
use crate::model::Model;
use crate::model::heater::EXTRUDER;
use crate::model::job::{Inner, Step, Wait};
use crate::model::line::{CommandError, Line};
use crate::model::motion::{Coord, E, Z};

/// Length of the straight pieces that an arc is made of, mm.
const ARC_PIECE: f64 = 1.0;

/// Pieces of one arc at most.
const MAX_ARC_PIECES: usize = 2000;

/// Below this temperature the extruder does not turn, °C.
pub(in crate::model) const MIN_EXTRUDE_TEMP: f64 = 170.0;

/// Longest pure extrusion, mm.
pub(in crate::model) const MAX_EXTRUDE_ONLY: f64 = 500.0;

pub(super) const COMMANDS: &[Command] = &[
    Command::new("G1", straight),
    Command::new("G0", straight),
    Command::new("G2", clockwise),
    Command::new("G3", counter_clockwise),
    Command::new("G4", dwell),
    Command::new("G28", home),
    Command::new("M400", finish),
    Command::new("M18", motors_off),
    Command::new("M84", motors_off),
    Command::new("G17", accept),
    Command::new("G21", accept),
    Command::new("G20", inches),
    Command::new("T0", accept),
    Command::with_help("ACTIVATE_EXTRUDER", "Select the extruder to use", activate_extruder),
    Command::with_help("SET_STEPPER_ENABLE", "Switch one motor on or off", stepper_enable),
];

impl Model {
    /// Moves to a position in toolhead coordinates, unless the object being printed is left out.
    pub(super) fn go(&mut self, next: Coord) -> Result<(), CommandError> {
        let filament = next[E] - self.gcode.last[E];
        if self.exclude.skipping() {
            self.gcode.last = next;
            let mut skipped = self.toolhead.position;
            skipped[E] = next[E];
            self.toolhead.set_position(self.now, skipped);
            return Ok(());
        }
        if filament != 0.0 {
            self.check_extrusion(next, filament)?;
        }
        self.toolhead.move_to(self.now, next, self.gcode.speed())?;
        self.gcode.last = next;
        self.print.extruded(filament / self.gcode.extrude_factor);
        Ok(())
    }

    fn check_extrusion(&self, next: Coord, filament: f64) -> Result<(), CommandError> {
        if self.extruder.temperature < MIN_EXTRUDE_TEMP {
            return Err(CommandError::new("Extrude below minimum temp\nSee the 'min_extrude_temp' config option for details"));
        }
        let extrude_only = next[..E] == self.toolhead.position[..E];
        if extrude_only && filament.abs() > MAX_EXTRUDE_ONLY {
            return Err(CommandError(format!(
                "Extrude only move too long ({filament:.3}mm vs {MAX_EXTRUDE_ONLY:.3}mm)\nSee the 'max_extrude_only_distance' config option for details"
            )));
        }
        Ok(())
    }
}

fn straight(model: &mut Model, line: &Line) -> Ran {
    let next = model.gcode.take_words(&line.params()?, &line.text)?;
    model.go(next)?;
    Ok(Flow::Next)
}

fn clockwise(model: &mut Model, line: &Line) -> Ran {
    arc(model, line, true)
}

fn counter_clockwise(model: &mut Model, line: &Line) -> Ran {
    arc(model, line, false)
}

/// An arc around a centre given by `I` and `J`, in the XY plane.
fn arc(model: &mut Model, line: &Line, clockwise: bool) -> Ran {
    let params = line.params()?;
    if params.get("R").is_some() {
        return Err(CommandError::new("G2/G3 does not support R moves"));
    }
    let (i, j) = (params.number_or("I", 0.0)?, params.number_or("J", 0.0)?);
    if i == 0.0 && j == 0.0 {
        return Err(CommandError::new("G2/G3 requires IJ, IK or JK parameters"));
    }
    let start = model.gcode.last;
    let end = model.gcode.take_words(&params, &line.text)?;
    let (centre_x, centre_y) = (start[0] + i, start[1] + j);
    let from = (-j).atan2(-i);
    let mut sweep = (end[1] - centre_y).atan2(end[0] - centre_x) - from;
    if clockwise {
        sweep = if sweep >= -1e-9 { sweep - TAU } else { sweep };
    } else {
        sweep = if sweep <= 1e-9 { sweep + TAU } else { sweep };
    }
    let radius = i.hypot(j);
    let pieces = ((radius * sweep.abs() / ARC_PIECE) as usize).clamp(1, MAX_ARC_PIECES);
    for piece in 1..pieces {
        let share = piece as f64 / pieces as f64;
        let angle = from + sweep * share;
        let between = |axis: usize| start[axis] + (end[axis] - start[axis]) * share;
        model.go([centre_x + radius * angle.cos(), centre_y + radius * angle.sin(), between(Z), between(E)])?;
    }
    model.go(end)?;
    Ok(Flow::Next)
}

fn dwell(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let seconds = params.at_least("P", 0.0)?.map(|ms| ms / 1000.0).or(params.at_least("S", 0.0)?).unwrap_or(0.0);
    model.toolhead.dwell(model.now, seconds);
    Ok(Flow::Next)
}

fn home(_: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let named: Vec<usize> = (0..3).filter(|axis| params.get(["X", "Y", "Z"][*axis]).is_some()).collect();
    let axes = if named.is_empty() { vec![0, 1, 2] } else { named };
    Ok(Flow::Steps(axes.into_iter().map(|axis| Step::Inner(Inner::HomeAxis(axis))).collect()))
}

fn finish(_: &mut Model, _: &Line) -> Ran {
    Ok(Flow::Wait(Wait::Idle))
}

fn motors_off(_: &mut Model, _: &Line) -> Ran {
    Ok(Flow::Steps([Inner::Finish, Inner::MotorsOff].map(Step::Inner).to_vec()))
}

fn inches(_: &mut Model, _: &Line) -> Ran {
    Err(CommandError::new("Machine does not support G20 (inches) command"))
}

fn activate_extruder(model: &mut Model, line: &Line) -> Ran {
    match line.params()?.required("EXTRUDER")? {
        name if name == EXTRUDER.name => {
            model.respond("// Extruder extruder already active");
            Ok(Flow::Next)
        }
        other => Err(CommandError(format!("The value '{other}' is not valid for EXTRUDER. Options: 'extruder'"))),
    }
}

fn stepper_enable(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let names = ["stepper_x", "stepper_y", "stepper_z", "extruder"];
    let name = params.required("STEPPER")?;
    match names.iter().position(|known| *known == name) {
        Some(index) => model.toolhead.enabled[index] = params.number_or("ENABLE", 1.0)? != 0.0,
        None => model.respond_info(&format!("SET_STEPPER_ENABLE: Invalid stepper \"{name}\"")),
    }
    Ok(Flow::Next)
}
