//! LED strips with a controller that understands the JSON of the WLED firmware, over HTTP or a serial line.
//!
//! ```text
//! operations, macros ─► service ─► worker (one task per strip) ─► model (pure): which commands follow
//!                                       │   ▲                     └► notification
//!                                       ▼   │
//!                                  link: HTTP or serial
//! ```
//!
//! A strip that hangs keeps only its own worker busy. Source: document 3 *LED strips*, wire/3-devices.md section 3.

mod api;
mod link;
mod model;
mod options;
mod remote;
mod serial;
mod service;
mod worker;

pub use link::ATTEMPTS;
pub use model::{Action, Change, Levels};
pub use options::{LedKind, LedOptions, MAX_CHAIN, MAX_STRIPS};
pub use serial::{ANSWER_TIMEOUT, MAX_LINE};
pub use service::LedStrips;
pub use worker::MAX_WAITING;
