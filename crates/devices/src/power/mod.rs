//! Things that are switched on and off: relays, plugs, lamps, outputs of the firmware.
//!
//! ```text
//! operations, macros ─► service ─► worker (one task per device) ─► model (pure): what follows
//! queue, firmware host ──────────►   │  ▲                          └► notification, services, firmware restart, timer
//!                                    ▼  │
//!                                  driver (one file per type): asks and switches
//! ```
//!
//! A device that hangs keeps only its own worker busy; whoever asks waits for a bounded time. Source: document 3 *Power devices*,
//! wire/3-devices.md section 2.

mod api;
mod build;
mod driver;
mod model;
mod options;
mod ports;
mod restart;
mod service;
mod worker;

#[cfg(test)]
mod tests;

pub use build::{PowerDevice, read, sections};
pub use model::Action;
pub use options::{Kind, PowerOptions};
pub use ports::Services;
pub use service::{MAX_DEVICES, Parts, Power};
