//! What a [`crate::Control`] asks the host to do, and what it sees of it.

use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::model::{HostState, PrintState};

/// An order with the place for its outcome.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) command: Command,
    pub(crate) done: oneshot::Sender<Result<(), String>>,
}

/// Orders.
#[derive(Debug)]
pub(crate) enum Command {
    /// Bring a fault into force.
    Inject(Fault),
    /// Take faults of this kind out of force.
    Clear(Fault),
    /// Take all faults out of force.
    ClearAll,
    /// Listen again after a death.
    Revive,
    /// Restart the host; `true` also resets the microcontroller.
    Restart(bool),
    /// Shut the printer down with this cause.
    Shutdown(String),
    /// Let model seconds pass at once.
    Advance(f64),
    /// Run gcode.
    Script(String),
}

/// What the simulated printer looks like at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The socket accepts connections.
    pub listening: bool,
    /// State of the host.
    pub state: HostState,
    /// State message of the host.
    pub message: String,
    /// State of the print job.
    pub print_state: PrintState,
    /// File of the print job, empty if none.
    pub print_file: String,
    /// Live position of the toolhead X, Y, Z and filament, mm.
    pub position: [f64; 4],
    /// Temperatures of hot end and bed, °C.
    pub temperatures: (f64, f64),
    /// Seconds of model time since the host's start.
    pub model_seconds: f64,
    /// Open connections.
    pub connections: usize,
    /// Starts of the host so far; every restart adds one.
    pub starts: u64,
}
