//! The macros that the simulated printer's configuration has. They are functions here; the configuration shows what they stand for.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{Command, Flow, Ran};
use crate::model::job::Step;
use crate::model::line::{CommandError, Line};
use crate::model::{Effect, Model, literal};

/// A macro as the configuration shows it.
pub(in crate::model) struct Macro {
    pub(in crate::model) name: &'static str,
    pub(in crate::model) description: &'static str,
    /// Command that the macro renames and calls.
    pub(in crate::model) renames: Option<&'static str>,
    /// Variables with their first values, as JSON text.
    pub(in crate::model) variables: &'static [(&'static str, &'static str)],
    pub(in crate::model) gcode: &'static str,
}

/// All macros.
pub(in crate::model) const MACROS: &[Macro] = &[
    Macro { name: "PAUSE", description: "Pause the print", renames: Some("PAUSE_BASE"), variables: &[], gcode: "PAUSE_BASE" },
    Macro { name: "RESUME", description: "Go on with a paused print", renames: Some("RESUME_BASE"), variables: &[], gcode: "RESUME_BASE" },
    Macro {
        name: "CANCEL_PRINT",
        description: "End the print",
        renames: Some("CANCEL_PRINT_BASE"),
        variables: &[],
        gcode: "TURN_OFF_HEATERS\nM106 S0\nCANCEL_PRINT_BASE",
    },
    Macro {
        name: "START_PRINT",
        description: "Heat up and home before a print",
        renames: None,
        variables: &[("last_bed", "0")],
        gcode: "M140 S{params.BED}\nG28\nM190 S{params.BED}\nM109 S{params.EXTRUDER}\nM117 Printing",
    },
    Macro {
        name: "END_PRINT",
        description: "Switch everything off after a print",
        renames: None,
        variables: &[],
        gcode: "TURN_OFF_HEATERS\nM107\nM84\nM117 Done",
    },
    Macro {
        name: "CALL_REMOTE",
        description: "Call a method that a client registered: METHOD=name KEY=value",
        renames: None,
        variables: &[],
        gcode: "{action_call_remote_method(params.METHOD, **params)}",
    },
    Macro { name: "RAISE", description: "Fail", renames: None, variables: &[], gcode: "{action_raise_error(\"custom raised error\")}" },
    Macro {
        name: "EMERGENCY",
        description: "Shut the printer down",
        renames: None,
        variables: &[],
        gcode: "{action_emergency_stop(\"macro emergency\")}",
    },
    Macro {
        name: "SAY",
        description: "Write two lines",
        renames: None,
        variables: &[],
        gcode: "{action_respond_info(\"line one\\nline two\")}",
    },
];

pub(super) const COMMANDS: &[Command] = &[
    Command::with_help("PAUSE", "Pause the print", plain),
    Command::with_help("RESUME", "Go on with a paused print", plain),
    Command::with_help("CANCEL_PRINT", "End the print", plain),
    Command::with_help("START_PRINT", "Heat up and home before a print", start_print),
    Command::with_help("END_PRINT", "Switch everything off after a print", plain),
    Command::with_help("CALL_REMOTE", "Call a method that a client registered: METHOD=name KEY=value", call_remote),
    Command::with_help("RAISE", "Fail", raise),
    Command::with_help("EMERGENCY", "Shut the printer down", emergency),
    Command::with_help("SAY", "Write two lines", say),
    Command::with_help("SET_GCODE_VARIABLE", "Set a variable of a macro", set_variable),
];

/// The macros' variables at start.
pub(in crate::model) fn initial_variables() -> IndexMap<&'static str, Map<String, Value>> {
    let value = |text: &str| literal::parse(text).unwrap_or(Value::Null);
    let variables = |m: &Macro| m.variables.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect();
    MACROS.iter().map(|m| (m.name, variables(m))).collect()
}

fn steps<'a>(lines: impl IntoIterator<Item = &'a str>) -> Flow {
    Flow::Steps(lines.into_iter().map(|line| Step::Text(line.to_owned())).collect())
}

/// A macro whose text is plain gcode.
fn plain(_: &mut Model, line: &Line) -> Ran {
    let gcode = MACROS.iter().find(|m| m.name == line.name).map_or("", |m| m.gcode);
    Ok(steps(gcode.lines()))
}

fn start_print(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let (bed, extruder) = (params.number_or("BED", 0.0)?, params.number_or("EXTRUDER", 0.0)?);
    if let Some(variables) = model.variables.get_mut("START_PRINT") {
        variables.insert("last_bed".to_owned(), json!(bed));
    }
    let mut lines = vec![format!("M140 S{bed}"), "G28".to_owned()];
    if bed > 0.0 {
        lines.push(format!("M190 S{bed}"));
    }
    if extruder > 0.0 {
        lines.push(format!("M109 S{extruder}"));
    }
    lines.push("M117 Printing".to_owned());
    Ok(steps(lines.iter().map(String::as_str)))
}

fn call_remote(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let method = params.required("METHOD")?.to_owned();
    let value = |text: &str| literal::parse(text).or_else(|| json_word(text)).unwrap_or_else(|| json!(text));
    let arguments = params.iter().filter(|(key, _)| *key != "METHOD").map(|(key, text)| (key.to_lowercase(), value(text))).collect();
    model.effects.push(Effect::Remote { method, arguments });
    Ok(Flow::Next)
}

/// `true`, `false`, `null`, as people write them who do not think in the macro language.
fn json_word(text: &str) -> Option<Value> {
    match text {
        "true" => Some(json!(true)),
        "false" => Some(json!(false)),
        "null" => Some(Value::Null),
        _ => None,
    }
}

fn raise(_: &mut Model, _: &Line) -> Ran {
    Err(CommandError::new("Error evaluating 'gcode_macro RAISE:gcode': gcode.CommandError: custom raised error\n"))
}

fn emergency(model: &mut Model, _: &Line) -> Ran {
    model.shutdown("Shutdown due to macro emergency");
    Err(CommandError(model.message.clone()))
}

fn say(model: &mut Model, _: &Line) -> Ran {
    model.respond_info("line one\nline two");
    Ok(Flow::Next)
}

fn set_variable(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let (name, variable, text) = (params.required("MACRO")?, params.required("VARIABLE")?, params.required("VALUE")?);
    let Some(variables) = model.variables.get_mut(name.to_uppercase().as_str()) else {
        return Err(CommandError(format!("The value '{name}' is not valid for MACRO")));
    };
    let Some(slot) = variables.get_mut(variable) else {
        return Err(CommandError(format!("Unknown gcode_macro variable '{variable}'")));
    };
    *slot = literal::parse(text)
        .ok_or_else(|| CommandError(format!("Unable to parse '{text}' as a literal: invalid syntax in '{}'", line.text)))?;
    Ok(Flow::Next)
}
