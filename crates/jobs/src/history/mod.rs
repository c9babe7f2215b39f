//! The history: one record for each run of the printer, whoever started it and whoever watched.
//!
//! ```text
//! HostEvent ─► inbox (bounded) ─► worker: state, reconcile (pure) ─► table (one transaction) ─► metadata of the file, notification
//! operations ─► service ─► table
//! ```
//! A record is written before anybody is told of it. What was last seen of the printer is kept with the records, so that after any interruption
//! the first look at the printer decides what becomes of an open record; see [`reconcile`].

mod api;
pub(crate) mod auxiliary;
mod entry;
mod export;
mod import;
mod input;
mod prints;
mod recent;
mod reconcile;
mod record;
mod service;
mod table;
pub(crate) mod totals;
mod worker;

pub use import::{ForeignJob, ForeignTotal, Imported, import};
pub use prints::{FilePrint, prints};
pub use service::History;
pub(crate) use service::to_api;
pub use table::SCHEMA;
pub use worker::SAVE_INTERVAL;
