//! What the configuration says of strips and sensors.

use config::{OptionSet, Reader, SectionDoc};
use serde_json::{Map, Value};

use crate::led::LedOptions;

/// The sections of this crate that can be used.
#[derive(Debug, Clone, Default)]
pub struct InstrumentSettings {
    /// `[led name]`.
    pub led: Vec<(String, LedOptions)>,
}

impl InstrumentSettings {
    /// Reads the sections; what is wrong with them is reported to the reader.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self { led: LedOptions::read(reader) }
    }

    /// Typed values, for `server.config`.
    pub fn add_effective(&self, config: &mut Map<String, Value>) {
        for (name, led) in &self.led {
            config.insert(format!("led {name}"), Value::Object(led.effective()));
        }
    }

    /// For the reference.
    #[must_use]
    pub fn sections() -> Vec<SectionDoc> {
        vec![LedOptions::describe()]
    }
}
