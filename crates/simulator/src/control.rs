//! The handle by which tests and the command line steer a running simulator.

use tokio::sync::{mpsc, oneshot, watch};

use crate::fault::Fault;
use crate::server::command::{Command, Order, Snapshot};
use crate::server::host::Event;

/// Steers a running simulator. Cheap to clone; outlives nothing: after the simulator's end every call fails.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) snapshot: watch::Receiver<Snapshot>,
}

/// An order that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The simulator was stopped.
    #[error("the simulator is not running")]
    Stopped,
    /// The printer refused, with its error text.
    #[error("{0}")]
    Refused(String),
}

impl Control {
    /// Brings a fault into force. Returns when it is.
    ///
    /// # Errors
    /// [`ControlError::Stopped`].
    pub async fn inject(&self, fault: Fault) -> Result<(), ControlError> {
        self.order(Command::Inject(fault)).await
    }

    /// Takes faults of the same kind (values do not matter) out of force.
    ///
    /// # Errors
    /// [`ControlError::Stopped`].
    pub async fn clear(&self, fault: Fault) -> Result<(), ControlError> {
        self.order(Command::Clear(fault)).await
    }

    /// Takes all faults out of force. A dead simulator stays dead until [`Control::revive`].
    ///
    /// # Errors
    /// [`ControlError::Stopped`].
    pub async fn clear_all(&self) -> Result<(), ControlError> {
        self.order(Command::ClearAll).await
    }

    /// Starts the host again after it died.
    ///
    /// # Errors
    /// [`ControlError::Refused`] if it is alive or cannot bind its socket.
    pub async fn revive(&self) -> Result<(), ControlError> {
        self.order(Command::Revive).await
    }

    /// Restarts the host at once, as after `RESTART` (or `FIRMWARE_RESTART` if `firmware`).
    ///
    /// # Errors
    /// [`ControlError::Stopped`].
    pub async fn restart(&self, firmware: bool) -> Result<(), ControlError> {
        self.order(Command::Restart(firmware)).await
    }

    /// Shuts the printer down with this cause.
    ///
    /// # Errors
    /// [`ControlError::Stopped`].
    pub async fn shutdown(&self, cause: &str) -> Result<(), ControlError> {
        self.order(Command::Shutdown(cause.to_owned())).await
    }

    /// Lets this many seconds of model time pass at once.
    ///
    /// # Errors
    /// [`ControlError::Stopped`].
    pub async fn advance(&self, seconds: f64) -> Result<(), ControlError> {
        self.order(Command::Advance(seconds)).await
    }

    /// Runs gcode and waits for its end.
    ///
    /// # Errors
    /// [`ControlError::Refused`] with the error text of the failing line.
    pub async fn run_gcode(&self, script: &str) -> Result<(), ControlError> {
        self.order(Command::Script(script.to_owned())).await
    }

    /// What the printer looks like now.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot.borrow().clone()
    }

    /// Waits until the printer looks as wanted. The caller bounds the wait.
    ///
    /// # Errors
    /// [`ControlError::Stopped`].
    pub async fn wait_until(&self, wanted: impl FnMut(&Snapshot) -> bool) -> Result<Snapshot, ControlError> {
        let mut snapshot = self.snapshot.clone();
        let found = snapshot.wait_for(wanted).await.map_err(|_| ControlError::Stopped)?;
        Ok(found.clone())
    }

    async fn order(&self, command: Command) -> Result<(), ControlError> {
        let (done, outcome) = oneshot::channel();
        self.events.send(Event::Order(Order { command, done })).await.map_err(|_| ControlError::Stopped)?;
        outcome.await.map_err(|_| ControlError::Stopped)?.map_err(ControlError::Refused)
    }
}
