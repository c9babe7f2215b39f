//! The build order: one function that reads from top to bottom. Nothing here waits for anything outside the process, and no component that
//! fails keeps the port from answering.

mod components;
mod listen;
mod parts;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use access::{Accounts, AuditLog, Gate};
use devices::gpio::Gpio;
use devices::power::Power;
use devices::script::Scripts;
use files::{Files, Log, Transfer};
use fwhost::FwHost;
use integrations::discovery::Discovery;
use integrations::{Agents, Announcements, Webcams, webcams};
use machine::{Machine, Roots};
use parking_lot::Mutex;
use printer::Printer;
use protocol::version::CORE_VERSION;
use rpc::{CloseReason, Connections, Dispatcher};
use runtime::{Lifecycle, LogHandle, Supervisor};
use server::{Administration, Database, DatabaseParts, Parts, Warnings};
use store::{Namespaces, Schema, Store};
use transport::{BridgeTarget, Gateway};

use self::components::component_names;
pub use self::components::{COMPONENTS, Components};
use self::listen::listen;
pub use self::parts::{announcement_settings, fwhost_options, open_accounts, open_files, power_parts, slicer_api};
use self::parts::{configured_webcams, connected, gate_settings, identity, notice, open_power, open_store};
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
use crate::settings::Settings;

/// Time that everything under way gets to end at a stop or restart.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// Tables of the components.
pub const SCHEMAS: &[Schema] = &[files::SCHEMA, access::SCHEMA, access::audit::SCHEMA, jobs::SCHEMA];

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
        failed_components.push("mqtt".to_owned());
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
        let lifecycle = environment.lifecycle.clone();
        Machine::new(machine::Parts {
            connections: connections.clone(),
            roots: Roots::default(),
            data: data.path().to_owned(),
            options: settings.machine.clone(),
            host: host.clone(),
            restart: Box::new(move || lifecycle.request_restart()),
            board: Arc::new(MachineBoard(announcements.clone())),
            warn: notice(&warnings),
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
    let mut parts = power_parts(&host, &connections, &client, mqtt_service.as_deref(), &gpio, &scripts);
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
    let site = settings.web.site(data.path()).unwrap_or_else(|fault| {
        warnings.add(fault);
        None
    });
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
        site,
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
    crate::log_header::set(&environment.log, &machine, &supervisor);
    instruments.start(&supervisor);
    let link = host.clone();
    supervisor.spawn("firmware host link", move |stop| {
        let link = link.clone();
        async move { link.run(stop).await }
    });
    Ok(Server { gateway, supervisor, host, files, audit, jobs, power, instruments, store })
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

/// What access does in the background.
fn keep_access(supervisor: &Supervisor, gate: &Gate, accounts: &Arc<Accounts>) {
    let accounts = accounts.clone();
    supervisor.spawn("use of sessions and keys", move |stop| accounts.clone().keep(stop));
    let names = gate.names().clone();
    if !names.is_empty() {
        supervisor.spawn("addresses of trusted clients", move |stop| names.clone().keep_resolved(stop));
    }
}
