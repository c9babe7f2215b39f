//! The host itself: identity, state, restart, emergency stop.

use super::{Command, Flow, Ran, accept, all};
use crate::model::job::{Inner, Step};
use crate::model::line::{CommandError, Line};
use crate::model::state::HostState;
use crate::model::{Model, SOFTWARE_VERSION};

pub(super) const COMMANDS: &[Command] = &[
    Command::new("M110", accept).always(),
    Command::new("M112", emergency_stop).always(),
    Command::new("M115", identify).always(),
    Command::with_help("STATUS", "Show the state of the host", status).always(),
    Command::with_help("HELP", "List the commands that have a description", help).always(),
    Command::with_help("RESTART", "Read the configuration again and start the host again", restart).always(),
    Command::with_help("FIRMWARE_RESTART", "Reset the microcontroller and start the host again", firmware_restart).always(),
    Command::with_help("SET_IDLE_TIMEOUT", "Set the idle timeout in seconds", idle_timeout),
];

fn emergency_stop(model: &mut Model, _: &Line) -> Ran {
    model.shutdown("Shutdown due to M112 command");
    Ok(Flow::Next)
}

fn identify(model: &mut Model, _: &Line) -> Ran {
    model.respond_info(&format!("FIRMWARE_NAME:Klipper FIRMWARE_VERSION:{SOFTWARE_VERSION}"));
    Ok(Flow::Next)
}

fn status(model: &mut Model, _: &Line) -> Ran {
    if model.state == HostState::Ready {
        model.respond_info("Klipper state: Ready");
        return Ok(Flow::Next);
    }
    Err(CommandError(format!("{}\nKlipper state: Not ready", model.message.trim_end())))
}

fn help(model: &mut Model, _: &Line) -> Ran {
    let mut lines: Vec<String> = all(model.state).filter_map(|c| c.help.map(|help| format!("{}: {help}", c.name))).collect();
    lines.sort();
    let head = if model.state == HostState::Ready { "" } else { "Printer is not ready - not all commands available.\n" };
    model.respond_info(&format!("{head}Available extended commands:\n{}", lines.join("\n")));
    Ok(Flow::Next)
}

fn restart(model: &mut Model, _: &Line) -> Ran {
    Ok(restart_steps(model, false))
}

fn firmware_restart(model: &mut Model, _: &Line) -> Ran {
    Ok(restart_steps(model, true))
}

/// A ready printer comes to rest first, one that stands still restarts at once.
fn restart_steps(model: &Model, firmware: bool) -> Flow {
    let rest = [Inner::Finish, Inner::Settle];
    let rest = rest.into_iter().filter(|_| model.state == HostState::Ready);
    Flow::Steps(rest.chain([Inner::Restart(firmware)]).map(Step::Inner).collect())
}

fn idle_timeout(model: &mut Model, line: &Line) -> Ran {
    if let Some(seconds) = line.params()?.at_least("TIMEOUT", 1.0)? {
        model.idle.timeout = seconds;
    }
    let seconds = model.idle.timeout;
    model.respond_info(&format!("idle_timeout: Timeout set to {seconds:.2} s"));
    Ok(Flow::Next)
}
