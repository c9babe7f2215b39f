//! Sensors: numbers that something else reports, for clients and for the history of jobs.
//!
//! ```text
//! broker ─► inbox (one per sensor, pure) ─► reading (template) ─► series (pure) ─► history fields
//!                                           ▲                       │
//!        listener, once a second ───────────┴───────────────────────┴──► notification of what changed
//! ```
//!
//! Source: document 3 *Sensors*, wire/3-devices.md section 4.

mod api;
mod history;
mod inbox;
mod listener;
mod options;
mod ports;
mod reading;
mod series;
mod service;

pub use inbox::{MANY_WAITING, MAX_WAITING, MAX_WAITING_BYTES};
pub use options::{Configured, MAX_SENSORS, SensorKind, SensorOptions, Strategy};
pub use ports::{Boundary, HistoryFields, Initial, Report};
pub use reading::MAX_PARAMETERS;
pub use service::Sensors;
