//! supervisord through its tool, as in containers that run several programs.

use std::sync::Arc;
use std::time::Duration;

use protocol::machine::UnitState;
use runtime::command::{Command, CommandError};

use super::allowed::is_name;
use super::cli::{self, LOOK_EVERY, MAX_SERVICES};
use super::options::ShutdownAction;
use super::provider::{Action, Boxed, News, PowerAction, Provider, ProviderError, States};
use crate::sudo::Sudo;
use crate::system::virtualization::Virtualization;

/// Time for a program of supervisord to start or stop.
const ACTION_LIMIT: Duration = Duration::from_secs(120);

/// Time for one look at the programs: the tool is written in Python, which takes long to start on a small or busy board.
const LOOK_LIMIT: Duration = Duration::from_secs(60);

pub(super) struct Supervisord {
    /// Empty: the tool finds it itself.
    config: String,
    sudo: Arc<Sudo>,
}

impl Supervisord {
    pub(super) fn new(config: &str, sudo: Arc<Sudo>) -> Self {
        Self { config: config.to_owned(), sudo }
    }

    fn tool(&self) -> Command {
        let tool = Command::new("supervisorctl");
        if self.config.is_empty() { tool } else { tool.args(["-c", &self.config]) }
    }

    async fn look(&self) -> Result<States, CommandError> {
        // It ends with another code than 0 when one of the programs does not run.
        Ok(parse(&self.tool().arg("status").limit(LOOK_LIMIT).output().await?.stdout))
    }
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
                    Err(error) => return ProviderError::Lost(error.to_string()),
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        })
    }

    fn act<'a>(&'a self, action: Action, service: &'a str) -> Boxed<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            let command = self.tool().args([action.verb(), service]).limit(ACTION_LIMIT);
            let output = command.output().await.map_err(|error| ProviderError::Failed(error.to_string()))?;
            // It complains on its standard output.
            match output.code {
                Some(0) => Ok(()),
                _ => Err(ProviderError::Failed(format!("supervisorctl: {}", output.stdout.trim()))),
            }
        })
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
