//! LED strips as clients see them (document 3 *LED Strip Status*).

use schemars::JsonSchema;
use serde::Serialize;

/// Whether a strip is lit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LedState {
    /// Enabled.
    On,
    /// Dark.
    Off,
}

/// *LED Strip Status*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LedStatus {
    /// Name in the configuration.
    pub strip: String,
    /// As far as the service knows: strips are not asked.
    pub status: LedState,
    /// LEDs on the chain.
    pub chain_count: u32,
    /// Number of the preset; -1 when none is selected.
    pub preset: i32,
    /// 1 to 255; -1 when it was not set by the service.
    pub brightness: i32,
    /// 0 to 255; -1 when it was not set by the service.
    pub intensity: i32,
    /// 0 to 255; -1 when it was not set by the service.
    pub speed: i32,
    /// Why the last command failed; null when it did not.
    pub error: Option<String>,
}
