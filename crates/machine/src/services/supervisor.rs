//! supervisord through its tool, as in containers that run several programs.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use protocol::machine::UnitState;
use runtime::command::{Command, Output};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::cli::{self, MAX_SERVICES};
use super::names::is_name;
use super::options::ShutdownAction;
use super::provider::{Action, Boxed, News, PowerAction, Provider, ProviderError, States};
use crate::sudo::Sudo;
use crate::system::virtualization::Virtualization;

/// Time for a program of supervisord to start or stop.
const ACTION_LIMIT: Duration = Duration::from_secs(120);

/// Time for one look at the programs: the tool is written in Python, which takes long to start on a small or busy board.
const LOOK_LIMIT: Duration = Duration::from_secs(60);

/// Time between two looks, for the same reason; what clients ask for is looked at at once.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Codes with which the tool ends after a list of programs: all run, and not all run.
const LISTED: [i32; 2] = [0, 3];

pub(super) struct Supervisord {
    /// Empty: the tool finds it itself.
    config: String,
    sudo: Arc<Sudo>,
    /// Something was done to a program.
    acted: Notify,
}

impl Supervisord {
    pub(super) fn new(config: &str, sudo: Arc<Sudo>) -> Self {
        Self { config: config.to_owned(), sudo, acted: Notify::new() }
    }

    fn tool(&self) -> Command {
        let tool = Command::new("supervisorctl");
        if self.config.is_empty() { tool } else { tool.args(["-c", &self.config]) }
    }

    async fn look(&self) -> Result<States, String> {
        let output = self.tool().arg("status").limit(LOOK_LIMIT).output().await.map_err(|error| error.to_string())?;
        if output.code.is_some_and(|code| LISTED.contains(&code)) { Ok(parse(&output.stdout)) } else { Err(complaint(&output)) }
    }
}

/// It complains on its standard output.
fn complaint(output: &Output) -> String {
    format!("supervisorctl: {}", output.stdout.trim())
}

/// The program that this process is, from what supervisord tells its programs; named as in its lists.
fn own_program(group: Option<String>, process: Option<String>) -> Option<String> {
    let process = process?;
    Some(match group {
        Some(group) if group != process => format!("{group}:{process}"),
        _ => process,
    })
}

/// Lines of name, state, description. States have the names that systemd gives them.
fn parse(text: &str) -> States {
    let states = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, state) = (words.next()?, words.next()?);
        let active_state = match state {
            "RUNNING" => "active",
            "STOPPING" => "deactivating",
            "STOPPED" | "STARTING" | "BACKOFF" | "EXITED" | "FATAL" | "UNKNOWN" => "inactive",
            // A complaint of the tool.
            _ => return None,
        };
        let state = UnitState { active_state: active_state.to_owned(), sub_state: state.to_ascii_lowercase() };
        is_name(name).then(|| (name.to_owned(), state))
    });
    states.take(MAX_SERVICES).collect()
}

impl Provider for Supervisord {
    fn name(&self) -> &'static str {
        "supervisord_cli"
    }

    fn watch<'a>(&'a self, tell: &'a (dyn Fn(News) + Send + Sync)) -> Boxed<'a, ProviderError> {
        Box::pin(async move {
            loop {
                match self.look().await {
                    Ok(states) => tell(News::All(states)),
                    Err(complaint) => return ProviderError::Lost(complaint),
                }
                tokio::select! {
                    () = sleep(LOOK_EVERY) => {}
                    () = self.acted.notified() => {}
                }
            }
        })
    }

    fn act<'a>(&'a self, action: Action, service: &'a str) -> Boxed<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            let command = self.tool().args([action.verb(), service]).limit(ACTION_LIMIT);
            let output = command.output().await.map_err(|error| ProviderError::Failed(error.to_string()))?;
            self.acted.notify_one();
            if output.code == Some(0) { Ok(()) } else { Err(ProviderError::Failed(complaint(&output))) }
        })
    }

    fn own_service(&self) -> Option<String> {
        own_program(env::var("SUPERVISOR_GROUP_NAME").ok(), env::var("SUPERVISOR_PROCESS_NAME").ok())
    }

    /// The tool stops and starts, and would itself end with us.
    fn can_restart_us(&self) -> bool {
        false
    }

    fn power(&self, action: PowerAction) -> Boxed<'_, Result<(), ProviderError>> {
        Box::pin(cli::power(&self.sudo, action))
    }

    fn virtualization(&self) -> Boxed<'_, Virtualization> {
        Box::pin(Virtualization::detected())
    }

    fn missing_rights(&self, _: ShutdownAction) -> Boxed<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn our_own_program_is_named_as_in_the_lists() {
        let own = |group: &str, process: &str| own_program(Some(group.to_owned()), Some(process.to_owned()));
        assert_eq!(own("moonraker", "moonraker").as_deref(), Some("moonraker"));
        assert_eq!(own("printer", "moonraker").as_deref(), Some("printer:moonraker"));
        assert_eq!(own_program(None, None), None);
    }

    #[test]
    fn programs_are_listed_with_the_states_of_systemd() {
        let text = "klipper                          RUNNING   pid 12, uptime 0:01:02\ncam:front   STOPPING  \nsonar  FATAL     Exited too quickly\n\
                    unix:///run/supervisor.sock no such file\n";
        let states = parse(text);
        let seen: Vec<_> =
            states.iter().map(|(name, state)| (name.as_str(), state.active_state.as_str(), state.sub_state.as_str())).collect();
        assert_eq!(seen, [("cam:front", "deactivating", "stopping"), ("klipper", "active", "running"), ("sonar", "inactive", "fatal")]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}") {
            let _ = parse(&text);
        }
    }
}
