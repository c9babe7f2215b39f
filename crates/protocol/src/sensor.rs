//! Sensors as clients see them (document 3 *Sensor Status*).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Names of parameters and their latest numbers.
pub type SensorValues = Map<String, Value>;

/// Values of sensors, by the sensors' ids: payload of `notify_sensor_update`.
pub type SensorUpdate = BTreeMap<String, SensorValues>;

/// *Sensor Status*.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SensorStatus {
    /// Id in the configuration.
    pub id: String,
    /// For people.
    pub friendly_name: String,
    /// How it reports: `mqtt`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Latest numbers by parameter.
    pub values: SensorValues,
    /// Why the last message could not be used, until one can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What is known of the parameters, in the order of the configuration; only when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter_info: Option<Vec<Map<String, Value>>>,
    /// Fields in the history; only when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_fields: Option<Vec<SensorHistoryField>>,
}

/// A field that a sensor adds to the history of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SensorHistoryField {
    /// Name.
    pub field: String,
    /// Whose it is: `sensor` and the id.
    pub provider: String,
    /// For people.
    pub description: String,
    /// What is done with the numbers: `basic`, `delta`, `accumulate`, `average`, `maximum`, `minimum` or `collect`.
    pub strategy: &'static str,
    /// Unit of the value.
    pub units: Option<String>,
    /// A job begins with the number that the sensor has then.
    pub init_tracker: bool,
    /// Numbers do not count while the job is paused.
    pub exclude_paused: bool,
    /// The totals have the sum over all jobs.
    pub report_total: bool,
    /// The totals have the largest value of all jobs.
    pub report_maximum: bool,
    /// Decimals.
    pub precision: Option<u8>,
    /// Parameter of the sensor.
    pub parameter: String,
}
