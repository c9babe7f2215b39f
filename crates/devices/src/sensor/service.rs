//! The handle: all sensors.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use indexmap::IndexMap;
use outbound::mqtt::{Mqtt, Qos};
use parking_lot::Mutex;
use protocol::sensor::{SensorStatus, SensorUpdate, SensorValues};
use protocol::{ApiError, Event};
use rpc::Connections;
use runtime::Supervisor;

use super::inbox::{Added, Inbox};
use super::listener;
use super::options::Configured;
use super::ports::{HistoryFields, Initial, Report};
use super::reading::ReadingTemplate;
use super::series::{Measurements, Series};

/// Messages that are read in one go before others have their turn.
const AT_ONCE: usize = 64;

/// A sensor.
pub(super) struct Sensor {
    pub(super) configured: Configured,
    state: Mutex<State>,
    inbox: Mutex<Inbox>,
    /// Held by whoever reads messages: they are read in their order.
    turn: Mutex<()>,
    /// Parameters and where their numbers go.
    reports: OnceLock<Vec<(String, Report)>>,
}

struct State {
    series: Series,
    error: Option<String>,
}

/// What is left after reading for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing, or somebody else is reading.
    Nothing,
    /// Further messages.
    Some,
    /// Messages that take time.
    Slow,
}

impl Sensor {
    fn new(configured: Configured) -> Arc<Self> {
        let series = Series::new(configured.options.sensor_store_size as usize);
        let state = Mutex::new(State { series, error: None });
        Arc::new(Self { configured, state, inbox: Mutex::default(), turn: Mutex::default(), reports: OnceLock::new() })
    }

    /// Takes a message.
    pub(super) fn add(&self, payload: Bytes) -> Added {
        self.inbox.lock().add(payload)
    }

    /// Reads what waits, as far as that takes no time.
    pub(super) fn read_quickly(&self) -> Left {
        let Some(_turn) = self.turn.try_lock() else { return Left::Nothing };
        for _ in 0..AT_ONCE {
            let Some(payload) = self.next() else { return Left::Nothing };
            match self.template().read_quickly(&payload) {
                Some(outcome) => self.take(outcome),
                None => {
                    self.inbox.lock().put_back(payload);
                    return Left::Slow;
                }
            }
        }
        Left::Some
    }

    /// Reads what waits, for as long as it takes.
    pub(super) fn read_slowly(&self) {
        let Some(_turn) = self.turn.try_lock() else { return };
        while let Some(payload) = self.next() {
            self.take(self.template().read(&payload));
        }
    }

    fn next(&self) -> Option<Bytes> {
        self.inbox.lock().take()
    }

    /// What reads its messages.
    fn template(&self) -> ReadingTemplate<'_> {
        ReadingTemplate { template: &self.configured.options.state_response_template, context: &self.configured.context }
    }

    /// Takes what a message said, or why it said nothing.
    fn take(&self, outcome: Result<SensorValues, String>) {
        let numbers = match outcome {
            Ok(numbers) => numbers,
            Err(error) => {
                let before = self.state.lock().error.replace(error.clone());
                if before.as_ref() != Some(&error) {
                    tracing::warn!(sensor = self.configured.id, error, "a message of a sensor cannot be used");
                }
                return;
            }
        };
        {
            let mut state = self.state.lock();
            state.error = None;
            state.series.take(numbers.clone());
        }
        // Without the lock: the history asks for initial numbers while it holds one of its own.
        for (parameter, report) in self.reports.get().into_iter().flatten() {
            if let Some(number) = numbers.get(parameter) {
                report(number.clone());
            }
        }
    }

    /// The broker is gone.
    pub(super) fn lose(&self) {
        self.state.lock().series.lose();
    }

    /// Its present status: what waits is read first.
    fn status(&self, extended: bool) -> SensorStatus {
        self.read_quickly();
        let (configured, state) = (&self.configured, self.state.lock());
        SensorStatus {
            id: configured.id.clone(),
            friendly_name: configured.friendly_name().to_owned(),
            kind: configured.options.r#type.as_str(),
            values: state.series.values().clone(),
            error: state.error.clone(),
            parameter_info: extended.then(|| configured.parameters.clone()),
            history_fields: extended.then(|| configured.fields.clone()),
        }
    }
}

/// All sensors.
pub struct Sensors {
    sensors: IndexMap<String, Arc<Sensor>>,
    connections: Arc<Connections>,
}

impl Sensors {
    /// The sensors of the configuration; [`Sensors::start`] lets them listen. What the history does not take is logged.
    #[must_use]
    pub fn new(configured: Vec<Configured>, connections: &Arc<Connections>, history: &dyn HistoryFields) -> Arc<Self> {
        let sensors: IndexMap<_, _> = configured.into_iter().map(|configured| (configured.id.clone(), Sensor::new(configured))).collect();
        for sensor in sensors.values() {
            let _ = sensor.reports.set(reports(sensor, history));
        }
        Arc::new(Self { sensors, connections: connections.clone() })
    }

    /// True without any sensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sensors.is_empty()
    }

    /// Lets them listen; `qos` counts where a sensor has none of its own.
    pub fn start(self: &Arc<Self>, supervisor: &Supervisor, mqtt: &Mqtt, qos: Qos) {
        if self.is_empty() {
            return;
        }
        let (sensors, mqtt) = (self.clone(), mqtt.clone());
        supervisor.spawn("sensors", move |stop| listener::run(sensors.clone(), mqtt.clone(), qos, stop));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Sensor>> {
        self.sensors.values()
    }

    /// Keeps the numbers as those of this second and tells what has changed.
    pub(super) fn tell(&self) {
        let changed = |(id, sensor): (&String, &Arc<Sensor>)| Some((id.clone(), sensor.state.lock().series.tick()?));
        let update: SensorUpdate = self.sensors.iter().filter_map(changed).collect();
        if !update.is_empty() {
            self.connections.emit(&Event::SensorUpdate(update));
        }
    }

    pub(super) fn list(&self, extended: bool) -> IndexMap<String, SensorStatus> {
        self.sensors.iter().map(|(id, sensor)| (id.clone(), sensor.status(extended))).collect()
    }

    pub(super) fn info(&self, id: &str, extended: bool) -> Result<SensorStatus, ApiError> {
        Ok(self.sensor(id)?.status(extended))
    }

    /// Of one sensor, or of all when the id is empty.
    pub(super) fn measurements(&self, id: &str) -> Result<BTreeMap<String, Measurements>, ApiError> {
        let of = |sensor: &Arc<Sensor>| (sensor.configured.id.clone(), sensor.state.lock().series.measurements());
        if id.is_empty() {
            return Ok(self.sensors.values().map(of).collect());
        }
        Ok([of(self.sensor(id)?)].into())
    }

    fn sensor(&self, id: &str) -> Result<&Arc<Sensor>, ApiError> {
        self.sensors.get(id).ok_or_else(|| ApiError::bad_request(format!("No valid sensor named {id:.100}")))
    }
}

fn reports(sensor: &Arc<Sensor>, history: &dyn HistoryFields) -> Vec<(String, Report)> {
    let mut reports = Vec::new();
    for field in &sensor.configured.fields {
        let (weak, parameter) = (Arc::downgrade(sensor), field.parameter.clone());
        let initial: Initial = Arc::new(move || weak.upgrade()?.state.lock().series.number(&parameter));
        match history.register(field, field.init_tracker.then_some(initial)) {
            Ok(report) => reports.push((field.parameter.clone(), report)),
            Err(error) => tracing::warn!(sensor = sensor.configured.id, field = field.field, error, "not in the history"),
        }
    }
    reports
}
