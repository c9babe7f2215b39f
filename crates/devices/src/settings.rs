//! What the configuration says of strips, sensors and buttons.

use config::{OptionSet, Reader, Secrets, SectionDoc};
use serde_json::{Map, Value};

use crate::button::{ButtonOptions, ConfiguredButton};
use crate::led::LedOptions;
use crate::sensor::{Configured, SensorOptions};

/// The sections of this crate that can be used.
#[derive(Debug, Clone, Default)]
pub struct InstrumentSettings {
    /// `[led name]`.
    pub led: Vec<(String, LedOptions)>,
    /// `[sensor id]`.
    pub sensors: Vec<Configured>,
    /// `[button name]`.
    pub buttons: Vec<ConfiguredButton>,
}

impl InstrumentSettings {
    /// Reads the sections; what is wrong with them is reported to the reader.
    pub fn read(reader: &mut Reader<'_>, secrets: &Secrets) -> Self {
        Self { led: LedOptions::read(reader), sensors: Configured::read(reader, secrets), buttons: ConfiguredButton::read(reader, secrets) }
    }

    /// Typed values, for `server.config`.
    pub fn add_effective(&self, config: &mut Map<String, Value>) {
        for (name, led) in &self.led {
            config.insert(format!("led {name}"), Value::Object(led.effective()));
        }
        for sensor in &self.sensors {
            config.insert(format!("sensor {}", sensor.id), Value::Object(sensor.effective()));
        }
        for button in &self.buttons {
            config.insert(format!("button {}", button.name), Value::Object(button.effective()));
        }
    }

    /// For the reference.
    #[must_use]
    pub fn sections() -> Vec<SectionDoc> {
        vec![LedOptions::describe(), SensorOptions::describe(), ButtonOptions::describe()]
    }
}
