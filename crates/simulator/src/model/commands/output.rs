//! Text to the console and the display.

use super::{Command, Flow, Ran};
use crate::model::Model;
use crate::model::line::Line;

pub(super) const COMMANDS: &[Command] = &[
    Command::new("M117", display),
    Command::new("M73", progress),
    Command::new("M118", echo_free_text).always(),
    Command::with_help("RESPOND", "Write a line to the console", respond).always(),
    Command::new("ECHO", echo).always(),
    Command::with_help("SET_DISPLAY_TEXT", "Set or clear the display's message", display_text),
];

fn display(model: &mut Model, line: &Line) -> Ran {
    let text = line.free_text();
    model.display_message = (!text.is_empty()).then(|| text.to_owned());
    Ok(Flow::Next)
}

fn display_text(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    model.display_message = params.get("MSG").filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(Flow::Next)
}

fn progress(model: &mut Model, line: &Line) -> Ran {
    if let Some(percent) = line.params()?.number("P")? {
        model.display_progress = Some((percent / 100.0).clamp(0.0, 1.0));
    }
    Ok(Flow::Next)
}

fn echo_free_text(model: &mut Model, line: &Line) -> Ran {
    model.respond(format!("echo: {}", line.free_text()));
    Ok(Flow::Next)
}

fn echo(model: &mut Model, line: &Line) -> Ran {
    line.params()?;
    model.respond_info(&line.text);
    Ok(Flow::Next)
}

fn respond(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let message = params.get("MSG").unwrap_or("");
    let prefix = match params.get("TYPE").map(str::to_lowercase).as_deref() {
        None | Some("echo") => "echo: ",
        Some("echo_no_space") => "echo:",
        Some("command") => "// ",
        Some("error") => "!! ",
        Some(_) => return Err(params.error("RESPOND TYPE must be one of 'echo', 'echo_no_space', 'command' or 'error'")),
    };
    let line = match params.get("PREFIX") {
        Some(prefix) => format!("{prefix} {message}"),
        None => format!("{prefix}{message}"),
    };
    model.respond(line);
    Ok(Flow::Next)
}
