//! Temperature history: one sample a second of every sensor and monitor (wire/1-core.md section 8.5).
//!
//! A series holds hundredths in four bytes each, which is exactly what is shown: values are rounded to two digits.

use std::collections::VecDeque;

use indexmap::IndexMap;
use protocol::status::Text;

/// Sensors and monitors followed; a printer has some dozen.
const MAX_SENSORS: usize = 512;

/// Fields that have a series, and what the series is called.
const FIELDS: [(&str, &str); 4] = [("temperature", "temperatures"), ("target", "targets"), ("power", "powers"), ("speed", "speeds")];

/// The series of one sensor in the order of [`FIELDS`]; those of fields that it does not report are absent.
type SensorSeries = [Option<Series>; FIELDS.len()];

/// Samples in hundredths, oldest first, one a second; [`NULL`] where there is none.
#[derive(Debug, Clone, Default)]
struct Series(VecDeque<i32>);

/// Stands for null; no temperature is minus twenty million degrees.
const NULL: i32 = i32::MIN;

impl Series {
    fn push(&mut self, value: i32, size: usize) {
        while self.0.len() >= size.max(1) {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    fn write(&self, json: &mut Vec<u8>) {
        json.push(b'[');
        for value in &self.0 {
            write_hundredths(*value, json);
            json.push(b',');
        }
        close(json, b']');
    }
}

/// Ends a list or an object whose parts were each followed by a comma.
fn close(json: &mut Vec<u8>, bracket: u8) {
    json.pop_if(|last| *last == b',');
    json.push(bracket);
}

/// A page that starts asks for ten thousand of them: in this way they take a fraction of the time that a general writer of numbers needs.
fn write_hundredths(value: i32, json: &mut Vec<u8>) {
    if value == NULL {
        return json.extend_from_slice(b"null");
    }
    let (mut whole, hundredths) = (value.unsigned_abs() / 100, value.unsigned_abs() % 100);
    let digit = |number: u32| b'0' + (number % 10) as u8;
    // "-21474836.48"
    let mut text = [0; 12];
    let mut start = text.len();
    let mut put = |byte| {
        start -= 1;
        text[start] = byte;
    };
    if hundredths % 10 != 0 {
        put(digit(hundredths));
    }
    put(digit(hundredths / 10));
    put(b'.');
    loop {
        put(digit(whole));
        whole /= 10;
        if whole == 0 {
            break;
        }
    }
    if value < 0 {
        put(b'-');
    }
    json.extend_from_slice(&text[start..]);
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
            for (slot, (field_name, _)) in series.iter_mut().zip(FIELDS) {
                *slot = field(name, field_name).map(|_| slot.take().unwrap_or_default());
            }
            self.sensors.insert(name.clone(), series);
        }
        self.monitors = monitors;
    }

    /// Appends one value to every series; the last one again when the cache has none (the host is away).
    pub(crate) fn sample(&mut self, field: impl Fn(&str, &str) -> Option<Text>) {
        for (name, series) in &mut self.sensors {
            for (slot, (field_name, _)) in series.iter_mut().zip(FIELDS) {
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

    /// The history of all sensors as JSON text, in the order in which the firmware host lists them: sensor name to series by their names.
    pub(crate) fn json(&self, include_monitors: bool) -> String {
        let mut json = vec![b'{'];
        for (name, series) in self.sensors.iter().filter(|(name, _)| include_monitors || !self.monitors.contains(name)) {
            json.extend_from_slice(serde_json::Value::from(&**name).to_string().as_bytes());
            json.extend_from_slice(b":{");
            for (series, (_, name)) in series.iter().zip(FIELDS) {
                let Some(series) = series else { continue };
                json.extend_from_slice(format!("\"{name}\":").as_bytes());
                series.write(&mut json);
                json.push(b',');
            }
            close(&mut json, b'}');
            json.push(b',');
        }
        close(&mut json, b'}');
        // Made of ASCII and texts.
        String::from_utf8(json).unwrap_or_default()
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
        recorder.json(monitors)
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
        assert_eq!(json(&recorder, true), r#"{"a":{"temperatures":[-5.01,21474836.47]}}"#);
    }

    #[test]
    fn a_sample_costs_four_bytes() {
        assert_eq!(size_of::<i32>(), 4);
        let mut series = Series::default();
        for value in 0..5000 {
            series.push(value, 1200);
        }
        assert!(series.0.capacity() <= 2400);
        assert_eq!(series.0.len(), 1200);
    }

    #[test]
    fn odd_names_are_names() {
        let mut recorder = Recorder::new(3);
        recorder.follow(&texts(&["a \"b\"", "no fields", "\u{e4}"]), vec![], host(&[]));
        assert_eq!(json(&recorder, true), r#"{"a \"b\"":{},"no fields":{},"ä":{}}"#);
        assert_eq!(Recorder::new(3).json(true), "{}");
    }

    proptest::proptest! {
        #[test]
        fn numbers_are_written_as_usual(value in i32::MIN + 1..=i32::MAX, small in -10_000..10_000) {
            for value in [value, small] {
                let mut json = Vec::new();
                write_hundredths(value, &mut json);
                proptest::prop_assert_eq!(String::from_utf8(json).unwrap(), serde_json::to_string(&(f64::from(value) / 100.0)).unwrap());
            }
        }
    }
}
