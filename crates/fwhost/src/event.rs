//! What the link tells the rest of the server, by type.

use std::sync::Arc;

use protocol::FwhostState;
use protocol::status::Text;

/// Something happened at the firmware host. Delivered in order, after [`crate::FwHost::status`] and the cache show it.
#[derive(Debug, Clone)]
pub enum HostEvent {
    /// A host answered for the first time on this connection: [`crate::HostStatusView::info`] is known (paths, versions).
    Connected,
    /// Our start sequence is done and the host is in this state (never startup); comes before [`HostEvent::Ready`].
    Started(FwhostState),
    /// The host accepts commands and the cache holds every object.
    Ready,
    /// The host shut down while we were watching.
    Shutdown,
    /// A connection that had been announced by [`HostEvent::Connected`] ended. Subscriptions are forgotten.
    Disconnected,
    /// Output of the host, as it came (may hold several lines).
    GcodeResponse(Arc<str>),
    /// State, file or message of the job changed, or its duration fell (a new run of the same file). The first one of a connection comes
    /// before [`HostEvent::Ready`].
    PrintStats(PrintStats),
}

/// `print_stats.state` (wire/5-fwhost.md section 5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrintState {
    /// No job.
    Standby,
    /// Under way.
    Printing,
    /// Paused.
    Paused,
    /// Finished.
    Complete,
    /// Cancelled.
    Cancelled,
    /// Ended by an error.
    Error,
}

impl PrintState {
    /// Reads the wire form.
    #[must_use]
    pub fn from_wire(text: &str) -> Option<Self> {
        Some(match text {
            "standby" => Self::Standby,
            "printing" => Self::Printing,
            "paused" => Self::Paused,
            "complete" => Self::Complete,
            "cancelled" => Self::Cancelled,
            "error" => Self::Error,
            _ => return None,
        })
    }

    /// The wire form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standby => "standby",
            Self::Printing => "printing",
            Self::Paused => "paused",
            Self::Complete => "complete",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

/// The object `print_stats` at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct PrintStats {
    /// Where the job stands.
    pub state: PrintState,
    /// Path of the job's file relative to the gcode root; empty when there is none.
    pub filename: Text,
    /// The error text of a failed job, else empty.
    pub message: Text,
    /// Seconds since the start, pauses included.
    pub total_duration: f64,
    /// Seconds of printing, pauses excluded.
    pub print_duration: f64,
    /// Millimetres of filament.
    pub filament_used: f64,
}
