//! The state of the connection to the firmware host, as clients see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `fwhost_state` of server info (document 1, *Firmware host state*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FwhostState {
    /// Not connected, or the host is not running.
    Disconnected,
    /// Connected; the host, or our start sequence with it, has not finished.
    Startup,
    /// Accepting commands.
    Ready,
    /// The host failed to start.
    Error,
    /// Emergency stopped.
    Shutdown,
}

impl FwhostState {
    /// The wire form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::Startup => "startup",
            Self::Ready => "ready",
            Self::Error => "error",
            Self::Shutdown => "shutdown",
        }
    }

    /// Reads a state that the host reports; anything unknown is treated as still starting.
    #[must_use]
    pub fn from_host(text: &str) -> Self {
        match text {
            "ready" => Self::Ready,
            "error" => Self::Error,
            "shutdown" => Self::Shutdown,
            _ => Self::Startup,
        }
    }
}

impl std::fmt::Display for FwhostState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
