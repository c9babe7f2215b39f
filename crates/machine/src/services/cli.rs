//! systemd through its tool.

use std::sync::Arc;
use std::time::Duration;

use protocol::machine::UnitState;
use runtime::command::{Command, CommandError};

use super::names::{bare, is_name};
use super::options::ShutdownAction;
use super::provider::{Action, Boxed, News, PowerAction, Provider, ProviderError, States};
use crate::sudo::Sudo;
use crate::system::virtualization::Virtualization;

/// Pause between two looks at the services.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time for a service to start or stop.
const ACTION_LIMIT: Duration = Duration::from_secs(120);
/// Services that are kept track of.
pub(super) const MAX_SERVICES: usize = 4096;

pub(super) struct Systemctl {
    sudo: Arc<Sudo>,
}

impl Systemctl {
    pub(super) fn new(sudo: Arc<Sudo>) -> Self {
        Self { sudo }
    }

    async fn run(&self, arguments: &[&str]) -> Result<(), ProviderError> {
        let arguments: Vec<&str> = ["systemctl"].iter().chain(arguments).copied().collect();
        self.sudo.run(&arguments, ACTION_LIMIT).await.map(drop).map_err(|error| failed(&error))
    }
}

/// Switches the machine off or on again, for providers that cannot.
pub(super) async fn power(sudo: &Arc<Sudo>, action: PowerAction) -> Result<(), ProviderError> {
    // Systems without systemd have programs of these names.
    let has_systemctl = Command::new("systemctl").arg("--version").output().await.is_ok();
    let words = if has_systemctl { vec!["systemctl", action.verb()] } else { vec![action.verb()] };
    sudo.run(&words, ACTION_LIMIT).await.map(drop).map_err(|error| failed(&error))
}

fn failed(error: &CommandError) -> ProviderError {
    ProviderError::Failed(error.to_string())
}

async fn look() -> Result<States, CommandError> {
    let arguments = ["list-units", "--all", "--type=service", "--plain", "--no-legend", "--no-pager"];
    Ok(parse(&Command::new("systemctl").args(arguments).text().await?))
}

/// Lines of unit, load state, active state, sub state, description.
fn parse(text: &str) -> States {
    let states = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.strip_suffix(".service")?;
        let is_loaded = words.next()? != "not-found";
        let (active, sub) = (words.next()?, words.next()?);
        let state = UnitState { active_state: active.to_owned(), sub_state: sub.to_owned() };
        (is_loaded && is_name(bare(name))).then(|| (name.to_owned(), state))
    });
    states.take(MAX_SERVICES).collect()
}

impl Provider for Systemctl {
    fn name(&self) -> &'static str {
        "systemd_cli"
    }

    fn watch<'a>(&'a self, tell: &'a (dyn Fn(News) + Send + Sync)) -> Boxed<'a, ProviderError> {
        Box::pin(async move {
            loop {
                match look().await {
                    Ok(states) => tell(News::All(states)),
                    Err(error) => return ProviderError::Lost(error.to_string()),
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        })
    }

    fn act<'a>(&'a self, action: Action, service: &'a str) -> Boxed<'a, Result<(), ProviderError>> {
        Box::pin(async move { self.run(&[action.verb(), &format!("{service}.service")]).await })
    }

    fn power(&self, action: PowerAction) -> Boxed<'_, Result<(), ProviderError>> {
        Box::pin(power(&self.sudo, action))
    }

    fn virtualization(&self) -> Boxed<'_, Virtualization> {
        Box::pin(Virtualization::detected())
    }

    fn missing_rights(&self, _: ShutdownAction) -> Boxed<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }

    fn needs_sudo(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn loaded_services_are_listed() {
        let text = "klipper.service loaded active running Klipper\nsonar.service not-found inactive dead sonar.service\n\
                    crowsnest.service loaded inactive dead x\ndev-sda.device loaded active plugged y\nbroken\n";
        let states = parse(text);
        assert_eq!(states.keys().collect::<Vec<_>>(), ["crowsnest", "klipper"]);
        assert_eq!(states["klipper"], UnitState { active_state: "active".into(), sub_state: "running".into() });
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}") {
            let _ = parse(&text);
        }
    }
}
