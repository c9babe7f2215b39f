//! Power devices as clients see them (document 3 *Power Device Status*).

use schemars::JsonSchema;
use serde::Serialize;

/// States of a power device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PowerState {
    /// Not known yet.
    Init,
    /// Switched on.
    On,
    /// Switched off.
    Off,
    /// It cannot be asked, or says nothing that makes sense.
    Error,
}

impl PowerState {
    /// The wire form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::On => "on",
            Self::Off => "off",
            Self::Error => "error",
        }
    }
}

/// *Power Device Status*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PowerStatus {
    /// Name in the configuration.
    pub device: String,
    /// As known now.
    pub status: PowerState,
    /// True when it cannot be switched while printing.
    pub locked_while_printing: bool,
    /// Type in the configuration, in the form that the caller reads.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Only for devices of the firmware: the firmware host is shut down, so that nothing can be switched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_shutdown: Option<bool>,
    /// What is wrong, while something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
