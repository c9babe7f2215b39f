//! Objects on the bed: definition, marks in the file, leaving one out.

use serde_json::{Map, Value, json};

use super::{Command, Flow, Ran};
use crate::model::Model;
use crate::model::line::{CommandError, Line};

pub(super) const COMMANDS: &[Command] = &[
    Command::with_help("EXCLUDE_OBJECT", "Leave an object out of the print", exclude),
    Command::with_help("EXCLUDE_OBJECT_DEFINE", "Describe an object of the print", define),
    Command::with_help("EXCLUDE_OBJECT_START", "Mark the begin of an object", start),
    Command::with_help("EXCLUDE_OBJECT_END", "Mark the end of an object", end),
];

fn define(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    if params.number_or("RESET", 0.0)? != 0.0 {
        model.exclude.reset();
    }
    if let Some(name) = params.get("NAME") {
        let mut details = Map::new();
        for (key, field) in [("CENTER", "center"), ("POLYGON", "polygon")] {
            if let Some(text) = params.get(key) {
                details.insert(field.to_owned(), coordinates(text).ok_or_else(|| params.error(&format!("unable to parse {text}")))?);
            }
        }
        model.exclude.define(&name.to_uppercase(), details);
    }
    Ok(Flow::Next)
}

/// `1,2` or `[[1,2],[3,4]]`; whole numbers become floats.
fn coordinates(text: &str) -> Option<Value> {
    fn floats(value: Value) -> Value {
        match value {
            Value::Array(items) => items.into_iter().map(floats).collect(),
            Value::Number(n) => json!(n.as_f64()),
            other => other,
        }
    }
    let bracketed = if text.trim_start().starts_with("[[") { text.to_owned() } else { format!("[{text}]") };
    serde_json::from_str(&bracketed).ok().map(floats)
}

fn start(model: &mut Model, line: &Line) -> Ran {
    let name = line.params()?.required("NAME")?.to_uppercase();
    if !model.exclude.objects.iter().any(|object| object["name"] == json!(name)) {
        model.exclude.define(&name, Map::new());
    }
    model.exclude.current = Some(name);
    Ok(Flow::Next)
}

fn end(model: &mut Model, _: &Line) -> Ran {
    if model.exclude.current.take().is_none() {
        model.respond_info("EXCLUDE_OBJECT_END called, but no object is currently active");
    }
    Ok(Flow::Next)
}

fn exclude(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    if params.number_or("RESET", 0.0)? != 0.0 {
        match params.get("NAME").map(str::to_uppercase) {
            Some(name) => model.exclude.excluded.retain(|known| *known != name),
            None => model.exclude.excluded.clear(),
        }
        return Ok(Flow::Next);
    }
    let name = if params.number_or("CURRENT", 0.0)? != 0.0 {
        model.exclude.current.clone().ok_or_else(|| CommandError::new("There is no current object to cancel"))?
    } else if let Some(name) = params.get("NAME") {
        name.to_uppercase()
    } else {
        let names = model.exclude.excluded.join(" ");
        model.respond_info(&format!("Excluded objects: {names}"));
        return Ok(Flow::Next);
    };
    if model.exclude.exclude(&name) {
        model.respond_info(&format!("Excluding object {name}"));
    }
    Ok(Flow::Next)
}
