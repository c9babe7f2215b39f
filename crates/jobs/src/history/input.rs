//! What the firmware host tells, as the history takes it.

use fwhost::{FwHost, HostEvent, PrintChange, PrintStats};
use protocol::FwhostState;
use serde::Deserialize;

/// What the firmware host told, with what can only be known at that moment.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// The first look at a connection.
    Sight { now: PrintStats, host: Option<u64> },
    /// Two consecutive looks that differ.
    Change { before: PrintStats, now: PrintStats },
    /// The start sequence ended in this state.
    Settled(FwhostState),
    /// The host shut down.
    Shutdown(Option<PrintStats>),
    /// The host is gone.
    Gone(Option<PrintStats>),
}

/// Translates; none for what jobs do not care about.
pub(crate) fn input(host: &FwHost, event: &HostEvent) -> Option<Input> {
    Some(match event {
        HostEvent::PrintStats(PrintChange { before: None, now }) => Input::Sight { now: now.clone(), host: process_of(host) },
        HostEvent::PrintStats(PrintChange { before: Some(before), now }) => Input::Change { before: before.clone(), now: now.clone() },
        HostEvent::Started(state) => Input::Settled(*state),
        HostEvent::Shutdown => Input::Shutdown(host.print_stats()),
        HostEvent::Disconnected => Input::Gone(host.last_print_stats()),
        HostEvent::Connected | HostEvent::Ready | HostEvent::GcodeResponse(_) => return None,
    })
}

/// The process of the firmware host, as it says itself.
pub(crate) fn process_of(host: &FwHost) -> Option<u64> {
    #[derive(Deserialize)]
    struct Info {
        process_id: u64,
    }
    let view = host.status();
    view.info.as_ref().and_then(|info| serde_json::from_str::<Info>(info).ok()).map(|info| info.process_id)
}
