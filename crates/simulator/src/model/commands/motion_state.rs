//! How coordinates, speeds and limits are understood, and questions about positions.

use super::{Command, Flow, Ran};
use crate::model::Model;
use crate::model::job::{Inner, Step};
use crate::model::line::{CommandError, Line};
use crate::model::motion::Coord;

/// States kept by `SAVE_GCODE_STATE`.
const MAX_SAVED: usize = 100;

pub(super) const COMMANDS: &[Command] = &[
    Command::new("G90", absolute),
    Command::new("G91", relative),
    Command::new("G92", rename_position),
    Command::new("M82", absolute_extrude),
    Command::new("M83", relative_extrude),
    Command::new("M220", speed_factor),
    Command::new("M221", extrude_factor),
    Command::new("M204", acceleration),
    Command::new("M114", show_position).always(),
    Command::with_help("GET_POSITION", "Show where the toolhead is", get_position).always(),
    Command::with_help("SET_GCODE_OFFSET", "Shift all gcode positions", set_offset),
    Command::with_help("SAVE_GCODE_STATE", "Remember the coordinate state", save_state),
    Command::with_help("RESTORE_GCODE_STATE", "Go back to a remembered coordinate state", restore_state),
    Command::with_help("SET_VELOCITY_LIMIT", "Change speed and acceleration limits", velocity_limit),
    Command::with_help("SET_PRESSURE_ADVANCE", "Change the pressure advance", pressure_advance),
    Command::with_help("SET_KINEMATIC_POSITION", "Declare the toolhead's position without moving", kinematic_position),
    Command::with_help("QUERY_ENDSTOPS", "Show the state of the end stops", query_endstops),
    Command::new("M119", query_endstops),
];

fn absolute(model: &mut Model, _: &Line) -> Ran {
    model.gcode.absolute_coordinates = true;
    Ok(Flow::Next)
}

fn relative(model: &mut Model, _: &Line) -> Ran {
    model.gcode.absolute_coordinates = false;
    Ok(Flow::Next)
}

fn absolute_extrude(model: &mut Model, _: &Line) -> Ran {
    model.gcode.absolute_extrude = true;
    Ok(Flow::Next)
}

fn relative_extrude(model: &mut Model, _: &Line) -> Ran {
    model.gcode.absolute_extrude = false;
    Ok(Flow::Next)
}

fn rename_position(model: &mut Model, line: &Line) -> Ran {
    model.gcode.rename_position(&line.params()?)?;
    Ok(Flow::Next)
}

/// A percentage above zero as a factor.
fn percentage(line: &Line) -> Result<f64, CommandError> {
    let params = line.params()?;
    let percent = params.number_or("S", 100.0)?;
    if percent <= 0.0 {
        return Err(params.error("S must be above 0.0"));
    }
    Ok(percent / 100.0)
}

fn speed_factor(model: &mut Model, line: &Line) -> Ran {
    model.gcode.speed_factor = percentage(line)?;
    Ok(Flow::Next)
}

fn extrude_factor(model: &mut Model, line: &Line) -> Ran {
    model.gcode.set_extrude_factor(percentage(line)?);
    Ok(Flow::Next)
}

fn acceleration(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let accel = match (params.number("S")?, params.number("P")?, params.number("T")?) {
        (Some(s), _, _) => s,
        (None, Some(p), Some(t)) => p.min(t),
        _ => {
            model.respond_info(&format!("Invalid M204 command \"{}\"", line.text));
            return Ok(Flow::Next);
        }
    };
    if accel > 0.0 {
        model.toolhead.limits.max_accel = accel;
    }
    Ok(Flow::Next)
}

fn show_position(model: &mut Model, _: &Line) -> Ran {
    let p = model.gcode.gcode_position();
    model.respond(format!("X:{:.3} Y:{:.3} Z:{:.3} E:{:.3}", p[0], p[1], p[2], p[3]));
    Ok(Flow::Next)
}

fn get_position(model: &mut Model, _: &Line) -> Ran {
    let t = model.toolhead.position;
    let g = &model.gcode;
    let three = |c: Coord| format!("X:{:.6} Y:{:.6} Z:{:.6}", c[0], c[1], c[2]);
    let four = |c: Coord| format!("{} E:{:.6}", three(c), c[3]);
    let steppers =
        |format: &dyn Fn(f64) -> String| format!("stepper_x:{} stepper_y:{} stepper_z:{}", format(t[0]), format(t[1]), format(t[2]));
    let text = format!(
        "mcu: {}\nstepper: {}\nkinematic: {}\ntoolhead: {}\ngcode: {}\ngcode base: {}\ngcode homing: {}",
        steppers(&|v| format!("{}", (v * 80.0) as i64)),
        steppers(&|v| format!("{v:.6}")),
        three(t),
        four(t),
        four(g.last),
        four(g.base),
        three(g.homing_origin),
    );
    model.respond_info(&text);
    Ok(Flow::Next)
}

fn set_offset(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let shift = model.gcode.shift_origin(&params)?;
    if params.number_or("MOVE", 0.0)? != 0.0 {
        let feed = model.gcode.feed;
        if let Some(speed) = params.number("MOVE_SPEED")? {
            model.gcode.feed = speed.max(0.1) * 60.0;
        }
        let target = std::array::from_fn(|i| model.gcode.last[i] + shift[i]);
        let moved = model.go(target);
        model.gcode.feed = feed;
        moved?;
    }
    Ok(Flow::Next)
}

fn save_state(model: &mut Model, line: &Line) -> Ran {
    let name = line.params()?.get("NAME").unwrap_or("default").to_owned();
    if model.saved_states.len() < MAX_SAVED || model.saved_states.contains_key(&name) {
        model.saved_states.insert(name, model.gcode.clone());
    }
    Ok(Flow::Next)
}

fn restore_state(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let name = params.get("NAME").unwrap_or("default");
    let Some(saved) = model.saved_states.get(name).cloned() else {
        return Err(CommandError(format!("Unknown g-code state: {name}")));
    };
    let last = model.gcode.last;
    let target = [saved.last[0], saved.last[1], saved.last[2], last[3]];
    // The filament stands where it stands: its origin moves instead.
    let filament_shift = last[3] - saved.last[3];
    model.gcode = saved;
    model.gcode.last = last;
    model.gcode.base[3] += filament_shift;
    if params.number_or("MOVE", 0.0)? != 0.0 {
        let feed = model.gcode.feed;
        if let Some(speed) = params.number("MOVE_SPEED")? {
            model.gcode.feed = speed.max(0.1) * 60.0;
        }
        let moved = model.go(target);
        model.gcode.feed = feed;
        moved?;
    }
    Ok(Flow::Next)
}

fn velocity_limit(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    if params.is_empty() {
        let l = model.toolhead.limits;
        model.respond_info(&format!(
            "max_velocity: {:.6}\nmax_accel: {:.6}\nminimum_cruise_ratio: {:.6}\nsquare_corner_velocity: {:.6}",
            l.max_velocity, l.max_accel, l.minimum_cruise_ratio, l.square_corner_velocity
        ));
        return Ok(Flow::Next);
    }
    let limits = &mut model.toolhead.limits;
    let above_zero = |key: &str, field: &mut f64| -> Result<(), CommandError> {
        match params.number(key)? {
            Some(value) if value <= 0.0 => return Err(params.error(&format!("{key} must be above 0.0"))),
            Some(value) => *field = value,
            None => {}
        }
        Ok(())
    };
    above_zero("VELOCITY", &mut limits.max_velocity)?;
    above_zero("ACCEL", &mut limits.max_accel)?;
    if let Some(ratio) = params.within("MINIMUM_CRUISE_RATIO", 0.0, 1.0)? {
        limits.minimum_cruise_ratio = ratio;
    }
    if let Some(speed) = params.at_least("SQUARE_CORNER_VELOCITY", 0.0)? {
        limits.square_corner_velocity = speed;
    }
    Ok(Flow::Next)
}

fn pressure_advance(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    if let Some(advance) = params.at_least("ADVANCE", 0.0)? {
        model.pressure_advance = advance;
    }
    let text = format!("pressure_advance: {:.6}\npressure_advance_smooth_time: 0.040000", model.pressure_advance);
    model.respond_info(&text);
    Ok(Flow::Next)
}

fn kinematic_position(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let mut position = model.toolhead.position;
    for (axis, word) in ["X", "Y", "Z"].iter().enumerate() {
        position[axis] = params.number_or(word, position[axis])?;
    }
    model.toolhead.set_position(model.now, position);
    model.toolhead.homed = [true; 3];
    model.gcode.last = position;
    Ok(Flow::Next)
}

fn query_endstops(_: &mut Model, _: &Line) -> Ran {
    Ok(Flow::Steps([Inner::Finish, Inner::MeasureEndstops, Inner::PrintEndstops].map(Step::Inner).to_vec()))
}
