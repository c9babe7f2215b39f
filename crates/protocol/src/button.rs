//! Buttons as clients see them (wire/1-core.md section 5).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Payload of `notify_button_event`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ButtonEvent {
    /// Name of the button: the last word of its section's.
    pub name: String,
    /// What it is connected to: `gpio`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What happened.
    pub event: ButtonMoment,
    /// What the template says.
    pub aux: Value,
}

/// A button went down or up; also what its templates see as `event`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ButtonMoment {
    /// Seconds since the change before, or since the server began to listen.
    pub elapsed_time: f64,
    /// When it happened, in seconds of the machine's monotonic clock.
    pub received_time: f64,
    /// When its template was begun, on the same clock.
    pub render_time: f64,
    /// True when it went down.
    pub pressed: bool,
}
