//! What the configuration says of strips and sensors.

use config::{OptionSet, Reader, Secrets, SectionDoc};
use serde_json::{Map, Value};

use crate::led::LedOptions;
use crate::sensor::{Configured, SensorOptions};

/// The sections of this crate that can be used.
#[derive(Debug, Clone, Default)]
pub struct InstrumentSettings {
    /// `[led name]`.
    pub led: Vec<(String, LedOptions)>,
    /// `[sensor id]`.
    pub sensors: Vec<Configured>,
}

impl InstrumentSettings {
    /// Reads the sections; what is wrong with them is reported to the reader.
    pub fn read(reader: &mut Reader<'_>, secrets: &Secrets) -> Self {
        Self { led: LedOptions::read(reader), sensors: Configured::read(reader, secrets) }
    }

    /// Typed values, for `server.config`.
    pub fn add_effective(&self, config: &mut Map<String, Value>) {
        for (name, led) in &self.led {
            config.insert(format!("led {name}"), Value::Object(led.effective()));
        }
        for sensor in &self.sensors {
            config.insert(format!("sensor {}", sensor.id), Value::Object(sensor.effective()));
        }
    }

    /// For the reference.
    #[must_use]
    pub fn sections() -> Vec<SectionDoc> {
        vec![LedOptions::describe(), SensorOptions::describe()]
    }
}
