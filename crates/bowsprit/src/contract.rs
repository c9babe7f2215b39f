//! The contract without a running server: `bowsprit contract`.

use std::sync::Arc;

use access::AuditLog;
use devices::gpio::Gpio;
use devices::power::Power;
use devices::script::Scripts;
use fwhost::FwHost;
use integrations::{Agents, Announcements, MqttService, Webcams, webcams};
use machine::{Machine, Roots};
use outbound::mqtt::{Mqtt, MqttOptions, Qos};
use printer::Printer;
use rpc::{Connections, Operations};
use runtime::StopToken;
use server::{Administration, Database, DatabaseParts, Parts, Warnings};
use store::{Namespaces, Store};
use tokio_util::task::TaskTracker;

use crate::build::{self, Components};
use crate::data_folder::DataFolder;
use crate::instruments::{InstrumentParts, Instruments};
use crate::jobs::Jobs;
use crate::machine_board::MachineBoard;
use crate::print_control::PrinterControl;
use crate::settings::Settings;

/// The operations of a server with these settings that is never started.
///
/// # Errors
/// With a sentence.
pub fn operations_of(data: &DataFolder, settings: &Settings) -> Result<Operations, String> {
    let connections = Arc::new(Connections::default());
    let host = FwHost::new(build::fwhost_options(settings));
    let printer = Printer::new(host.clone(), &connections);
    let control = PrinterControl::new(printer.clone());
    let store = Store::in_memory(build::SCHEMAS).map_err(|error| error.to_string())?;
    let files = build::open_files(data, settings, &store, &connections, &control).map_err(|error| error.0)?;
    let parts = Parts {
        components: Arc::default(),
        failed_components: Arc::default(),
        directories: Box::new(Vec::new),
        roll_over: Arc::new(|| Box::pin(async { Ok(()) })),
        roll_over_firmware: Arc::new(|| Box::pin(async { Ok(()) })),
        restart: Box::new(|| {}),
        authenticate: Box::new(|_, _| Err(protocol::ApiError::unauthorized())),
        config: settings.report.clone(),
    };
    let jobs = Arc::new(Jobs::new(&host, &store, &connections, &files, &control, &settings.job_queue));
    let client = outbound::Client::new("");
    let announcements =
        Announcements::new(build::announcement_settings(data, settings), store.clone(), connections.clone(), client.clone());
    let machine = Machine::new(machine::Parts {
        connections: connections.clone(),
        roots: Roots::default(),
        data: data.path().to_owned(),
        options: settings.machine.clone(),
        host: host.clone(),
        restart: Box::new(|| {}),
        board: Arc::new(MachineBoard(announcements.clone())),
        warn: Arc::new(|_, _| {}),
    });
    let namespaces = Namespaces::new(store.clone());
    let accounts = build::open_accounts(settings, &store, &connections);
    let agents = Agents::new(connections.clone(), Arc::new(host.clone()));
    let database = Database::new(
        store.clone(),
        DatabaseParts {
            backups: data.database_backups(),
            options: settings.database.clone(),
            debug: true,
            secret_tables: access::SECRET_TABLES,
            printing: Arc::new(host.clone()),
            restart: Box::new(|| {}),
            warnings: Warnings::default(),
        },
    );
    let gpio = Gpio::default();
    let made_of = InstrumentParts {
        host: &host,
        connections: &connections,
        client: &client,
        history: &jobs.history,
        mqtt: None,
        gpio: &gpio,
        scripts: &Scripts::new(StopToken::new()),
        warn: Arc::new(|_, _| {}),
    };
    let instruments = Arc::new(Instruments::new(&settings.instruments, made_of).complete());
    let power = Power::new(Vec::new(), &build::power_parts(&host, &connections, &client, None, &gpio, &Scripts::new(StopToken::new())));
    let parts_of_webcams = webcams::Parts {
        namespaces,
        connections: connections.clone(),
        client,
        places: settings.web.places(),
        tasks: TaskTracker::new(),
        stop: StopToken::new(),
    };
    let webcams = Webcams::new(Vec::new(), parts_of_webcams);
    let administration = Administration::new(host.clone(), connections, Warnings::default(), parts);
    let audit = AuditLog::new(store);
    let (broker, _) = Mqtt::new(MqttOptions::to("", 0));
    let mqtt = Some(MqttService::new(broker, "", Qos::default()));
    let slicer_api = Some(build::slicer_api(settings, &host, &files, &control));
    let components = Components {
        slicer_api,
        administration,
        printer,
        database,
        files,
        jobs,
        machine,
        agents,
        webcams,
        power: Some(power),
        mqtt,
        audit,
        accounts,
        announcements,
        instruments,
    };
    components.operations()
}
