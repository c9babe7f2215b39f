//! What the link tells the rest of the server, by type.

use std::sync::Arc;

use protocol::FwhostState;
use protocol::status::Text;

use crate::message;

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
    /// State, file or message of the job changed, or its duration shows a new run of the same file. The first one of a connection comes
    /// before [`HostEvent::Ready`].
    PrintStats(PrintChange),
}

/// The job before and after a change.
#[derive(Debug, Clone, PartialEq)]
pub struct PrintChange {
    /// At the last update before the change, counters included; none at the first sight of a connection.
    pub before: Option<PrintStats>,
    /// As it is now.
    pub now: PrintStats,
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
    /// True while there is a job: printing or paused.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Printing | Self::Paused)
    }

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

/// Decides when [`HostEvent::PrintStats`] is due: counters alone change four times a second and are no event.
#[derive(Debug, Default)]
pub(crate) struct JobWatch {
    last: Option<PrintStats>,
}

impl JobWatch {
    /// The event for what `print_stats` is now, if it is one.
    pub(crate) fn observe(&mut self, now: PrintStats) -> Option<PrintChange> {
        let same = self.last.as_ref().is_some_and(|last| {
            last.state == now.state
                && last.filename == now.filename
                && last.message == now.message
                && if now.state.is_active() {
                    last.total_duration <= now.total_duration
                } else {
                    // Nothing counts while there is no job: another number is another run, begun and ended between two updates.
                    last.total_duration == now.total_duration
                }
        });
        let before = self.last.replace(now.clone());
        (!same).then_some(PrintChange { before, now })
    }
}

impl PrintStats {
    /// Reads the object through a look-up of its fields' JSON texts; none when the printer has no such object.
    pub(crate) fn read(field: impl Fn(&str) -> Option<Text>) -> Option<Self> {
        let text = |name: &str| field(name).and_then(|json| message::decode(&json).map(Text::from)).unwrap_or_default();
        let number =
            |name: &str| field(name).and_then(|json| json.parse().ok()).filter(|value: &f64| value.is_finite()).unwrap_or_default();
        Some(Self {
            state: PrintState::from_wire(&message::decode(&field("state")?)?)?,
            filename: text("filename"),
            message: text("message"),
            total_duration: number("total_duration"),
            print_duration: number("print_duration"),
            filament_used: number("filament_used"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(state: &str, filename: &str, total: f64) -> PrintStats {
        PrintStats::read(|field| match field {
            "state" => Some(format!("\"{state}\"").into()),
            "filename" => Some(format!("\"{filename}\"").into()),
            "total_duration" => Some(total.to_string().into()),
            "message" => Some("null".into()),
            _ => None,
        })
        .unwrap()
    }

    #[test]
    fn counters_are_no_event_but_a_new_run_of_the_same_file_is() {
        let mut watch = JobWatch::default();
        let told: Vec<bool> = [
            stats("standby", "", 0.0),
            stats("standby", "", 0.0),
            stats("printing", "a.gcode", 0.5),
            stats("printing", "a.gcode", 7.5),
            stats("printing", "a.gcode", 0.1),
            stats("printing", "b.gcode", 0.2),
            stats("complete", "b.gcode", 9.0),
            stats("complete", "b.gcode", 9.0),
            stats("complete", "b.gcode", 9.5),
        ]
        .into_iter()
        .map(|now| watch.observe(now).is_some())
        .collect();
        assert_eq!(told, [true, false, true, false, true, true, true, false, true]);
        let change = watch.observe(stats("standby", "", 0.0)).unwrap();
        assert_eq!((change.before.unwrap().total_duration, change.now.total_duration), (9.5, 0.0));
    }

    #[test]
    fn an_unknown_state_is_no_job() {
        assert_eq!(PrintStats::read(|field| (field == "state").then(|| "\"dancing\"".into())), None);
        assert_eq!(PrintStats::read(|_| None), None);
    }
}
