//! The build order: one function that reads from top to bottom. Nothing here waits for anything outside the process, and no component that
//! fails keeps the port from answering.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use access::{Accounts, AuditLog, Directory, Gate, LdapDirectory};
use devices::button;
use devices::gpio::Gpio;
use devices::power::{self, Power};
use devices::script::Scripts;
use files::{Files, FilesSettings, Log, Transfer};
use fwhost::{FwHost, HostEvent};
use integrations::discovery::Discovery;
use integrations::{Agents, Announcements, MqttService, SlicerApi, Webcams, announcements, webcams};
use machine::{Machine, Roots};
use parking_lot::Mutex;
use printer::Printer;
use protocol::version::CORE_VERSION;
use protocol::webcam::Webcam;
use rpc::{CloseReason, Connections, Dispatcher, Operations, Registry, UserSource};
use runtime::{Lifecycle, LogHandle, Supervisor};
use server::{Administration, Database, DatabaseParts, Parts, Warnings};
use store::{Namespaces, Schema, Store};
use tokio::net::TcpListener;
use tokio::sync::watch;
use transport::{BridgeTarget, Gateway};
use uuid::Uuid;

use crate::data_folder::DataFolder;
use crate::device_services::DeviceServices;
use crate::discovery::discovery;
use crate::host_paths::HostPaths;
use crate::instruments::{InstrumentParts, Instruments};
use crate::jobs::Jobs;
use crate::machine_board::MachineBoard;
use crate::mqtt::MqttParts;
use crate::print_control::PrinterControl;
use crate::secure::Secure;
use crate::settings::{self, DefaultSource, Settings};
use crate::slicer_prints::SlicerPrints;

/// Time that everything under way gets to end at a stop or restart.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// Tables of the components.
pub const SCHEMAS: &[Schema] = &[files::SCHEMA, access::SCHEMA, access::audit::SCHEMA, jobs::SCHEMA];

/// Folders besides the home folder that links in the roots have always been allowed to lead to.
const MEDIA: &[&str] = &["/media", "/mnt"];

/// Port when the configured one cannot be had for want of rights.
const DEFAULT_PORT: u16 = 7125;

/// Components that are always there, under every name that clients look up (wire/4-clients.md section 5).
pub const COMPONENTS: &[&str] = &[
    "application",
    "websockets",
    "jsonrpc",
    "internal_transport",
    "secrets",
    "fwhost_connection",
    "klippy_connection",
    "fwhost_apis",
    "klippy_apis",
    "database",
    "file_manager",
    "data_store",
    "job_state",
    "machine",
    "proc_stats",
    "shell_command",
    "dbus_manager",
    "history",
    "job_queue",
    "extensions",
    "http_client",
    "webcam",
    "authorization",
    "announcements",
];

/// What a build needs from outside.
pub struct Environment {
    /// The data folder.
    pub data: DataFolder,
    /// Configuration file named on the command line.
    pub config: Option<PathBuf>,
    /// Unix socket named on the command line.
    pub socket: Option<PathBuf>,
    /// Our own log.
    pub log: LogHandle,
    /// Restarts and stops.
    pub lifecycle: Lifecycle,
    /// Debug features are enabled.
    pub debug: bool,
    /// What went wrong before the build.
    pub warnings: Vec<String>,
    /// Where the last build of this process listened: a restart into an address that cannot be had falls back to it.
    pub last_address: Mutex<Option<(String, u16)>>,
}

/// A server that is built; its tasks run.
pub struct Server {
    /// Shared by all transports.
    pub gateway: Arc<Gateway>,
    supervisor: Supervisor,
    host: FwHost,
    files: Arc<Files>,
    audit: Arc<AuditLog>,
    jobs: Arc<Jobs>,
    instruments: Arc<Instruments>,
    power: Arc<Power>,
    store: Store,
}

/// Why a server cannot be built at all.
#[derive(Debug)]
pub struct BuildError(pub String);

/// Builds a server and starts its tasks.
///
/// # Errors
/// Only when no port can be opened, or when names of operations collide (which a test excludes).
pub async fn build(environment: &Environment) -> Result<Server, BuildError> {
    let data = &environment.data;
    let warnings = Warnings::default();
    let mut failed_components = Vec::new();
    environment.warnings.iter().for_each(|warning| warnings.add(warning));

    let mut settings = Settings::load(data, environment.config.as_deref());
    settings.warnings.iter().for_each(|warning| warnings.add(warning));
    failed_components.extend(settings.failed_components.iter().map(ToString::to_string));

    let supervisor = Supervisor::new();
    let connections = Arc::new(Connections::default());
    connections.set_default_form(settings.default_form());

    let store = open_store(data, &warnings, &mut failed_components)?;
    let (gate, gate_warnings) = Gate::new(&gate_settings(&settings));
    gate_warnings.iter().for_each(|warning| warnings.add(warning));
    let accounts = open_accounts(&settings, &store, &connections);
    accounts.load().await.iter().for_each(|warning| warnings.add(warning));
    keep_access(&supervisor, &gate, &accounts);

    let host = FwHost::new(fwhost_options(&settings));
    let printer = Printer::new(host.clone(), &connections);
    let control = PrinterControl::new(printer.clone());

    let files = open_files(data, &settings, &store, &connections, &control)?;
    files.warnings().iter().for_each(|warning| warnings.add(warning));
    if let Some(log) = environment.log.file() {
        files.set_log_path(Log::Core, log.to_owned());
    }
    let paths = HostPaths {
        host: host.clone(),
        files: files.clone(),
        warnings: warnings.clone(),
        data: data.path().to_owned(),
        check_config: settings.file_manager.check_firmware_config_path,
    };
    paths.watch(supervisor.tracker());
    let jobs = Arc::new(Jobs::new(&host, &store, &connections, &files, &control, &settings.job_queue));

    let client = outbound::Client::new(&format!("Bowsprit/{CORE_VERSION}"));
    let mqtt = MqttParts::new(&settings, &host).unwrap_or_else(|fault| {
        warnings.add(fault);
        None
    });
    let mqtt_service = mqtt.as_ref().map(|mqtt| mqtt.service.clone());
    let (gpio, scripts) = (Gpio::default(), Scripts::new(supervisor.stop_token().clone()));
    let made_of = InstrumentParts {
        host: &host,
        connections: &connections,
        client: &client,
        history: &jobs.history,
        mqtt: mqtt_service.clone(),
        gpio: &gpio,
        scripts: &scripts,
        warn: notice(&warnings),
    };
    let instruments = Arc::new(Instruments::new(&settings.instruments, made_of));
    instruments.warnings.iter().for_each(|warning| warnings.add(warning));

    let announcements = Announcements::new(announcement_settings(data, &settings), store.clone(), connections.clone(), client.clone());
    announcements.load().await;
    let machine = {
        let (lifecycle, warnings) = (environment.lifecycle.clone(), warnings.clone());
        Machine::new(machine::Parts {
            connections: connections.clone(),
            roots: Roots::default(),
            data: data.path().to_owned(),
            options: settings.machine.clone(),
            host: host.clone(),
            restart: Box::new(move || lifecycle.request_restart()),
            board: Arc::new(MachineBoard(announcements.clone())),
            warn: Arc::new(move |warning| warnings.add(warning)),
        })
    };
    let administration = Administration::new(
        host.clone(),
        connections.clone(),
        warnings.clone(),
        Parts {
            components: component_names(&settings, &instruments),
            failed_components: failed_components.into(),
            directories: {
                let files = files.clone();
                Box::new(move || files.registered_directories())
            },
            roll_over: {
                let log = environment.log.clone();
                Arc::new(move || {
                    let log = log.clone();
                    Box::pin(async move { log.roll_over().await })
                })
            },
            roll_over_firmware: {
                let machine = machine.clone();
                Arc::new(move || {
                    let machine = machine.clone();
                    Box::pin(async move { machine.roll_over_firmware_log().await.map_err(|error| error.message) })
                })
            },
            restart: {
                let lifecycle = environment.lifecycle.clone();
                Box::new(move || lifecycle.request_restart())
            },
            authenticate: {
                let accounts = accounts.clone();
                Box::new(move |connection, shown| {
                    let credential = match shown {
                        server::Credential::AccessToken(token) => access::Credential::AccessToken(token),
                        server::Credential::ApiKey(key) => access::Credential::ApiKey(key),
                    };
                    accounts.authenticate_connection(connection, credential).map(drop)
                })
            },
            config: settings.report.clone(),
        },
    );
    let agents = Agents::new(connections.clone(), Arc::new(host.clone()));
    let database = Database::new(
        store.clone(),
        DatabaseParts {
            backups: data.database_backups(),
            options: settings.database.clone(),
            debug: environment.debug,
            secret_tables: access::SECRET_TABLES,
            printing: Arc::new(host.clone()),
            restart: {
                let lifecycle = environment.lifecycle.clone();
                Box::new(move || lifecycle.request_restart())
            },
            warnings: warnings.clone(),
        },
    );
    let namespaces = Namespaces::new(store.clone());
    let parts = webcams::Parts {
        namespaces: namespaces.clone(),
        connections: connections.clone(),
        client: client.clone(),
        places: settings.web.places(),
        tasks: supervisor.tracker().clone(),
        stop: supervisor.stop_token().clone(),
    };
    let installation = identity(data, &warnings);
    let webcams = Webcams::new(configured_webcams(&settings, installation), parts);
    webcams.load().await;
    let audit = AuditLog::new(store.clone());
    let noting = audit.clone();
    supervisor.spawn("audit log", move |stop| {
        let audit = noting.clone();
        async move { audit.run(stop).await }
    });
    let mut parts = power_parts(&host, &connections, &client, mqtt_service.as_deref(), &gpio);
    parts.services = Some(Arc::new(DeviceServices(machine.clone())));
    let has_power = !settings.power.is_empty();
    let power = open_power(&mut settings, &parts, &warnings);
    let slicer_api = settings.slicer_api.enabled.then(|| slicer_api(&settings, &host, &files, &control));
    let components = Components {
        slicer_api,
        power: has_power.then(|| power.clone()),
        mqtt: mqtt_service,
        administration,
        printer,
        database: database.clone(),
        files: files.clone(),
        agents,
        webcams,
        audit: audit.clone(),
        jobs: jobs.clone(),
        accounts: accounts.clone(),
        announcements,
        machine: machine.clone(),
        instruments: instruments.clone(),
    };
    let operations = components.operations().map_err(BuildError)?;

    let route_prefix = settings.server.route_prefix.as_deref().unwrap_or("").trim_matches('/').to_owned();
    let secure = Secure::open(data, &settings.server, &warnings);
    let secure_port = secure.as_ref().map(|secure| secure.port);
    let discovery = discovery(&settings, installation, &machine, secure_port, &route_prefix);
    if settings.server.redirect_to_https && secure.is_none() {
        warnings.add("[server] redirect_to_https: there is no HTTPS to send anybody to");
    }
    let gateway = Arc::new(Gateway {
        dispatcher: Arc::new(Dispatcher { operations: Arc::new(operations), tasks: supervisor.tracker().clone() }),
        connections,
        gate,
        accounts,
        files: Arc::new(Transfer(files.clone())),
        cameras: components.webcams.clone(),
        bridge: BridgeTarget::new(settings.server.fwhost_uds_address.path().to_owned(), connected(&host)),
        settings: transport::Settings {
            route_prefix: route_prefix.clone(),
            max_websockets: settings.server.max_websocket_connections as usize,
            https_instead: secure_port.filter(|_| settings.server.redirect_to_https),
        },
        stop: supervisor.stop_token().clone(),
        page: settings.web.page(&route_prefix),
        site: settings.web.site(),
        description: discovery.as_ref().and_then(Discovery::description),
    });
    scripts.connect(&gateway.dispatcher);
    let port = listen(&gateway, &supervisor, &settings, environment, &warnings)?;
    client.set_own_ports([port].into_iter().chain(secure_port).collect());
    if let Some(discovery) = discovery {
        discovery.start(port, &supervisor);
    }
    if let Some(secure) = secure {
        secure.start(&gateway, &supervisor);
    }
    for warning in warnings.texts() {
        tracing::warn!("{warning}");
    }
    supervisor.spawn("database backups", move |stop| database.clone().make_backups(stop));
    jobs.start(&supervisor);
    power.start(&supervisor);
    let queued = Arc::downgrade(&power);
    jobs.queue.on_added(move || queued.upgrade().iter().for_each(|power| power.job_queued()));
    let board = components.announcements.clone();
    supervisor.spawn("announcements", move |stop| {
        let board = board.clone();
        async move { board.run(stop).await }
    });
    if let Some(mqtt) = mqtt {
        mqtt.start(&gateway, &supervisor);
    }
    machine.start(&supervisor);
    instruments.start(&supervisor);
    let link = host.clone();
    supervisor.spawn("firmware host link", move |stop| {
        let link = link.clone();
        async move { link.run(stop).await }
    });
    Ok(Server { gateway, supervisor, host, files, audit, jobs, power, instruments, store })
}

/// Everything that has operations.
pub struct Components {
    pub administration: Arc<Administration>,
    pub printer: Arc<Printer>,
    pub database: Arc<Database>,
    pub files: Arc<Files>,
    pub jobs: Arc<Jobs>,
    pub machine: Arc<Machine>,
    pub agents: Arc<Agents>,
    pub webcams: Arc<Webcams>,
    /// When it is configured.
    /// Absent without devices, as other groups that nobody configured.
    pub power: Option<Arc<Power>>,
    pub mqtt: Option<Arc<MqttService>>,
    /// Unless it is switched off.
    pub slicer_api: Option<Arc<SlicerApi>>,
    pub audit: Arc<AuditLog>,
    pub accounts: Arc<Accounts>,
    pub announcements: Arc<Announcements>,
    pub instruments: Arc<Instruments>,
}

impl Components {
    /// All operations; also what the contract is written from.
    ///
    /// # Errors
    /// When two declarations have the same name.
    pub fn operations(&self) -> Result<Operations, String> {
        let mut registry = Registry::default();
        self.administration.register(&mut registry);
        self.printer.register(&mut registry);
        self.database.register(&mut registry);
        self.files.register(&mut registry);
        self.jobs.register(&mut registry);
        self.machine.register(&mut registry);
        self.agents.register(&mut registry);
        self.webcams.register(&mut registry);
        if let Some(power) = &self.power {
            power.register(&mut registry);
        }
        if let Some(mqtt) = &self.mqtt {
            mqtt.register(&mut registry);
        }
        if let Some(slicer_api) = &self.slicer_api {
            slicer_api.register(&mut registry);
        }
        self.audit.register(&mut registry);
        self.accounts.register(&mut registry);
        registry.set_audit(self.audit.clone());
        self.announcements.register(&mut registry);
        self.instruments.register(&mut registry);
        registry.build()
    }
}

impl Server {
    /// Ends everything in order: clients are told, the link goes, the database is closed last.
    pub async fn stop(self) {
        self.gateway.connections.close_all(CloseReason::Shutdown);
        let report = self.supervisor.stop(STOP_DEADLINE).await;
        if !report.is_clean() {
            tracing::warn!(aborted = ?report.aborted, left = report.left_running, "not everything ended in time");
        }
        self.host.forget_listeners();
        self.jobs.close();
        self.instruments.close();
        self.power.close();
        self.files.close();
        self.audit.flush().await;
        self.store.close().await;
    }
}

/// What is there, under every name that clients look up.
fn component_names(settings: &Settings, instruments: &Instruments) -> Arc<[String]> {
    let configured = [
        settings.mqtt.as_ref().map(|_| "mqtt"),
        settings.ldap.as_ref().map(|_| "ldap"),
        settings.discovery.as_ref().map(|_| "zeroconf"),
        settings.power.first().map(|_| "power"),
    ];
    let slicer_api = settings.slicer_api.enabled.then_some(["slicer_api", "octoprint_compat"]);
    let configured = configured.into_iter().flatten().chain(slicer_api.into_iter().flatten());
    COMPONENTS.iter().copied().chain(configured).chain(instruments.components()).map(ToOwned::to_owned).collect()
}

fn open_store(data: &DataFolder, warnings: &Warnings, failed: &mut Vec<String>) -> Result<Store, BuildError> {
    let path = data.database_file();
    match Store::open_or_restore(&path, &data.database_backups(), SCHEMAS) {
        Ok(opened) => {
            opened.warnings.iter().for_each(|warning| warnings.add(warning));
            Ok(opened.store)
        }
        Err(error) => {
            warnings.add(format!("The database {} cannot be used: {error}. Nothing is kept until this is solved.", path.display()));
            failed.push("database".to_owned());
            Store::in_memory(SCHEMAS).map_err(|error| BuildError(format!("no database can be opened: {error}")))
        }
    }
}

pub fn open_files(
    data: &DataFolder,
    settings: &Settings,
    store: &Store,
    connections: &Arc<Connections>,
    control: &Arc<PrinterControl>,
) -> Result<Arc<Files>, BuildError> {
    let files = FilesSettings {
        max_upload_size: u64::from(settings.server.max_upload_size) * 1024 * 1024,
        link_targets: link_targets(settings),
        options: settings.file_manager.clone(),
        ..FilesSettings::new(data.path())
    };
    Files::open(files, store.clone(), connections.clone(), control.clone()).map_err(|error| BuildError(error.to_string()))
}

pub fn announcement_settings(data: &DataFolder, settings: &Settings) -> announcements::Settings {
    announcements::Settings { options: settings.announcements.clone(), folder: data.path().join("development/announcements") }
}

fn identity(data: &DataFolder, warnings: &Warnings) -> Uuid {
    data.identity().unwrap_or_else(|error| {
        warnings.add(format!("The identity of the installation cannot be kept, so ids of configured webcams change: {error}"));
        Uuid::new_v4()
    })
}

fn configured_webcams(settings: &Settings, installation: Uuid) -> Vec<Webcam> {
    settings.webcams.iter().map(|(name, webcam)| webcam.entry(name, installation)).collect()
}

/// Where links in the roots may lead. Installations that come from the incumbent have such links, to sticks and shared folders.
fn link_targets(settings: &Settings) -> Vec<PathBuf> {
    let usual = || {
        // A home folder that is the whole file system, as some containers have it, would open everything.
        let home = settings::home().filter(|home| home.is_absolute() && home.parent().is_some());
        home.into_iter().chain(MEDIA.iter().map(PathBuf::from)).collect()
    };
    match &settings.file_manager.link_targets {
        Some(targets) => targets.clone(),
        None if settings.is_upstream => usual(),
        None => Vec::new(),
    }
}

fn gate_settings(settings: &Settings) -> access::Settings {
    let options = &settings.authorization;
    access::Settings {
        trusted_clients: options.trusted_clients.clone(),
        cors_domains: options.cors_domains.clone(),
        trusted_proxies: options.trusted_proxies.clone().unwrap_or_default(),
        loopback_is_proxy: options.trusted_proxies.is_none() && settings.is_upstream,
    }
}

/// The API that slicers know.
pub fn slicer_api(settings: &Settings, host: &FwHost, files: &Arc<Files>, control: &Arc<PrinterControl>) -> Arc<SlicerApi> {
    let queues = settings.file_manager.queue_gcode_uploads;
    let prints = SlicerPrints { files: files.clone(), control: control.clone(), queues };
    SlicerApi::new(settings.slicer_api.clone(), host.clone(), Arc::new(prints))
}

/// Users and keys; nobody until they are loaded.
pub fn open_accounts(settings: &Settings, store: &Store, connections: &Arc<Connections>) -> Arc<Accounts> {
    let options = &settings.authorization;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let options = access::Options {
        enable_api_key: options.enable_api_key,
        login_timeout: options.login_timeout,
        max_login_attempts: options.max_login_attempts,
        force_logins: options.force_logins,
        users_may_be_lost: store.may_lack_records(),
        default_source: match options.default_source {
            DefaultSource::Core => UserSource::Core,
            DefaultSource::Ldap => UserSource::Ldap,
        },
        issuer: format!("http://{host}:{}", settings.server.port),
    };
    let directory = settings.ldap.as_ref().map(|options| Arc::new(LdapDirectory::new(options)) as Arc<dyn Directory>);
    Accounts::new(store, connections.clone(), options, directory)
}

/// What access does in the background.
fn keep_access(supervisor: &Supervisor, gate: &Gate, accounts: &Arc<Accounts>) {
    let accounts = accounts.clone();
    supervisor.spawn("use of sessions and keys", move |stop| accounts.clone().keep(stop));
    let names = gate.names().clone();
    if !names.is_empty() {
        supervisor.spawn("addresses of trusted clients", move |stop| names.clone().keep_resolved(stop));
    }
}

/// The power devices of the configuration.
fn open_power(settings: &mut Settings, parts: &power::Parts, warnings: &Warnings) -> Arc<Power> {
    let mut devices = std::mem::take(&mut settings.power);
    let services = parts.services.as_deref();
    devices.iter_mut().flat_map(|device| device.drop_unusable_services(services)).for_each(|warning| warnings.add(warning));
    Power::new(devices, parts)
}

/// Shows what is wrong with a part of the server for as long as it is.
fn notice(warnings: &Warnings) -> button::Warn {
    let warnings = warnings.clone();
    Arc::new(move |part, fault| match fault {
        Some(text) => warnings.set(part, text),
        None => warnings.clear(part),
    })
}

/// What power devices are made of, services of the machine aside.
pub fn power_parts(
    host: &FwHost,
    connections: &Arc<Connections>,
    client: &outbound::Client,
    mqtt: Option<&MqttService>,
    gpio: &Gpio,
) -> power::Parts {
    power::Parts {
        host: host.clone(),
        connections: connections.clone(),
        client: client.clone(),
        mqtt: mqtt.map(|mqtt| (mqtt.client.clone(), mqtt.default_qos)),
        gpio: gpio.clone(),
        services: None,
    }
}

pub fn fwhost_options(settings: &Settings) -> fwhost::Options {
    fwhost::Options {
        temperature_store_size: settings.data_store.temperature_store_size as usize,
        gcode_store_size: settings.data_store.gcode_store_size as usize,
        ..fwhost::Options::new(settings.server.fwhost_uds_address.path(), "Bowsprit", CORE_VERSION)
    }
}

/// Whether the firmware host is connected, for bridges.
fn connected(host: &FwHost) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    host.on_event(move |event| match event {
        HostEvent::Connected => drop(sender.send_replace(true)),
        HostEvent::Disconnected => drop(sender.send_replace(false)),
        _ => {}
    });
    receiver
}

/// Opens port and socket; gives the port.
fn listen(
    gateway: &Arc<Gateway>,
    supervisor: &Supervisor,
    settings: &Settings,
    environment: &Environment,
    warnings: &Warnings,
) -> Result<u16, BuildError> {
    let listener = open_port(&settings.server.host, settings.server.port, environment, warnings)?;
    let path = environment.socket.clone().unwrap_or_else(|| environment.data.socket_file());
    match transport::socket::listen_unix(&path) {
        Ok(listener) => {
            if environment.socket.is_none()
                && let Err(warning) = environment.data.link_socket()
            {
                warnings.add(warning);
            }
            let gateway = gateway.clone();
            supervisor.spawn_once("unix socket", transport::socket::serve_unix(gateway, listener));
        }
        Err(error) => warnings.add(format!("The unix socket {} cannot be opened: {error}", path.display())),
    }
    let local = listener.local_addr().ok();
    let address = local.map(|address| address.to_string()).unwrap_or_default();
    tracing::info!(%address, socket = %path.display(), "ready for clients");
    supervisor.spawn_once("http", transport::http::serve(gateway.clone(), listener, None));
    Ok(local.map_or(settings.server.port, |address| address.port()))
}

/// Opens the configured port or, when it cannot be had, the next best one: nothing in a configuration keeps the server from answering.
fn open_port(host: &str, port: u16, environment: &Environment, warnings: &Warnings) -> Result<TcpListener, BuildError> {
    let mut last = environment.last_address.lock();
    let error = match transport::http::bind(host, port) {
        Ok(listener) => {
            *last = Some((host.to_owned(), port));
            return Ok(listener);
        }
        Err(error) => error,
    };
    let failed = format!("cannot listen on {host} port {port}: {error}");
    let next_best = match (&*last, error.kind()) {
        (Some((host, port)), _) => Some((host.clone(), *port)),
        // A port that needs rights that we do not have.
        (None, ErrorKind::PermissionDenied) if port != DEFAULT_PORT => Some((host.to_owned(), DEFAULT_PORT)),
        // A kernel without IPv6, or another fault of that family alone.
        (None, kind) if host == "all" && kind != ErrorKind::AddrInUse => Some(("0.0.0.0".to_owned(), port)),
        // An address that this machine does not have, or that is none.
        (None, ErrorKind::AddrNotAvailable | ErrorKind::InvalidInput) => Some(("127.0.0.1".to_owned(), port)),
        (None, _) => None,
    };
    let Some((host, port)) = next_best else { return Err(BuildError(failed)) };
    warnings.add(format!("[server] {failed}; listening on {host} port {port} instead"));
    transport::http::bind(&host, port).map_err(|error| BuildError(format!("{failed}; nor on {host} port {port}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds operations over a scratch data folder.
    pub(crate) fn scratch_operations() -> Operations {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::prepare(folder.path()).unwrap();
        let settings = Settings::load(&data, None);
        crate::contract::operations_of(&data, &settings).unwrap()
    }

    #[test]
    fn links_may_lead_home_only_with_the_configuration_of_the_incumbent() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::prepare(folder.path()).unwrap();
        let targets = |name: &str, text: &str| {
            let path = data.path().join("config").join(name);
            std::fs::write(&path, text).unwrap();
            let targets = link_targets(&Settings::load(&data, Some(&path)));
            std::fs::remove_file(path).unwrap();
            targets
        };
        assert!(targets("bowsprit.conf", "[server]\n").is_empty());
        let usual = targets("moonraker.conf", "[server]\n");
        assert!(usual.contains(&PathBuf::from("/media")) && usual.contains(&PathBuf::from("/mnt")) && !usual.contains(&PathBuf::from("/")));
        assert_eq!(targets("moonraker.conf", "[server]\n[file_manager]\nlink_targets:\n  /srv\n"), [PathBuf::from("/srv")]);
    }

    #[tokio::test]
    async fn methods_that_templates_in_the_documentation_call_exist() {
        let operations = scratch_operations();
        let mut seen = 0;
        for page in [include_str!("../../../docs/buttons.md"), include_str!("../../../docs/templates.md")] {
            for rest in page.split("call_method(\"").skip(1) {
                let method = rest.split('"').next().unwrap();
                assert!(operations.method(method).is_some(), "{method}");
                seen += 1;
            }
        }
        assert!(seen > 5);
    }

    #[tokio::test]
    async fn no_two_operations_share_a_name() {
        assert!(scratch_operations().all().len() > 25);
    }
}
