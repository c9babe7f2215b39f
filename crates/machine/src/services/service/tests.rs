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
    /// The warning that the owner sees.
    warning: Arc<Mutex<Option<String>>>,
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
    let warning: Arc<Mutex<Option<String>>> = Arc::default();
    let seen = warning.clone();
    let warn: Warn = Arc::new(move |_, text| *seen.lock() = text);
    let services = Arc::new(Services::with(fake.clone(), options, Allowed::default(), roots, connections.clone(), restart, warn));
    // The tree is read once, while it is there.
    if let Some(container) = Virtualization::container(&services.roots) {
        services.virtualization.set(container).unwrap();
    }
    Bench { services, fake, restarts, connections, warning }
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
    assert_eq!(services.known(Form::Upstream).await.available, ["klipper"]);
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

#[tokio::test]
async fn both_names_of_the_applications_are_known_and_each_caller_reads_its_own() {
    let Bench { services, fake, restarts, connections, .. } = bench(&[]);
    let local = connections.register(ConnectionKind::Unix, Identity::Local, None);
    services.take(states(&["klipper", "klipper-2", "bowsprit"]));
    for name in ["klipper", "firmware", "firmware.service", "firmware-2"] {
        services.act(Action::Restart, name, Some("bowsprit")).await.unwrap();
    }
    let asked = ["klipper", "klipper", "klipper", "klipper-2"].map(|name| format!("Restart {name}"));
    assert_eq!(*fake.calls.lock(), asked);
    let refused = services.act(Action::Stop, "core", Some("bowsprit")).await.unwrap_err();
    assert_eq!(refused.message, "Service 'core' is this server, which can only be restarted");
    services.act(Action::Restart, "core", Some("bowsprit")).await.unwrap();
    while fake.calls.lock().len() == asked.len() {
        tokio::task::yield_now().await;
    }
    assert_eq!((fake.calls.lock()[4].as_str(), restarts.load(Ordering::SeqCst)), ("Restart bowsprit", 0), "by its real name");
    assert_eq!(services.known(Form::Neutral).await.available, ["bowsprit", "firmware", "firmware-2"]);
    assert_eq!(services.known(Form::Upstream).await.available, ["bowsprit", "klipper", "klipper-2"]);
    assert_eq!((services.refuses_to_bind("firmware"), services.refuses_to_bind("core").is_some()), (None, true));
    services.take(News::One("klipper".into(), state("failed")));
    let mut out = Vec::new();
    local.connection.outbox.take(&mut out, usize::MAX);
    assert!(out.len() == 1 && format!("{out:?}").contains("firmware"), "{out:?}");
}

#[tokio::test]
async fn a_manager_out_of_reach_is_a_warning_for_as_long_as_it_is() {
    let Bench { services, warning, .. } = bench(&[]);
    let status = || async { services.act(Action::Start, "klipper", None).await.unwrap_err().kind.http_status() };
    services.lose(&ProviderError::Lost("no bus".into()));
    assert!(warning.lock().as_ref().unwrap().contains("no bus") && warning.lock().as_ref().unwrap().contains("`provider: none`"));
    assert_eq!(status().await, 503);
    assert_eq!(services.act(Action::Start, "sshd", None).await.unwrap_err().kind.http_status(), 400, "never allowed");
    services.lose(&ProviderError::Lost("another reason".into()));
    assert!(warning.lock().as_ref().unwrap().contains("another reason"), "the present one");
    services.take(states(&[]));
    assert_eq!(*warning.lock(), None);
    assert_eq!(status().await, 400);
}
