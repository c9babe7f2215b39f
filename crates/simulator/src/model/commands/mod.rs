//! The gcode commands: one table per topic, looked up by name.
//!
//! A command is a function over the model. What takes time is returned as a [`Flow`], so no command blocks.

mod bed;
mod exclude;
mod heat;
mod host;
mod macros;
mod motion;
mod motion_state;
mod output;
mod print;

use super::Model;
use super::job::{Step, Wait};
use super::line::{CommandError, Line};
use super::state::HostState;

pub(super) use macros::{MACROS, initial_variables as macro_variables};
pub(super) use motion::MIN_EXTRUDE_TEMP;

/// How a script goes on after a command.
#[derive(Debug)]
pub(super) enum Flow {
    /// With the next step.
    Next,
    /// With the next step after a wait.
    Wait(Wait),
    /// With these steps first.
    Steps(Vec<Step>),
    /// Not at all: the job is over and was answered.
    Finished,
}

/// Result of a command.
pub(super) type Ran = Result<Flow, CommandError>;

/// One command.
pub(super) struct Command {
    pub(super) name: &'static str,
    /// Help text; commands without one are not listed by `gcode/help`.
    pub(super) help: Option<&'static str>,
    /// Also works when the host is not ready.
    pub(super) always: bool,
    run: fn(&mut Model, &Line) -> Ran,
}

impl Command {
    const fn new(name: &'static str, run: fn(&mut Model, &Line) -> Ran) -> Self {
        Self { name, help: None, always: false, run }
    }

    const fn with_help(name: &'static str, help: &'static str, run: fn(&mut Model, &Line) -> Ran) -> Self {
        Self { name, help: Some(help), always: false, run }
    }

    const fn always(mut self) -> Self {
        self.always = true;
        self
    }
}

/// All tables. Movement comes first because that is what files consist of.
const TABLES: [&[Command]; 9] = [
    motion::COMMANDS,
    motion_state::COMMANDS,
    heat::COMMANDS,
    output::COMMANDS,
    exclude::COMMANDS,
    print::COMMANDS,
    macros::COMMANDS,
    host::COMMANDS,
    bed::COMMANDS,
];

/// All commands that exist in a state of the host.
pub(super) fn all(state: HostState) -> impl Iterator<Item = &'static Command> {
    TABLES.into_iter().flatten().filter(move |c| c.always || matches!(state, HostState::Ready | HostState::Startup))
}

/// Executes a line.
pub(super) fn run(model: &mut Model, line: &Line) -> Ran {
    let ready = model.state == HostState::Ready;
    match TABLES.into_iter().flatten().find(|c| c.name == line.name) {
        Some(command) if command.always || ready => (command.run)(model, line),
        // A host that starts up accepts this one silently; serial clients send it at once.
        _ if !ready && line.name == "M21" => Ok(Flow::Next),
        _ if !ready => Err(CommandError(model.message.clone())),
        _ => {
            model.respond(format!("// Unknown command:\"{}\"", line.name));
            Ok(Flow::Next)
        }
    }
}

/// Does nothing, successfully.
fn accept(_: &mut Model, _: &Line) -> Ran {
    Ok(Flow::Next)
}
