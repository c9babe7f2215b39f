//! LED strips, sensors and buttons, wired to the rest.

use std::sync::Arc;

use devices::button::{self, Buttons};
use devices::gpio::Gpio;
use devices::led::LedStrips;
use devices::script::Scripts;
use devices::sensor::{Boundary, HistoryFields, Initial, Report, Sensors};
use devices::settings::InstrumentSettings;
use fwhost::FwHost;
use integrations::MqttService;
use jobs::{Field, History, Strategy};
use outbound::Client;
use protocol::sensor::SensorHistoryField;
use rpc::{Connections, Registry};
use runtime::Supervisor;

/// What they are made of.
pub struct InstrumentParts<'a> {
    /// For macros.
    pub host: &'a FwHost,
    /// Who is told.
    pub connections: &'a Arc<Connections>,
    /// For strips in the network.
    pub client: &'a Client,
    /// For fields of sensors.
    pub history: &'a Arc<History>,
    /// Where sensors listen; none when no broker is configured.
    pub mqtt: Option<Arc<MqttService>>,
    /// Where lines of buttons come from.
    pub gpio: &'a Gpio,
    /// Renders templates of buttons.
    pub scripts: &'a Arc<Scripts>,
    /// Told of buttons that cannot be used.
    pub warn: button::Warn,
}

/// All of them.
pub struct Instruments {
    strips: Arc<LedStrips>,
    sensors: Arc<Sensors>,
    buttons: Buttons,
    mqtt: Option<Arc<MqttService>>,
    /// Operations are declared also when nothing is configured: for the contract.
    is_complete: bool,
    /// What cannot be used, and why.
    pub warnings: Vec<String>,
}

impl Instruments {
    /// Builds them; nothing runs yet.
    pub fn new(settings: &InstrumentSettings, parts: InstrumentParts<'_>) -> Self {
        let strips = LedStrips::new(settings.led.clone(), parts.host.clone(), parts.connections, parts.client);
        let (sensors, lost) = match parts.mqtt {
            Some(_) => (settings.sensors.as_slice(), &[][..]),
            None => (&[][..], settings.sensors.as_slice()),
        };
        let warnings =
            lost.iter().map(|sensor| format!("[sensor {}] needs a section [mqtt] without faults; it is left out.", sensor.id)).collect();
        let sensors = Sensors::new(sensors.to_vec(), parts.connections, &Fields(parts.history), parts.scripts);
        let buttons = Buttons::new(
            settings.buttons.clone(),
            button::Parts {
                gpio: parts.gpio.clone(),
                scripts: parts.scripts.clone(),
                connections: parts.connections.clone(),
                warn: parts.warn,
            },
        );
        Self { strips, sensors, buttons, mqtt: parts.mqtt, is_complete: false, warnings }
    }

    /// With the operations of everything that could be configured.
    pub fn complete(self) -> Self {
        Self { is_complete: true, ..self }
    }

    /// Names of those that are configured, as clients look them up.
    pub fn components(&self) -> Vec<&'static str> {
        let strips = (!self.strips.is_empty()).then_some(["led", "wled"]);
        let sensors = (!self.sensors.is_empty()).then_some("sensor");
        let buttons = (!self.buttons.is_empty()).then_some("button");
        strips.into_iter().flatten().chain(sensors).chain(buttons).collect()
    }

    /// Declares the operations of those that are configured.
    pub fn register(&self, registry: &mut Registry) {
        if self.is_complete || !self.strips.is_empty() {
            self.strips.register(registry);
        }
        if self.is_complete || !self.sensors.is_empty() {
            self.sensors.register(registry);
        }
    }

    /// Lets them work.
    pub fn start(&self, supervisor: &Supervisor) {
        self.strips.start(supervisor);
        self.buttons.start(supervisor);
        if let Some(mqtt) = &self.mqtt {
            self.sensors.start(supervisor, &mqtt.client, mqtt.default_qos);
        }
    }

    /// Lets go of everything that would keep the server's parts alive.
    pub fn close(&self) {
        self.strips.close();
    }
}

/// The history, as sensors see it.
struct Fields<'h>(&'h Arc<History>);

impl HistoryFields for Fields<'_> {
    fn register(&self, field: &SensorHistoryField, initial: Option<Initial>) -> Result<Report, String> {
        let strategy = Strategy::from_wire(field.strategy).ok_or_else(|| format!("unknown strategy {}", field.strategy))?;
        let handle = self.0.auxiliary.register(Field {
            description: field.description.clone(),
            units: field.units.clone(),
            exclude_paused: field.exclude_paused,
            report_total: field.report_total,
            report_maximum: field.report_maximum,
            precision: field.precision,
            initial,
            ..Field::new(field.provider.clone(), field.field.clone(), strategy)
        })?;
        Ok(Arc::new(move |value| handle.report(value)))
    }

    fn before_boundaries(&self, call: Boundary) {
        self.0.auxiliary.before_boundaries(call);
    }
}
