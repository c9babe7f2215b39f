//! The state of the whole host (startup, ready, error, shutdown) and the messages that go with it (wire document 5, section 3).

/// State of the firmware host as `info` and the `webhooks` object report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostState {
    /// Configuration is read, the microcontroller is being connected.
    Startup,
    /// Everything runs.
    Ready,
    /// Start-up failed.
    Error,
    /// Stopped for safety.
    Shutdown,
}

impl HostState {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Ready => "ready",
            Self::Error => "error",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Message while starting.
pub(crate) const STARTUP_MESSAGE: &str =
    "\nPrinter is not ready\nThe klippy host software is attempting to connect.  Please\nretry in a few moments.\n";

/// Message when all is well.
pub(crate) const READY_MESSAGE: &str = "Printer is ready";

const RESTART_HINT: &str = "Once the underlying issue is corrected, use the \"RESTART\"\ncommand to reload the config and restart the host software.\nPrinter is halted\n";

const FIRMWARE_RESTART_HINT: &str = "Once the underlying issue is corrected, use the\n\"FIRMWARE_RESTART\" command to reset the firmware, reload the\nconfig, and restart the host software.\n";

/// Message of a configuration that cannot be used.
pub(crate) fn config_error(cause: &str) -> String {
    format!("{cause}\n\n{RESTART_HINT}")
}

/// Message of a microcontroller that cannot be configured.
pub(crate) fn mcu_error(cause: &str) -> String {
    format!("{cause}\n{FIRMWARE_RESTART_HINT}Error configuring printer\n")
}

/// Message after a shutdown.
pub(crate) fn shutdown(cause: &str) -> String {
    format!("{cause}\n{FIRMWARE_RESTART_HINT}Printer is shutdown\n")
}

/// Cause when the host was restarted while the microcontroller is still shut down (section 12, no. 10).
pub(crate) const MCU_STILL_SHUTDOWN: &str = "Can not update MCU 'mcu' config as it is shutdown";
