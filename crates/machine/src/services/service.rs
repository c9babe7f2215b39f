//! What clients may do with services and power, whoever does it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use protocol::error::ApiResult;
use protocol::vocabulary::Form;
use protocol::{ApiError, Event};
use rpc::Connections;
use runtime::StopToken;
use tokio::sync::{OnceCell, watch};
use tokio::time::{sleep, timeout};

use super::cli::Systemctl;
use super::dbus::Systemd;
use super::names::{bare, is_name, neutral, upstream};
use super::provider::{Action, News, Nobody, PowerAction, Provider, ProviderError, States};
use super::supervisor::Supervisord;
use super::{Allowed, MachineOptions, ProviderKind};
use crate::sudo::Sudo;
use crate::system::virtualization::Virtualization;
use crate::system::{DEFAULT_CORE, KnownServices};
use crate::{Roots, Warn};

/// Pause before the manager is looked for again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// Time that a question for services waits for the first look at them.
const FIRST_LOOK: Duration = Duration::from_secs(2);

/// Ids of the warnings that the manager is out of reach, and that the list of allowed services is.
const MANAGER: &str = "manager of services";
const ALLOWED: &str = "allowed services";

/// Our own service by its usual name.
const OWN_NAME: &str = "bowsprit";

/// Restarts this server within its process.
pub(crate) type RestartSelf = Box<dyn Fn() + Send + Sync>;

/// Services and power.
pub(crate) struct Services {
    provider: Arc<dyn Provider>,
    options: MachineOptions,
    allowed: Allowed,
    connections: Arc<Connections>,
    roots: Roots,
    states: Mutex<States>,
    has_looked: watch::Sender<bool>,
    /// Why the manager is out of reach, while it is.
    lost: Mutex<Option<ProviderError>>,
    warn: Warn,
    virtualization: OnceCell<Virtualization>,
    restart_self: RestartSelf,
}

impl Services {
    /// With the provider of the options.
    pub(crate) fn new(
        options: MachineOptions,
        data: &Path,
        roots: Roots,
        connections: Arc<Connections>,
        sudo: &Arc<Sudo>,
        restart_self: RestartSelf,
        warn: Warn,
    ) -> Self {
        let provider: Arc<dyn Provider> = match options.provider {
            ProviderKind::SystemdDbus => Arc::new(Systemd::new(None, sudo.clone())),
            ProviderKind::SystemdCli => Arc::new(Systemctl::new(sudo.clone())),
            ProviderKind::SupervisordCli => Arc::new(Supervisord::new(&options.supervisord_config_path, sudo.clone())),
            ProviderKind::None => Arc::new(Nobody),
        };
        let (allowed, warning) = Allowed::load(data);
        if warning.is_some() {
            warn(ALLOWED, warning);
        }
        Self::with(provider, options, allowed, roots, connections, restart_self, warn)
    }

    fn with(
        provider: Arc<dyn Provider>,
        options: MachineOptions,
        allowed: Allowed,
        roots: Roots,
        connections: Arc<Connections>,
        restart_self: RestartSelf,
        warn: Warn,
    ) -> Self {
        Self {
            provider,
            options,
            allowed,
            connections,
            roots,
            states: Mutex::default(),
            has_looked: watch::Sender::new(false),
            lost: Mutex::default(),
            warn,
            virtualization: OnceCell::new(),
            restart_self,
        }
    }

    /// Follows the services until the stop. A manager that goes away is looked for again, with growing pauses.
    pub(crate) async fn run(self: Arc<Self>, stop: StopToken) {
        let mut pause = FIRST_PAUSE;
        loop {
            let seen = Mutex::new(false);
            let tell = |news| {
                *seen.lock() = true;
                self.take(news);
            };
            let error = tokio::select! {
                () = stop.cancelled() => return,
                error = self.provider.watch(&tell) => error,
            };
            self.lose(&error);
            if *seen.lock() {
                pause = FIRST_PAUSE;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(pause) => pause = (pause * 2).min(LAST_PAUSE),
            }
        }
    }

    /// Rights that the server lacks, as sentences.
    pub(crate) async fn missing_rights(&self) -> Vec<String> {
        self.provider.missing_rights(self.options.shutdown_action).await
    }

    /// True when services cannot be managed without sudo.
    pub(crate) fn needs_sudo(&self) -> bool {
        self.provider.needs_sudo()
    }

    /// The manager is out of reach. The log says so once; the owner sees the present reason for as long as it is so.
    fn lose(&self, error: &ProviderError) {
        let before = self.lost.lock().replace(error.clone());
        self.has_looked.send_replace(true);
        if before.is_none() {
            tracing::warn!(%error, "the services of the machine are out of reach");
        }
        if before.as_ref() != Some(error) {
            let text = format!(
                "The services of this machine cannot be followed, started or stopped: {error}. \
                 Where nothing manages services, as in most containers, set `provider: none` in [machine]."
            );
            (self.warn)(MANAGER, Some(text));
        }
    }

    /// Remembers what changed, and tells it.
    fn take(&self, news: News) {
        if self.lost.lock().take().is_some() {
            tracing::info!("the services of the machine are there again");
            (self.warn)(MANAGER, None);
        }
        let is_first = !*self.has_looked.borrow();
        let mut changed = States::new();
        {
            let mut states = self.states.lock();
            match news {
                News::All(mut all) => {
                    all.retain(|name, _| self.allowed.has(name));
                    changed.extend(
                        all.iter()
                            .filter(|(name, state)| states.get(*name) != Some(state))
                            .map(|(name, state)| (name.clone(), state.clone())),
                    );
                    *states = all;
                }
                News::One(name, state) if self.allowed.has(&name) => {
                    if states.insert(name.clone(), state.clone()).as_ref() != Some(&state) {
                        changed.insert(name, state);
                    }
                }
                News::One(..) => {}
            }
        }
        self.has_looked.send_replace(true);
        if !is_first {
            for (name, state) in changed {
                self.connections.emit_in_form(|form| Event::ServiceStateChanged(States::from([(self.shown(&name, form), state.clone())])));
            }
        }
    }

    /// What is known of the services, for a caller who reads this form of their names.
    pub(crate) async fn known(&self, form: Form) -> KnownServices {
        self.first_look().await;
        let states = self.states.lock().clone();
        let states: States = states.into_iter().map(|(name, state)| (self.shown(&name, form), state)).collect();
        KnownServices { provider: self.provider.name(), available: states.keys().cloned().collect(), states }
    }

    /// The name of a service for a caller who reads this form. One that would be that of another service is no second name.
    pub(crate) fn shown(&self, name: &str, form: Form) -> String {
        match form {
            Form::Neutral => Some(neutral(name)).filter(|shown| !self.states.lock().contains_key(shown)).unwrap_or_else(|| name.to_owned()),
            Form::Upstream => name.to_owned(),
        }
    }

    /// The name by which the manager knows what a client names.
    fn unit(&self, name: &str) -> String {
        if self.states.lock().contains_key(name) { name.to_owned() } else { upstream(name) }
    }

    async fn first_look(&self) {
        if self.options.provider != ProviderKind::None {
            let mut looked = self.has_looked.subscribe();
            let _ = timeout(FIRST_LOOK, looked.wait_for(|looked| *looked)).await;
        }
    }

    /// Starts, stops or restarts a service. `own`: the service that this process belongs to.
    pub(crate) async fn act(self: &Arc<Self>, action: Action, service: &str, own: Option<&str>) -> ApiResult<()> {
        let asked = bare(service);
        if !is_name(asked) {
            return Err(ApiError::argument("Invalid value for 'service': expected the name of a service"));
        }
        self.first_look().await;
        let name = self.unit(asked);
        let is_installed = self.states.lock().contains_key(&name);
        let told = self.provider.own_service();
        let own = told.as_deref().or(own);
        // Clients know a server by the usual name, whatever its service is called, or without any.
        if own == Some(&*name) || (name == DEFAULT_CORE && !is_installed) {
            if action != Action::Restart {
                return Err(ApiError::bad_request(format!("Service '{asked}' is this server, which can only be restarted")));
            }
            self.restart_own(own.map_or(name, str::to_owned));
            return Ok(());
        }
        if !self.allowed.has(&name) {
            return Err(ApiError::bad_request(format!("Service '{asked}' is not in the list of allowed services")));
        }
        if !is_installed {
            let lost = self.lost.lock().clone();
            return Err(lost.map_or_else(|| ApiError::bad_request(format!("Service '{asked}' is not installed")), ApiError::from));
        }
        tracing::info!(service = name, ?action, "a client asks for a service");
        Ok(self.provider.act(action, &name).await?)
    }

    /// Why this service may not be started and stopped by other than its owner's direct wish.
    pub(crate) fn refuses_to_bind(&self, service: &str) -> Option<String> {
        let name = upstream(bare(service));
        if !is_name(&name) {
            Some("this is no name of a service".to_owned())
        } else if name == DEFAULT_CORE || name == OWN_NAME {
            Some("it is this server".to_owned())
        } else {
            (!self.allowed.has(&name)).then(|| "it is not in the list of allowed services".to_owned())
        }
    }

    /// True while a service runs or stops.
    pub(crate) fn is_running(&self, name: &str) -> bool {
        self.states.lock().get(name).is_some_and(|state| !["inactive", "failed"].contains(&state.active_state.as_str()))
    }

    /// After the answer: by the manager, or within the process where there is none.
    fn restart_own(self: &Arc<Self>, name: String) {
        let services = self.clone();
        tokio::spawn(async move {
            let is_managed = services.provider.can_restart_us() && services.states.lock().contains_key(&name);
            let result = if is_managed {
                services.provider.act(Action::Restart, &name).await.map_err(|error| error.to_string())
            } else {
                Err("not managed".to_owned())
            };
            if let Err(error) = result {
                tracing::info!(error, "restarting within the process");
                (services.restart_self)();
            }
        });
    }

    /// Switches the machine off or restarts it.
    pub(crate) async fn power(&self, action: PowerAction) -> ApiResult<()> {
        if self.options.provider == ProviderKind::None {
            return Err(ApiError::bad_request("[machine] provider is none, so the machine is not shut down or rebooted from here"));
        }
        if self.virtualization().await.is_container() {
            return Err(ApiError::bad_request("A container cannot be shut down or rebooted from within"));
        }
        tracing::warn!(?action, "the machine goes down");
        Ok(self.provider.power(action).await?)
    }

    /// The action of the options for shutting down.
    pub(crate) fn shutdown_action(&self) -> PowerAction {
        PowerAction::Shutdown(self.options.shutdown_action)
    }

    /// How the machine is virtualised.
    pub(crate) async fn virtualization(&self) -> Virtualization {
        let find = || async {
            match Virtualization::container(&self.roots) {
                Some(container) => container,
                None => self.provider.virtualization().await,
            }
        };
        self.virtualization.get_or_init(find).await.clone()
    }
}

#[cfg(test)]
mod tests;
