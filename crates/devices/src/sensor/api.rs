//! The operations of document 3 *Sensors*. Thin.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use protocol::sensor::SensorStatus;
use rpc::{Access, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::Sensors;

#[derive(Deserialize, JsonSchema)]
struct How {
    /// With what is known of parameters and history fields.
    #[serde(default)]
    extended: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Id of the sensor.
    sensor: String,
    /// With what is known of parameters and history fields.
    #[serde(default)]
    extended: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Whose {
    /// Id of a sensor; all sensors without.
    #[serde(default)]
    sensor: String,
}

#[derive(Serialize, JsonSchema)]
struct SensorList {
    /// By id.
    #[schemars(with = "BTreeMap<String, SensorStatus>")]
    sensors: IndexMap<String, SensorStatus>,
}

impl Sensors {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.sensors.list")
            .get("/server/sensors/list")
            .access(Access::View)
            .doc("All sensors with their latest numbers.")
            .answer(self, |sensors, _, how: How| Ok(SensorList { sensors: sensors.list(how.extended) }));
        registry
            .op("server.sensors.info")
            .get("/server/sensors/info")
            .get("/server/sensors/sensor")
            .access(Access::View)
            .doc("One sensor with its latest numbers.")
            .answer(self, |sensors, _, which: Which| sensors.info(&which.sensor, which.extended));
        registry
            .op("server.sensors.measurements")
            .get("/server/sensors/measurements")
            .access(Access::View)
            .doc("The numbers of the last while, one a second, oldest first: by sensor and parameter.")
            .answer(self, |sensors, _, whose: Whose| sensors.measurements(&whose.sensor));
    }
}
