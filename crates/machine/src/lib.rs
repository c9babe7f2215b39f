//! The Linux host below the server: what it is, what it does, which devices it has.
//!
//! ```text
//! /proc, /sys ─► statistics: parse (pure) ◄─ sampler (files kept open) ◄─ service: once a second ─► notification
//!            ├─► peripherals: what is plugged in
//!            └─► system: one small reader per subject, each empty where the machine has nothing to tell
//! systemd ◄─► services: a provider behind one trait ─► states, notification
//! sudo, other programs: by lists of arguments, never by a shell
//! ```
//! Every path is read below a [`Roots`], so that tests use a tree of their own. Source: document 1 *Host machine*, wire/1-core.md sections
//! 4.5 to 4.7 and 8.8 to 8.11.

mod api;
mod machine;
mod peripherals;
mod ports;
mod roots;
mod services;
mod statistics;
mod sudo;
mod system;

pub use machine::{Machine, Parts, Warn};
pub use peripherals::UsbIds;
pub use ports::{Alert, AlertBoard};
pub use roots::Roots;
pub use services::{MachineOptions, ProviderKind, ShutdownAction};
pub use statistics::parse;
