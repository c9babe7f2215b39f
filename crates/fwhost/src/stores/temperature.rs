//! Temperature history: one sample a second of every sensor and monitor (wire/1-core.md section 8.5).
//!
//! A series holds hundredths in four bytes each, which is exactly what is shown: values are rounded to two digits.

use std::collections::VecDeque;

use indexmap::IndexMap;
use protocol::status::Text;
use serde::ser::{Serialize, SerializeSeq, Serializer};

/// Sensors and monitors followed; a printer has some dozen.
const MAX_SENSORS: usize = 512;

/// Fields that have a series, in the order of [`SensorSeries`].
const FIELDS: [&str; 4] = ["temperature", "target", "power", "speed"];

/// The history of all sensors, in the order in which the firmware host lists them.
#[derive(Debug, Clone, Default, serde::Serialize)]
#[serde(transparent)]
pub struct TemperatureStore(pub IndexMap<Text, SensorSeries>);

/// The history of one sensor, oldest first, one sample a second; a field that the sensor does not report is absent.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct SensorSeries {
    /// Degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperatures: Option<Series>,
    /// Degrees Celsius; 0 is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Series>,
    /// 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub powers: Option<Series>,
    /// 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speeds: Option<Series>,
}

impl SensorSeries {
    fn slots(&mut self) -> [&mut Option<Series>; 4] {
        [&mut self.temperatures, &mut self.targets, &mut self.powers, &mut self.speeds]
    }
}

/// Samples with two decimal digits; a sample may be null.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series(VecDeque<i32>);

/// Stands for null; no temperature is minus twenty million degrees.
const NULL: i32 = i32::MIN;

impl Series {
    /// The samples, oldest first.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Option<f64>> {
        self.0.iter().map(|value| (*value != NULL).then(|| f64::from(*value) / 100.0))
    }

    fn push(&mut self, value: i32, size: usize) {
        while self.0.len() >= size.max(1) {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for value in self.values() {
            seq.serialize_element(&value)?;
        }
        seq.end()
    }
}

/// One value as JSON text to hundredths; what is no number counts as null.
fn hundredths(text: &str) -> i32 {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => {
            let scaled = (value * 100.0).round().clamp(f64::from(i32::MIN + 1), f64::from(i32::MAX));
            // In range because of the clamp.
            #[allow(clippy::cast_possible_truncation)]
            let scaled = scaled as i32;
            scaled
        }
        _ => NULL,
    }
}

/// The growing history.
#[derive(Debug)]
pub(crate) struct Recorder {
    size: usize,
    sensors: IndexMap<Text, SensorSeries>,
    monitors: Vec<Text>,
}

impl Recorder {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, sensors: IndexMap::new(), monitors: Vec::new() }
    }

    /// Follows these sensors and monitors from now on. `field` looks a field up in the cache: series exist for fields that are reported.
    /// Known series keep their history; sensors and fields that are gone are dropped.
    pub(crate) fn follow(&mut self, sensors: &[Text], monitors: Vec<Text>, field: impl Fn(&str, &str) -> Option<Text>) {
        let mut known = std::mem::take(&mut self.sensors);
        for name in sensors.iter().chain(&monitors).take(MAX_SENSORS) {
            let mut series = known.swap_remove(name).unwrap_or_default();
            for (slot, field_name) in series.slots().into_iter().zip(FIELDS) {
                *slot = field(name, field_name).map(|_| slot.take().unwrap_or_default());
            }
            self.sensors.insert(name.clone(), series);
        }
        self.monitors = monitors;
    }

    /// Appends one value to every series; the last one again when the cache has none (the host is away).
    pub(crate) fn sample(&mut self, field: impl Fn(&str, &str) -> Option<Text>) {
        for (name, series) in &mut self.sensors {
            for (slot, field_name) in series.slots().into_iter().zip(FIELDS) {
                let Some(slot) = slot else { continue };
                let value = match field(name, field_name) {
                    Some(text) => Some(hundredths(&text)),
                    None => slot.0.back().copied(),
                };
                if let Some(value) = value {
                    slot.push(value, self.size);
                }
            }
        }
    }

    pub(crate) fn snapshot(&self, include_monitors: bool) -> TemperatureStore {
        let wanted = |name: &Text| include_monitors || !self.monitors.contains(name);
        TemperatureStore(
            self.sensors.iter().filter(|(name, _)| wanted(name)).map(|(name, series)| (name.clone(), series.clone())).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<Text> {
        names.iter().map(|name| Text::from(*name)).collect()
    }

    fn host<'a>(values: &'a [(&'a str, &'a str, &'a str)]) -> impl Fn(&str, &str) -> Option<Text> + 'a {
        |object, field| values.iter().find(|(o, f, _)| *o == object && *f == field).map(|(_, _, value)| Text::from(*value))
    }

    fn json(recorder: &Recorder, monitors: bool) -> String {
        serde_json::to_string(&recorder.snapshot(monitors)).unwrap()
    }

    #[test]
    fn only_reported_fields_have_a_series() {
        let values = [("extruder", "temperature", "21.456"), ("extruder", "target", "0.0"), ("tmc x", "temperature", "null")];
        let mut recorder = Recorder::new(3);
        recorder.follow(&texts(&["extruder"]), texts(&["tmc x"]), host(&values));
        recorder.sample(host(&values));
        assert_eq!(json(&recorder, false), r#"{"extruder":{"temperatures":[21.46],"targets":[0.0]}}"#);
        assert_eq!(json(&recorder, true), r#"{"extruder":{"temperatures":[21.46],"targets":[0.0]},"tmc x":{"temperatures":[null]}}"#);
    }

    #[test]
    fn history_survives_a_restart_and_repeats_while_away() {
        let warm = [("bed", "temperature", "60"), ("bed", "power", "0.5"), ("old", "temperature", "1")];
        let mut recorder = Recorder::new(10);
        recorder.follow(&texts(&["old", "bed"]), vec![], host(&warm));
        recorder.sample(host(&warm));
        recorder.sample(host(&[]));
        let after = [("bed", "temperature", "59.999")];
        recorder.follow(&texts(&["bed"]), vec![], host(&after));
        recorder.sample(host(&after));
        assert_eq!(json(&recorder, true), r#"{"bed":{"temperatures":[60.0,60.0,60.0]}}"#);
    }

    #[test]
    fn rings_are_bounded_and_odd_values_do_no_harm() {
        let mut recorder = Recorder::new(2);
        recorder.follow(&texts(&["a"]), vec![], host(&[("a", "temperature", "1")]));
        for text in ["1", "\"x\"", "-5.005", "1e300"] {
            recorder.sample(host(&[("a", "temperature", text)]));
        }
        let store = recorder.snapshot(true);
        let values: Vec<_> = store.0["a"].temperatures.as_ref().unwrap().values().collect();
        assert_eq!(values, [Some(-5.0), Some(21_474_836.47)].map(|value| value.map(|v: f64| if v == -5.0 { -5.01 } else { v })));
    }

    #[test]
    fn a_sample_costs_four_bytes() {
        assert_eq!(size_of::<i32>(), 4);
        let mut series = Series::default();
        for value in 0..5000 {
            series.push(value, 1200);
        }
        assert!(series.0.capacity() <= 2400);
        assert_eq!(series.values().len(), 1200);
    }
}
