//! The printer, as clients see it: the operations of document 1 *Printer*, every endpoint that the firmware host offers beyond them, status
//! subscriptions of connections, and the two short-term stores (temperatures, gcode).
//!
//! The link itself is the `fwhost` crate; this crate puts operations, connections and notifications around it.

mod api;
mod endpoints;
mod info;
mod options;
mod service;
mod sink;

pub use options::DataStoreOptions;
pub use service::{PrintStart, PrintTarget, Printer};
