//! A simulated firmware host: the protocol of the real one over a plain motion and heater model.
//!
//! It listens on a unix socket and behaves so that no client can tell, except that it says clearly that it is simulated (host name,
//! version). Used by tests, by the demo and for load tests.
//!
//! - `model`: the printer, synchronous and without I/O except reading the printed file through a trait.
//! - `server`: one task that owns the model and all connections; wire document 5 is its specification.
//! - [`Fault`]: what can be made to go wrong.
//! - [`Control`]: the handle for tests.

mod clock;
mod control;
mod fault;
mod model;
mod options;
mod server;
mod simulator;

pub use control::{Control, ControlError};
pub use fault::{FAULT_HELP, Fault, FaultParseError};
pub use model::{HostState, PrintState, SOFTWARE_VERSION, printer_cfg};
pub use options::Options;
pub use server::command::Snapshot;
pub use simulator::Simulator;
