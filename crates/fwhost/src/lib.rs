//! Link to the firmware host: framing, correlation, state machine, status cache, subscription hub, stores.
//!
//! [`FwHost`] is the handle that everybody holds. [`FwHost::run`] is the one supervised task behind it: it connects to the unix socket of
//! the firmware host, for ever, and everything that arrives is handled there in the order of arrival.
//!
//! ```text
//! socket ─► frame (split at 0x03) ─► message (answer or call) ─┬─► exchange: the caller that waits for the id
//!                                                              ├─► mirror: cache ─► diff ─► hub: one frame per distinct selection
//!                                                              └─► model: link state ─► effects (requests, events)
//! callers ─► exchange (two lanes, urgent first) ─► socket
//! ```
//!
//! Nothing that arrives can be slowed down by anybody: listeners and sinks are called synchronously and only enqueue.
//! Facts about the other side: wire/5-fwhost.md.

mod cache;
mod event;
mod exchange;
mod failure;
pub mod frame;
mod handle;
mod hub;
mod link;
pub mod message;
mod mirror;
mod model;
mod options;
mod params;
mod quirks;
mod remote;
mod session;
mod shared;
mod sink;
mod socket;
mod stores;
#[cfg(test)]
mod testing;
mod view;

pub use event::{HostEvent, PrintChange, PrintState, PrintStats};
pub use handle::{FwHost, Restart};
pub use options::{DEFAULT_GCODE_STORE_SIZE, DEFAULT_TEMPERATURE_STORE_SIZE, Options, Timing};
pub use sink::{StatusSink, SubscriberId};
pub use stores::gcode::{GcodeEntry, GcodeKind};
pub use view::HostStatusView;
