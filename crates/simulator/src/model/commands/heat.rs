//! Heaters, fans, and waiting for temperatures.

use super::{Command, Flow, Ran};
use crate::model::Model;
use crate::model::job::{HeaterId, Wait};
use crate::model::line::{CommandError, Line};
use crate::model::state::HostState;

pub(super) const COMMANDS: &[Command] = &[
    Command::new("M104", set_extruder),
    Command::new("M109", wait_extruder),
    Command::new("M140", set_bed),
    Command::new("M190", wait_bed),
    Command::new("M105", show_temperatures).always(),
    Command::new("M106", fan_on),
    Command::new("M107", fan_off),
    Command::with_help("TURN_OFF_HEATERS", "Switch all heaters off", turn_off),
    Command::with_help("SET_HEATER_TEMPERATURE", "Set the target of a heater", set_heater),
    Command::with_help("TEMPERATURE_WAIT", "Wait until a sensor is in a range", wait_range),
    Command::with_help("SET_PIN", "Switch an output", set_pin),
];

impl Model {
    /// The line of `M105`.
    pub(in crate::model) fn temperature_line(&self) -> String {
        format!(
            "B:{:.1} /{:.1} C:{:.1} /0.0 T0:{:.1} /{:.1}",
            self.bed.reading(),
            self.bed.target,
            self.sensors.chamber.reading,
            self.extruder.reading(),
            self.extruder.target
        )
    }

    fn set_target(&mut self, id: HeaterId, target: f64) -> Result<(), CommandError> {
        let heater = self.heater_mut(id);
        if !(0.0..=heater.kind.max_target).contains(&target) {
            return Err(CommandError(format!("Requested temperature ({target:.1}) out of range (0.0:{:.1})", heater.kind.max_target)));
        }
        heater.target = target;
        Ok(())
    }

    fn wait_for(&self, kind: HeaterId) -> Flow {
        if self.heater(kind).target > 0.0 { Flow::Wait(Wait::Heater { kind, report: self.now + 1.0 }) } else { Flow::Next }
    }
}

fn set_extruder(model: &mut Model, line: &Line) -> Ran {
    let target = line.params()?.number_or("S", 0.0)?;
    model.set_target(HeaterId::Extruder, target)?;
    Ok(Flow::Next)
}

fn wait_extruder(model: &mut Model, line: &Line) -> Ran {
    set_extruder(model, line)?;
    Ok(model.wait_for(HeaterId::Extruder))
}

fn set_bed(model: &mut Model, line: &Line) -> Ran {
    let target = line.params()?.number_or("S", 0.0)?;
    model.set_target(HeaterId::Bed, target)?;
    Ok(Flow::Next)
}

fn wait_bed(model: &mut Model, line: &Line) -> Ran {
    set_bed(model, line)?;
    Ok(model.wait_for(HeaterId::Bed))
}

fn show_temperatures(model: &mut Model, _: &Line) -> Ran {
    // Before the first reading the real host has nothing to say.
    if model.state != HostState::Startup {
        let line = model.temperature_line();
        model.respond(line);
    }
    Ok(Flow::Next)
}

fn fan_on(model: &mut Model, line: &Line) -> Ran {
    model.fan = (line.params()?.at_least("S", 0.0)?.unwrap_or(255.0) / 255.0).min(1.0);
    Ok(Flow::Next)
}

fn fan_off(model: &mut Model, _: &Line) -> Ran {
    model.fan = 0.0;
    Ok(Flow::Next)
}

fn turn_off(model: &mut Model, _: &Line) -> Ran {
    model.turn_off_heaters();
    Ok(Flow::Next)
}

fn heater_named(name: &str) -> Option<HeaterId> {
    [HeaterId::Extruder, HeaterId::Bed].into_iter().find(|id| id.kind().name == name)
}

fn set_heater(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let name = params.required("HEATER")?;
    let id = heater_named(name)
        .ok_or_else(|| CommandError(format!("The value '{name}' is not valid for HEATER. Options: 'extruder', 'heater_bed'")))?;
    model.set_target(id, params.number_or("TARGET", 0.0)?)?;
    Ok(Flow::Next)
}

fn wait_range(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let name = params.required("SENSOR")?;
    let (low, high) = (params.number("MINIMUM")?, params.number("MAXIMUM")?);
    if low.is_none() && high.is_none() {
        return Err(params.error("missing MINIMUM or MAXIMUM"));
    }
    let Some(kind) = heater_named(name) else {
        return match name {
            // Their readings never leave their place, so waiting for another one would never end.
            "temperature_sensor chamber" | "temperature_sensor host_cpu" => Ok(Flow::Next),
            _ => Err(params.error(&format!("unknown sensor '{name}'"))),
        };
    };
    let (minimum, maximum) = (low.unwrap_or(f64::MIN), high.unwrap_or(f64::MAX));
    Ok(Flow::Wait(Wait::Range { kind, minimum, maximum, report: model.now + 1.0 }))
}

fn set_pin(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    match params.required("PIN")? {
        "caselight" => {
            params.required("VALUE")?;
            let value = params.within("VALUE", 0.0, 1.0)?.unwrap_or(0.0);
            model.light = if value >= 0.5 { 1.0 } else { 0.0 };
            Ok(Flow::Next)
        }
        other => Err(CommandError(format!("The value '{other}' is not valid for PIN. Options: 'caselight'"))),
    }
}
