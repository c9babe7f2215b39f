//! What clients may do with services and power, whoever does it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use protocol::error::ApiResult;
use protocol::{ApiError, Event};
use rpc::Connections;
use runtime::StopToken;
use tokio::sync::{OnceCell, watch};
use tokio::time::{sleep, timeout};

use super::allowed::{bare, is_name};
use super::cli::Systemctl;
use super::dbus::Systemd;
use super::provider::{Action, News, Nobody, PowerAction, Provider, States};
use super::supervisor::Supervisord;
use super::{Allowed, MachineOptions, ProviderKind};
use crate::Roots;
use crate::sudo::Sudo;
use crate::system::virtualization::Virtualization;
use crate::system::{DEFAULT_CORE, KnownServices};

/// Pause before the manager is looked for again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// Time that a question for services waits for the first look at them.
const FIRST_LOOK: Duration = Duration::from_secs(2);

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
    virtualization: OnceCell<Virtualization>,
    restart_self: RestartSelf,
}

impl Services {
    /// With the provider of the options. The second value is a warning for the owner.
    pub(crate) fn new(
        options: MachineOptions,
        data: &Path,
        roots: Roots,
        connections: Arc<Connections>,
        sudo: &Arc<Sudo>,
        restart_self: RestartSelf,
    ) -> (Self, Option<String>) {
        let provider: Arc<dyn Provider> = match options.provider {
            ProviderKind::SystemdDbus => Arc::new(Systemd::new(None, sudo.clone())),
            ProviderKind::SystemdCli => Arc::new(Systemctl::new(sudo.clone())),
            ProviderKind::SupervisordCli => Arc::new(Supervisord::new(&options.supervisord_config_path, sudo.clone())),
            ProviderKind::None => Arc::new(Nobody),
        };
        let (allowed, warning) = Allowed::load(data);
        (Self::with(provider, options, allowed, roots, connections, restart_self), warning)
    }

    fn with(
        provider: Arc<dyn Provider>,
        options: MachineOptions,
        allowed: Allowed,
        roots: Roots,
        connections: Arc<Connections>,
        restart_self: RestartSelf,
    ) -> Self {
        Self {
            provider,
            options,
            allowed,
            connections,
            roots,
            states: Mutex::default(),
            has_looked: watch::Sender::new(false),
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
            self.has_looked.send_replace(true);
            if *seen.lock() {
                pause = FIRST_PAUSE;
                tracing::warn!(%error, "the services of the machine are lost");
            } else {
                tracing::debug!(%error, "the services of the machine are not known");
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

    /// Remembers what changed, and tells it.
    fn take(&self, news: News) {
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
                self.connections.emit(&Event::ServiceStateChanged(States::from([(name, state)])));
            }
        }
    }

    /// What is known of the services.
    pub(crate) async fn known(&self) -> KnownServices {
        self.first_look().await;
        let states = self.states.lock().clone();
        KnownServices { provider: self.provider.name(), available: states.keys().cloned().collect(), states }
    }

    async fn first_look(&self) {
        if self.options.provider != ProviderKind::None {
            let mut looked = self.has_looked.subscribe();
            let _ = timeout(FIRST_LOOK, looked.wait_for(|looked| *looked)).await;
        }
    }

    /// Starts, stops or restarts a service. `own`: the service that this process belongs to.
    pub(crate) async fn act(self: &Arc<Self>, action: Action, service: &str, own: Option<&str>) -> ApiResult<()> {
        let name = bare(service);
        if !is_name(name) {
            return Err(ApiError::argument("Invalid value for 'service': expected the name of a service"));
        }
        self.first_look().await;
        let is_installed = self.states.lock().contains_key(name);
        let told = self.provider.own_service();
        let own = told.as_deref().or(own);
        // Clients know a server without a service by the usual name.
        let is_own = own.map_or(name == DEFAULT_CORE && !is_installed, |own| own == name);
        if is_own {
            if action != Action::Restart {
                return Err(ApiError::bad_request(format!("Service '{name}' is this server, which can only be restarted")));
            }
            self.restart_own(name.to_owned());
            return Ok(());
        }
        if !is_installed {
            let reason = if self.allowed.has(name) { "is not installed" } else { "is not in the list of allowed services" };
            return Err(ApiError::bad_request(format!("Service '{name}' {reason}")));
        }
        tracing::info!(service = name, ?action, "a client asks for a service");
        Ok(self.provider.act(action, name).await?)
    }

    /// Why this service may not be started and stopped by other than its owner's direct wish.
    pub(crate) fn refuses_to_bind(&self, service: &str) -> Option<String> {
        let name = bare(service);
        if !is_name(name) {
            Some("this is no name of a service".to_owned())
        } else if name == DEFAULT_CORE || name == OWN_NAME {
            Some("it is this server".to_owned())
        } else {
            (!self.allowed.has(name)).then(|| "it is not in the list of allowed services".to_owned())
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
mod tests {
    use super::*;
    use crate::roots::tests::tree;
    use crate::services::ShutdownAction;
    use crate::services::provider::{Boxed, ProviderError};
    use protocol::machine::UnitState;
    use rpc::{ConnectionKind, Identity};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Fake {
        calls: Mutex<Vec<String>>,
        fails: Mutex<Option<ProviderError>>,
    }

    impl Provider for Fake {
        fn name(&self) -> &'static str {
            "fake"
        }
        fn watch<'a>(&'a self, _: &'a (dyn Fn(News) + Send + Sync)) -> Boxed<'a, ProviderError> {
            Box::pin(std::future::pending())
        }
        fn act<'a>(&'a self, action: Action, service: &'a str) -> Boxed<'a, Result<(), ProviderError>> {
            self.calls.lock().push(format!("{action:?} {service}"));
            Box::pin(async { self.fails.lock().clone().map_or(Ok(()), Err) })
        }
        fn power(&self, action: PowerAction) -> Boxed<'_, Result<(), ProviderError>> {
            self.calls.lock().push(action.verb().to_owned());
            Box::pin(async { Ok(()) })
        }
        fn virtualization(&self) -> Boxed<'_, Virtualization> {
            Box::pin(async { Virtualization::named("") })
        }
        fn missing_rights(&self, _: ShutdownAction) -> Boxed<'_, Vec<String>> {
            Box::pin(async { Vec::new() })
        }
    }

    fn state(active: &str) -> UnitState {
        UnitState { active_state: active.into(), sub_state: "x".into() }
    }

    fn states(names: &[&str]) -> News {
        News::All(names.iter().map(|name| ((*name).to_owned(), state("active"))).collect())
    }

    struct Bench {
        services: Arc<Services>,
        fake: Arc<Fake>,
        restarts: Arc<AtomicUsize>,
        connections: Arc<Connections>,
    }

    fn bench(files: &[(&str, &str)]) -> Bench {
        let fake = Arc::new(Fake::default());
        let restarts = Arc::new(AtomicUsize::new(0));
        let count = restarts.clone();
        let connections: Arc<Connections> = Arc::default();
        let restart = Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let options = MachineOptions { shutdown_action: ShutdownAction::Halt, ..MachineOptions::default() };
        let (_keep, roots) = tree(files);
        let services = Arc::new(Services::with(fake.clone(), options, Allowed::default(), roots, connections.clone(), restart));
        // The tree is read once, while it is there.
        if let Some(container) = Virtualization::container(&services.roots) {
            services.virtualization.set(container).unwrap();
        }
        Bench { services, fake, restarts, connections }
    }

    #[tokio::test]
    async fn only_installed_and_allowed_services_are_touched() {
        let Bench { services, fake, .. } = bench(&[]);
        services.take(states(&["klipper", "sshd"]));
        services.act(Action::Restart, "klipper.service", None).await.unwrap();
        for (name, text) in [
            ("sshd", "Service 'sshd' is not in the list"),
            ("klipper-2", "Service 'klipper-2' is not installed"),
            ("--now", "Invalid value for 'service'"),
        ] {
            let error = services.act(Action::Stop, name, None).await.unwrap_err();
            assert!(error.kind.http_status() == 400 && error.message.starts_with(text), "{error}");
        }
        assert_eq!(*fake.calls.lock(), ["Restart klipper"]);
        for (fault, status) in [(ProviderError::Lost("x".into()), 503), (ProviderError::Failed("x".into()), 500)] {
            *fake.fails.lock() = Some(fault);
            assert_eq!(services.act(Action::Stop, "klipper", None).await.unwrap_err().kind.http_status(), status);
        }
        assert_eq!(services.known().await.available, ["klipper"]);
    }

    #[tokio::test]
    async fn the_server_itself_is_restarted_even_without_a_manager() {
        let Bench { services, restarts, fake, .. } = bench(&[]);
        services.take(states(&[]));
        assert!(services.act(Action::Stop, "moonraker", Some("moonraker")).await.is_err());
        let refused = ["moonraker", "bowsprit.service", "sshd", "-x"].map(|name| services.refuses_to_bind(name).is_some());
        assert_eq!((refused, services.refuses_to_bind("klipper.service")), ([true; 4], None));
        services.act(Action::Restart, "moonraker.service", None).await.unwrap();
        while restarts.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        assert!(fake.calls.lock().is_empty());
    }

    #[tokio::test]
    async fn containers_are_not_shut_down() {
        let Bench { services, fake, .. } = bench(&[("/proc/1/cgroup", "0::/docker/1\n")]);
        assert_eq!(services.power(PowerAction::Reboot).await.unwrap_err().kind.http_status(), 400);
        let Bench { services: machine, fake: other, .. } = bench(&[("/proc/1/sched", "systemd (1)\n")]);
        machine.power(machine.shutdown_action()).await.unwrap();
        assert_eq!((fake.calls.lock().len(), other.calls.lock().as_slice()), (0, &["halt".to_owned()][..]));
    }

    #[tokio::test]
    async fn only_changes_are_told() {
        let Bench { services, connections, .. } = bench(&[]);
        let local = connections.register(ConnectionKind::Unix, Identity::Local, None);
        services.take(states(&["klipper"]));
        services.take(states(&["klipper"]));
        services.take(News::One("klipper".into(), state("failed")));
        services.take(News::One("sshd".into(), state("failed")));
        services.take(News::One("klipper".into(), state("failed")));
        let mut out = Vec::new();
        local.connection.outbox.take(&mut out, usize::MAX);
        assert_eq!(out.len(), 1);
    }
}
