//! `[sensor id]`.

use config::{Dictionary, OptionSet, Reader, Secrets};
use outbound::mqtt::{Qos, topic};
use protocol::sensor::SensorHistoryField;
use serde_json::{Map, Value};
use template::{Context, Template};

use super::history;
use super::reading::SET_RESULT;
use crate::script::CALL_METHOD;

/// Sensors of one configuration.
pub const MAX_SENSORS: usize = 64;

config::choices! {
    /// Where the numbers of a sensor come from.
    pub enum SensorKind {
        /// Messages on a topic.
        Mqtt = "mqtt",
    }
}

config::choices! {
    /// What the history does with the numbers of a sensor.
    pub enum Strategy {
        /// The last one.
        Basic = "basic",
        /// How much they changed.
        Delta = "delta",
        /// Their sum.
        Accumulate = "accumulate",
        /// Their mean.
        Average = "average",
        /// The largest.
        Maximum = "maximum",
        /// The smallest.
        Minimum = "minimum",
        /// The different ones.
        Collect = "collect",
    }
}

config::options! {
    /// Numbers that something reports over MQTT. `parameter_<name>` describes a parameter, `history_field_<name>` adds one to the records of the history; see docs/leds-and-sensors.md.
    pub struct SensorOptions: "sensor <name>" {
        /// How it reports: `mqtt`, which needs a section `[mqtt]`.
        r#type: SensorKind,
        /// For people. Unset: the id.
        name: Option<String> = None,
        /// Numbers that are kept of each parameter, one a second.
        sensor_store_size: u32 { min 1, max 21600 } = 1200,
        /// Topic of its messages, without wildcards.
        state_topic: String,
        /// Reads a message, which is `payload`, and calls `set_result(name, number)` for each parameter. It may call `call_method`, too.
        state_response_template: Template,
        /// Quality of service of the subscription: 0, 1 or 2. Unset: `default_qos` of `[mqtt]`.
        qos: Option<u8> { max 2 } = None,
    }
}

/// A sensor that can be used.
#[derive(Debug, Clone)]
pub struct Configured {
    /// What follows `sensor` in the section's name.
    pub id: String,
    /// Its options.
    pub options: SensorOptions,
    /// Described parameters: keys of the options and `name`.
    pub parameters: Vec<Map<String, Value>>,
    /// Fields of the history.
    pub fields: Vec<SensorHistoryField>,
    /// What its template sees besides the message.
    pub context: Context,
    prefixed: Map<String, Value>,
}

impl Configured {
    /// All sections that can be used. The others are reported to the reader.
    pub fn read(reader: &mut Reader<'_>, secrets: &Secrets) -> Vec<Self> {
        let mut usable: Vec<Self> = Vec::new();
        for entry in reader.read_all::<SensorOptions>() {
            let (section, id) = (entry.section.clone(), entry.name.clone());
            let parameters: Vec<(String, Dictionary)> = reader.read_prefixed(&section, "parameter_");
            let fields: Vec<(String, Dictionary)> = reader.read_prefixed(&section, "history_field_");
            let Ok(mut options) = entry.sound() else { continue };
            let fault = match topic::check(&options.state_topic) {
                Err(error) => Some(("state_topic", error.to_string())),
                Ok(()) if usable.iter().any(|known| known.id == id) => Some(("type", "another section has this sensor".to_owned())),
                Ok(()) if usable.len() >= MAX_SENSORS => Some(("type", format!("more than {MAX_SENSORS} sensors"))),
                Ok(()) => None,
            };
            if let Some((option, message)) = fault {
                reader.reject(&section, option, message);
                continue;
            }
            let prefixed = prefixed("parameter_", &parameters).chain(prefixed("history_field_", &fields)).collect();
            let fields = fields.into_iter().filter_map(|(name, keys)| history::read(reader, &section, &id, &name, &keys)).collect();
            options.state_response_template = options.state_response_template.of(&format!("[{section}] state_response_template"));
            let context = Context::new(secrets).with_function(SET_RESULT).with_function(CALL_METHOD);
            usable.push(Self { id, options, parameters: parameters.iter().map(described).collect(), fields, context, prefixed });
        }
        usable
    }

    /// Typed values, for `server.config`.
    #[must_use]
    pub fn effective(&self) -> Map<String, Value> {
        let mut options = self.options.effective();
        options.extend(self.prefixed.clone());
        options
    }

    /// Quality of the subscription.
    #[must_use]
    pub fn qos(&self, usual: Qos) -> Qos {
        self.options.qos.and_then(|qos| Qos::from_number(qos.into())).unwrap_or(usual)
    }

    /// For people.
    #[must_use]
    pub fn friendly_name(&self) -> &str {
        self.options.name.as_deref().unwrap_or(&self.id)
    }
}

fn prefixed(prefix: &str, options: &[(String, Dictionary)]) -> impl Iterator<Item = (String, Value)> {
    options.iter().map(move |(name, keys)| {
        (format!("{prefix}{name}"), keys.0.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect())
    })
}

fn described((name, keys): &(String, Dictionary)) -> Map<String, Value> {
    let keys = keys.0.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
    keys.chain([("name".to_owned(), name.as_str().into())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<Configured>, Vec<String>) {
        crate::reading::options(text, |reader| Configured::read(reader, &Secrets::default()))
    }

    const MINIMAL: &str = "[sensor s]\ntype: MQTT\nstate_topic: a/b\nstate_response_template: {set_result('x', 1)}\n";

    #[test]
    fn everything_about_a_sensor_is_read() {
        let text = format!(
            "{MINIMAL}name: Mains\nqos: 0\nparameter_power:\n  units=W\n  icon=bolt\nhistory_field_energy:\n  parameter=total\n  desc=Used\n  strategy=DELTA\n  units=kWh\n  init_tracker=true\n  report_total=yes\n  precision=3\n"
        );
        let (sensors, problems) = read(&text);
        assert_eq!(problems, [""; 0]);
        let sensor = &sensors[0];
        assert_eq!((sensor.friendly_name(), sensor.qos(Qos::ExactlyOnce)), ("Mains", Qos::AtMostOnce));
        assert_eq!(Value::Object(sensor.parameters[0].clone()), serde_json::json!({"units": "W", "icon": "bolt", "name": "power"}));
        let field = &sensor.fields[0];
        assert_eq!((field.provider.as_str(), field.strategy, field.description.as_str()), ("sensor s", "delta", "Used"));
        assert_eq!((field.init_tracker, field.report_total, field.precision), (true, false, Some(3)), "only `true` is true");
        assert_eq!(sensor.effective()["history_field_energy"]["units"], "kWh");
    }

    #[test]
    fn faulty_sensors_and_fields_are_left_out_and_named() {
        for (line, expected) in [
            ("state_topic: a/#", "[sensor s] state_topic: 'a/#' is not a topic"),
            ("type: shell", "[sensor s] type: expected one of `mqtt`"),
            ("qos: 3", "[sensor s] qos: expected"),
            ("sensor_store_size: 0", "[sensor s] sensor_store_size: expected"),
            ("state_response_template: {set_result(}", "[sensor s] state_response_template: expected a template"),
        ] {
            let option = line.split(':').next().unwrap();
            let kept: String = MINIMAL.lines().filter(|known| !known.starts_with(option)).map(|line| format!("{line}\n")).collect();
            let (sensors, problems) = read(&format!("{kept}{line}\n"));
            assert!(sensors.is_empty() && problems[0].contains(expected), "{line}: {problems:?}");
        }
        for (keys, expected) in [
            ("strategy=basic", "history_field_f: expected `parameter=`"),
            ("parameter=x\n  strategy=median", "history_field_f: strategy: expected one of `basic`"),
            ("parameter=x\n  precision=many", "history_field_f: precision: expected"),
        ] {
            let (sensors, problems) = read(&format!("{MINIMAL}history_field_f:\n  {keys}\n"));
            assert!(sensors[0].fields.is_empty() && problems[0].contains(expected), "{keys}: {problems:?}");
        }
        let (sensors, problems) = read(&format!("{MINIMAL}history_field_f:\n  parameter=x\n  color=red\n"));
        assert!(sensors[0].fields.len() == 1 && problems[0].contains("`color`"), "{problems:?}");
    }
}
