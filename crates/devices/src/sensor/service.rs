//! The handle: all sensors.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use indexmap::IndexMap;
use outbound::mqtt::{Mqtt, Qos};
use parking_lot::Mutex;
use protocol::sensor::{SensorStatus, SensorUpdate, SensorValues};
use protocol::{ApiError, Event};
use rpc::{Connection, Connections};
use runtime::Supervisor;

use super::inbox::{Added, Inbox, Letter};
use super::listener;
use super::options::Configured;
use super::ports::{HistoryFields, Initial, Report};
use super::reading::ReadingTemplate;
use super::series::{Measurements, Series};
use crate::script::Scripts;

/// Messages that are read in one go before others have their turn.
const AT_ONCE: usize = 32;

/// Time after which no further message is read on a thread for computing before other sensors have their turn.
const PORTION: Duration = Duration::from_secs(1);

/// A sensor.
pub(super) struct Sensor {
    pub(super) configured: Configured,
    /// Renders templates that take their time.
    pub(super) scripts: Arc<Scripts>,
    state: Mutex<State>,
    inbox: Mutex<Inbox>,
    /// Held by whoever reads messages: they are read in their order.
    turn: Mutex<()>,
    is_read_slowly: AtomicBool,
    /// Parameters and where their numbers go.
    reports: OnceLock<Vec<(String, Report)>>,
}

struct State {
    series: Series,
    error: Option<String>,
    /// Connections to the broker that have ended.
    epoch: u64,
}

/// See [`Sensor::slow_reader`].
pub(super) struct SlowReader(Arc<Sensor>);

impl SlowReader {
    /// Reads a portion of what waits, until it is to `end`. Blocks.
    pub(super) fn read(self, end: impl Fn() -> bool) -> Left {
        let sensor = &self.0;
        let Some(_turn) = sensor.turn.try_lock() else { return Left::Nothing };
        let until = Instant::now() + PORTION;
        for _ in 0..AT_ONCE {
            if end() {
                return Left::Nothing;
            }
            if Instant::now() >= until {
                return Left::Some;
            }
            let Some(letter) = sensor.next() else { return Left::Nothing };
            sensor.take(sensor.template().read(&letter.payload), letter.epoch);
        }
        Left::Some
    }
}

impl Drop for SlowReader {
    fn drop(&mut self) {
        self.0.is_read_slowly.store(false, Ordering::Release);
    }
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
    fn new(configured: Configured, scripts: Arc<Scripts>) -> Arc<Self> {
        let series = Series::new(configured.options.sensor_store_size as usize);
        let state = Mutex::new(State { series, error: None, epoch: 0 });
        Arc::new(Self {
            configured,
            scripts,
            state,
            inbox: Mutex::default(),
            turn: Mutex::default(),
            is_read_slowly: AtomicBool::new(false),
            reports: OnceLock::new(),
        })
    }

    /// Takes a message.
    pub(super) fn add(&self, payload: Bytes) -> Added {
        let epoch = self.state.lock().epoch;
        self.inbox.lock().add(Letter { payload, epoch })
    }

    /// Messages that wait.
    pub(super) fn waiting(&self) -> usize {
        self.inbox.lock().len()
    }

    /// Reads what waits, as far as that takes no time.
    pub(super) fn read_quickly(&self) -> Left {
        let Some(_turn) = self.turn.try_lock() else { return Left::Nothing };
        for _ in 0..AT_ONCE {
            let Some(letter) = self.next() else { return Left::Nothing };
            match self.template().read_quickly(&letter.payload) {
                Some(outcome) => self.take(outcome, letter.epoch),
                None => {
                    self.inbox.lock().put_back(letter);
                    return Left::Slow;
                }
            }
        }
        Left::Some
    }

    /// The right to read messages that take time; none while somebody has it.
    pub(super) fn slow_reader(self: &Arc<Self>) -> Option<SlowReader> {
        (!self.is_read_slowly.swap(true, Ordering::AcqRel)).then(|| SlowReader(self.clone()))
    }

    fn next(&self) -> Option<Letter> {
        self.inbox.lock().take()
    }

    /// What reads its messages.
    fn template(&self) -> ReadingTemplate<'_> {
        ReadingTemplate {
            template: &self.configured.options.state_response_template,
            context: &self.configured.context,
            scripts: &self.scripts,
        }
    }

    /// It cannot be read.
    pub(super) fn fail(&self, error: &str) {
        let before = self.state.lock().error.replace(error.to_owned());
        if before.as_deref() != Some(error) {
            tracing::warn!(sensor = self.configured.id, error, "a sensor cannot be read");
        }
    }

    /// Takes what a message of this connection to the broker said, or why it said nothing.
    fn take(&self, outcome: Result<SensorValues, String>, epoch: u64) {
        let numbers = match outcome {
            Ok(numbers) => numbers,
            Err(error) => return self.fail(&error),
        };
        let reports = self.reports.get().into_iter().flatten();
        let reported: Vec<_> = reports.filter_map(|(parameter, report)| Some((report, numbers.get(parameter)?.clone()))).collect();
        {
            let mut state = self.state.lock();
            state.error = None;
            // What is known after the end of the connection is not what holds then.
            if state.epoch == epoch {
                state.series.take(numbers);
            }
        }
        // Without the lock: the history asks for initial numbers while it holds one of its own.
        reported.into_iter().for_each(|(report, number)| report(number));
    }

    /// The broker is gone.
    pub(super) fn lose(&self) {
        let mut state = self.state.lock();
        state.series.lose();
        state.epoch += 1;
    }

    /// Its present status: what waits is read first, as far as that takes no time.
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
    pub fn new(
        configured: Vec<Configured>,
        connections: &Arc<Connections>,
        history: &dyn HistoryFields,
        scripts: &Arc<Scripts>,
    ) -> Arc<Self> {
        let made = |configured: Configured| (configured.id.clone(), Sensor::new(configured, scripts.clone()));
        let sensors: IndexMap<_, _> = configured.into_iter().map(made).collect();
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
        let changed: Vec<_> = self.sensors.iter().filter(|(_, sensor)| sensor.state.lock().series.tick()).collect();
        if changed.is_empty() || self.connections.count_where(Connection::is_authorised) == 0 {
            return;
        }
        let values = |(id, sensor): (&String, &Arc<Sensor>)| (id.clone(), sensor.state.lock().series.values().clone());
        let update: SensorUpdate = changed.into_iter().map(values).collect();
        self.connections.emit(&Event::SensorUpdate(update));
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
    if !sensor.configured.fields.is_empty() {
        let weak = Arc::downgrade(sensor);
        // What was said before a job begins or ends counts before it.
        history.before_boundaries(Arc::new(move || {
            if let Some(sensor) = weak.upgrade() {
                sensor.read_quickly();
            }
        }));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use config::Secrets;
    use serde_json::json;

    const SLOW: &str = "{% for n in range(20000) %}{% endfor %}";

    fn sensor(template: &str) -> Arc<Sensor> {
        let text = format!("[sensor s]\ntype: mqtt\nstate_topic: a\nstate_response_template: {template}\n");
        let (mut configured, problems) = crate::reading::options(&text, |reader| Configured::read(reader, &Secrets::default()));
        assert_eq!(problems, [""; 0]);
        Sensor::new(configured.remove(0), Scripts::new(runtime::StopToken::new()))
    }

    fn add(sensor: &Sensor, payloads: &[&str]) {
        payloads.iter().for_each(|payload| assert_eq!(sensor.add(Bytes::copy_from_slice(payload.as_bytes())), Added::Waits));
    }

    #[tokio::test]
    async fn whoever_asks_gets_what_waits() {
        let sensor = sensor("{set_result('n', payload)}");
        add(&sensor, &["1", "2"]);
        assert_eq!(sensor.status(false).values, *json!({"n": 2.0}).as_object().unwrap());
        assert_eq!(sensor.waiting(), 0);
        add(&sensor, &["no number"]);
        assert!(sensor.status(false).error.unwrap().contains("expected a number"));
    }

    #[tokio::test]
    async fn what_takes_time_is_read_in_portions_by_one_thread() {
        let sensor = sensor(&format!("{SLOW}{{set_result('n', payload)}}"));
        add(&sensor, &["1", "2"]);
        assert_eq!((sensor.read_quickly(), sensor.status(false).values.len()), (Left::Slow, 0));
        let reader = sensor.slow_reader().unwrap();
        assert!(sensor.slow_reader().is_none());
        assert_eq!(reader.read(|| true), Left::Nothing, "the server stops");
        assert_eq!(sensor.waiting(), 2);
        for n in 0..AT_ONCE {
            sensor.add(Bytes::from(n.to_string()));
        }
        assert_eq!(sensor.slow_reader().unwrap().read(|| false), Left::Some);
        assert_eq!(sensor.slow_reader().unwrap().read(|| false), Left::Nothing);
        assert_eq!(sensor.state.lock().series.number("n"), Some(json!(31.0)), "in their order");
    }

    #[tokio::test]
    async fn what_is_read_after_the_end_of_a_connection_does_not_hold() {
        let sensor = sensor(&format!("{SLOW}{{set_result('n', payload)}}"));
        add(&sensor, &["1"]);
        sensor.lose();
        sensor.slow_reader().unwrap().read(|| false);
        assert!(sensor.status(false).values.is_empty() && sensor.waiting() == 0);
        add(&sensor, &["2"]);
        sensor.slow_reader().unwrap().read(|| false);
        assert_eq!(sensor.status(false).values["n"], json!(2.0));
    }
}
