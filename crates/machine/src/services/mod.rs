//! Services of the machine, and switching it off.
//!
//! ```text
//! api ─► Services: which services may be touched, what they do ─► Provider: systemd over D-Bus, its tool, supervisord, nobody
//!              ▲ states ◄──────────────── watch ──────────────────────┘
//! ```
//! Source: document 1 *Host machine*, wire/1-core.md sections 4.5, 8.8 and 8.10.

mod allowed;
mod cli;
mod dbus;
mod names;
mod options;
mod provider;
mod service;
mod supervisor;

use allowed::Allowed;
pub use options::{MachineOptions, ProviderKind, ShutdownAction};
pub(crate) use provider::{Action, PowerAction};
pub(crate) use service::Services;
