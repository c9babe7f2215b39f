//! systemd and logind over the system bus.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use protocol::machine::UnitState;
use tokio::sync::Mutex;
use tokio::time::timeout;
use zbus::connection::Builder;
use zbus::message::Type;
use zbus::{Connection, DynamicType, MatchRule, Message, MessageStream, OwnedObjectPath, OwnedVariant};

use super::cli::{self, MAX_SERVICES};
use super::names::is_name;
use super::options::ShutdownAction;
use super::provider::{Action, Boxed, News, PowerAction, Provider, ProviderError, States};
use crate::sudo::Sudo;
use crate::system::virtualization::Virtualization;

/// Time for the bus to let us in.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Time for an answer.
const CALL_LIMIT: Duration = Duration::from_secs(20);

const SYSTEMD: &str = "org.freedesktop.systemd1";
const SYSTEMD_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const LOGIND: &str = "org.freedesktop.login1";
const POLKIT: &str = "org.freedesktop.PolicyKit1";

/// A row of systemd's `ListUnits`: name, description, load state, active state, sub state, followed unit, path, job id, kind, path.
type Row = (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

pub(super) struct Systemd {
    /// Another bus than the system's, in tests.
    address: Option<String>,
    sudo: Arc<Sudo>,
    connection: Mutex<Option<Connection>>,
}

/// A remote object with an interface.
struct Target {
    service: &'static str,
    path: &'static str,
    interface: &'static str,
}

const SYSTEMD_MANAGER: Target = Target { service: SYSTEMD, path: SYSTEMD_PATH, interface: MANAGER };
const LOGIND_MANAGER: Target = Target { service: LOGIND, path: "/org/freedesktop/login1", interface: "org.freedesktop.login1.Manager" };
const AUTHORITY: Target =
    Target { service: POLKIT, path: "/org/freedesktop/PolicyKit1/Authority", interface: "org.freedesktop.PolicyKit1.Authority" };

/// A call that did not succeed.
struct Fault {
    error: ProviderError,
    /// The service is not on the bus.
    is_absent: bool,
}

impl From<Fault> for ProviderError {
    fn from(fault: Fault) -> Self {
        fault.error
    }
}

impl Systemd {
    pub(super) fn new(address: Option<String>, sudo: Arc<Sudo>) -> Self {
        Self { address, sudo, connection: Mutex::new(None) }
    }

    /// The connection to the bus, made anew after it was lost.
    async fn bus(&self) -> Result<Connection, ProviderError> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = kept.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        *kept = None;
        let builder = self.address.as_deref().map_or_else(Builder::system, Builder::address);
        let lost = |reason: String| ProviderError::Lost(format!("The system bus cannot be reached: {reason}"));
        let connection = timeout(CONNECT_LIMIT, builder.method_timeout(CALL_LIMIT).build())
            .await
            .map_err(|_| lost("no answer".to_owned()))?
            .map_err(|error| lost(error.to_string()))?;
        *kept = Some(connection.clone());
        Ok(connection)
    }

    async fn call(&self, target: &Target, method: &str, body: &(impl serde::Serialize + DynamicType)) -> Result<Message, Fault> {
        let bus = self.bus().await.map_err(|error| Fault { error, is_absent: false })?;
        bus.call_method(Some(target.service), target.path, Some(target.interface), method, body).await.map_err(|error| fault(&bus, &error))
    }

    /// The services that systemd has loaded, with the paths of their objects.
    async fn services(&self) -> Result<(States, HashMap<String, String>), ProviderError> {
        let answer = self.call(&SYSTEMD_MANAGER, "ListUnits", &()).await?;
        let rows: Vec<Row> = answer.body().deserialize().map_err(|error| ProviderError::Failed(error.to_string()))?;
        let mut states = States::new();
        let mut paths = HashMap::new();
        for (unit, _, load_state, active_state, sub_state, _, path, ..) in rows {
            let Some(name) = unit.strip_suffix(".service").filter(|name| is_name(name)) else { continue };
            if load_state != "not-found" && states.len() < MAX_SERVICES {
                states.insert(name.to_owned(), UnitState { active_state, sub_state });
                paths.insert(path.as_str().to_owned(), name.to_owned());
            }
        }
        Ok((states, paths))
    }

    async fn watch(&self, tell: &(dyn Fn(News) + Send + Sync)) -> Result<Infallible, ProviderError> {
        let bus = self.bus().await?;
        let lost = |error: zbus::Error| ProviderError::Lost(error.to_string());
        let rule = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender(SYSTEMD)
            .interface(PROPERTIES)
            .member("PropertiesChanged")
            .path_namespace("/org/freedesktop/systemd1/unit")
            .build()
            .map_err(lost)?;
        let mut changes = MessageStream::for_match_rule(rule, &bus, None).await.map_err(lost)?;
        // systemd tells nobody who has not asked for it.
        self.call(&SYSTEMD_MANAGER, "Subscribe", &()).await?;
        let (mut states, paths) = self.services().await?;
        tell(News::All(states.clone()));
        while let Some(change) = changes.next().await {
            let change = change.map_err(lost)?;
            let header = change.header();
            let Some(name) = header.path().and_then(|path| paths.get(path.as_str())) else { continue };
            let Some(state) = states.get_mut(name) else { continue };
            if apply(&change, state) {
                tell(News::One(name.clone(), state.clone()));
            }
        }
        Err(ProviderError::Lost("The system bus ended the connection".to_owned()))
    }

    async fn virtualization(&self) -> Virtualization {
        let properties = Target { interface: PROPERTIES, ..SYSTEMD_MANAGER };
        let name = match self.call(&properties, "Get", &(MANAGER, "Virtualization")).await {
            Ok(answer) => answer.body().deserialize::<OwnedVariant>().ok().and_then(|value| text(&value)),
            Err(fault) => {
                tracing::debug!(error = %fault.error, "systemd does not tell how the machine is virtualised");
                None
            }
        };
        match name {
            Some(name) => Virtualization::named(&name),
            None => Virtualization::detected().await,
        }
    }

    async fn missing_rights(&self, shutdown: ShutdownAction) -> Vec<String> {
        if rustix::process::geteuid().is_root() {
            return Vec::new();
        }
        let off = match shutdown {
            ShutdownAction::Poweroff => "power-off",
            ShutdownAction::Halt => "halt",
        };
        let login = |action: &str| [format!("{LOGIND}.{action}"), format!("{LOGIND}.{action}-multiple-sessions")];
        let actions = std::iter::once(format!("{SYSTEMD}.manage-units")).chain(login(off)).chain(login("reboot"));
        let mut missing = Vec::new();
        for action in actions {
            match self.may(&action).await {
                Ok(true) => {}
                Ok(false) => missing.push(format!("The server has no right to {action}: allow it in the rules of PolicyKit")),
                Err(fault) => {
                    tracing::info!(error = %fault.error, "the rights of the server cannot be checked");
                    break;
                }
            }
        }
        missing
    }

    async fn may(&self, action: &str) -> Result<bool, Fault> {
        let undecodable = |error: zbus::Error| Fault { error: ProviderError::Failed(error.to_string()), is_absent: false };
        let start = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| start_time(&stat)).unwrap_or(0);
        let subject = HashMap::from([("pid", zbus::Variant::from(std::process::id())), ("start-time", zbus::Variant::from(start))]);
        let body = (("unix-process", subject), action, HashMap::<&str, &str>::new(), 0u32, "");
        let answer = self.call(&AUTHORITY, "CheckAuthorization", &body).await?;
        let ((is_authorized, _, _),): ((bool, bool, HashMap<String, String>),) = answer.body().deserialize().map_err(undecodable)?;
        Ok(is_authorized)
    }
}

/// Start of a process in ticks since the start of the machine: the 22nd field, counted behind the name, which may hold anything.
fn start_time(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Takes the states out of a notice of changed properties; true when it has one.
fn apply(change: &Message, state: &mut UnitState) -> bool {
    let body = change.body();
    let Ok((interface, changed, _)) = body.deserialize::<(String, HashMap<String, OwnedVariant>, Vec<String>)>() else { return false };
    if interface != UNIT {
        return false;
    }
    let before = state.clone();
    let set = |name: &str, field: &mut String| {
        if let Some(value) = changed.get(name).and_then(text) {
            *field = value;
        }
    };
    set("ActiveState", &mut state.active_state);
    set("SubState", &mut state.sub_state);
    *state != before
}

fn text(value: &OwnedVariant) -> Option<String> {
    value.downcast_ref::<String>().ok()
}

fn fault(bus: &Connection, error: &zbus::Error) -> Fault {
    use zbus::fdo::Error as Standard;
    let is_absent =
        matches!(error, zbus::Error::FDO(known) if matches!(**known, Standard::ServiceUnknown(_) | Standard::NameHasNoOwner(_)));
    let is_answer = matches!(error, zbus::Error::FDO(_) | zbus::Error::MethodError(..));
    let text = match error {
        zbus::Error::MethodError(_, Some(text), _) => text.clone(),
        other => other.to_string(),
    };
    let error = if is_answer && !is_absent && !bus.is_closed() { ProviderError::Failed(text) } else { ProviderError::Lost(text) };
    Fault { error, is_absent }
}

impl Provider for Systemd {
    fn name(&self) -> &'static str {
        "systemd_dbus"
    }

    fn watch<'a>(&'a self, tell: &'a (dyn Fn(News) + Send + Sync)) -> Boxed<'a, ProviderError> {
        Box::pin(async move {
            let Err(error) = self.watch(tell).await;
            error
        })
    }

    fn act<'a>(&'a self, action: Action, service: &'a str) -> Boxed<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            let method = match action {
                Action::Start => "StartUnit",
                Action::Stop => "StopUnit",
                Action::Restart => "RestartUnit",
            };
            let unit = format!("{service}.service");
            self.call(&SYSTEMD_MANAGER, method, &(unit.as_str(), "replace")).await?;
            Ok(())
        })
    }

    fn power(&self, action: PowerAction) -> Boxed<'_, Result<(), ProviderError>> {
        Box::pin(async move {
            let method = match action {
                PowerAction::Reboot => "Reboot",
                PowerAction::Shutdown(ShutdownAction::Poweroff) => "PowerOff",
                PowerAction::Shutdown(ShutdownAction::Halt) => "Halt",
            };
            // Nobody is asked for a password: there is nobody at the machine.
            match self.call(&LOGIND_MANAGER, method, &(false,)).await {
                Ok(_) => Ok(()),
                Err(fault) if fault.is_absent => cli::power(&self.sudo, action).await,
                Err(fault) => Err(fault.error),
            }
        })
    }

    fn virtualization(&self) -> Boxed<'_, Virtualization> {
        Box::pin(self.virtualization())
    }

    fn missing_rights(&self, shutdown: ShutdownAction) -> Boxed<'_, Vec<String>> {
        Box::pin(self.missing_rights(shutdown))
    }
}

#[cfg(test)]
mod tests;
