//! How the process ends: by a signal or because a component asked for a stop or a restart.
//!
//! ```text
//! SIGTERM, SIGINT ──────► Signals::watch ─┐
//! components ─► request_stop, request_restart ─► Lifecycle ─► wait() in the main loop
//! ```
//!
//! A restart happens within the process (wire document 1, section 8.2): the main loop tears everything down, calls
//! [`Lifecycle::begin`] and builds anew. A stop is final and wins over a restart.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Exit code after a forced end: 128 + SIGINT, as shells count.
pub const FORCED_EXIT_CODE: i32 = 130;

/// What the main loop does when the server has been taken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Leave the process.
    Stop,
    /// Read the configuration again and build anew in the same process.
    Restart,
}

/// Where components ask for the end, and where the main loop waits for it. Clones share the same state.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    requested: Arc<watch::Sender<Option<Ending>>>,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self::new()
    }
}

impl Lifecycle {
    /// A life in which nobody has asked for the end yet.
    #[must_use]
    pub fn new() -> Self {
        Self { requested: Arc::new(watch::Sender::new(None)) }
    }

    /// Asks for the end of the process; final.
    pub fn request_stop(&self) {
        self.requested.send_replace(Some(Ending::Stop));
    }

    /// Asks for a restart, unless something has been asked for already.
    pub fn request_restart(&self) {
        self.requested.send_if_modified(|requested| {
            let first = requested.is_none();
            requested.get_or_insert(Ending::Restart);
            first
        });
    }

    /// What has been asked for so far.
    #[must_use]
    pub fn requested(&self) -> Option<Ending> {
        *self.requested.borrow()
    }

    /// Waits until an end is asked for; at once if it has been. Any number of tasks may wait.
    pub async fn wait(&self) -> Ending {
        let mut requests = self.requested.subscribe();
        match requests.wait_for(Option::is_some).await {
            Ok(requested) => requested.unwrap_or(Ending::Stop),
            Err(_) => Ending::Stop, // unreachable: `self` keeps the sender
        }
    }

    /// Opens the next life after a restart: forgets restarts asked for until now. A stop is not forgotten.
    pub fn begin(&self) {
        self.requested.send_if_modified(|requested| {
            let restarting = *requested == Some(Ending::Restart);
            if restarting {
                *requested = None;
            }
            restarting
        });
    }
}

/// A signal that ends the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGTERM, from a service manager.
    Terminate,
    /// SIGINT, from the terminal.
    Interrupt,
}

/// Listens for SIGTERM and SIGINT. From [`Signals::install`] on they no longer kill the process by themselves.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn install() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next of the two signals.
    pub async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.interrupt.recv() => StopSignal::Interrupt,
        }
    }

    /// Turns signals into a request to stop, for as long as the process lives. An interrupt after the first signal
    /// calls `force`, for the person who will not wait for the orderly end: flush the log and exit with
    /// [`FORCED_EXIT_CODE`].
    pub async fn watch(mut self, lifecycle: Lifecycle, force: impl FnOnce()) {
        let mut stopping = false;
        loop {
            let signal = self.next().await;
            match reaction(stopping, signal) {
                Reaction::Stop => {
                    tracing::info!(?signal, "stopping");
                    lifecycle.request_stop();
                    stopping = true;
                }
                Reaction::Force => {
                    tracing::warn!("interrupted again: leaving without an orderly end");
                    return force();
                }
                Reaction::Ignore => {}
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    Stop,
    Force,
    Ignore,
}

/// A service manager may repeat SIGTERM without meaning haste; a person who repeats Ctrl-C does mean it.
fn reaction(stopping: bool, signal: StopSignal) -> Reaction {
    match (stopping, signal) {
        (false, _) => Reaction::Stop,
        (true, StopSignal::Interrupt) => Reaction::Force,
        (true, StopSignal::Terminate) => Reaction::Ignore,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::{Signal as Number, getpid, kill_process};
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(2);

    #[test]
    fn only_an_interrupt_while_stopping_forces_the_end() {
        let table = [
            (false, StopSignal::Terminate, Reaction::Stop),
            (false, StopSignal::Interrupt, Reaction::Stop),
            (true, StopSignal::Terminate, Reaction::Ignore),
            (true, StopSignal::Interrupt, Reaction::Force),
        ];
        for (stopping, signal, expected) in table {
            assert_eq!(reaction(stopping, signal), expected, "{stopping} {signal:?}");
        }
    }

    #[tokio::test]
    async fn everybody_who_waits_hears_the_request() {
        let life = Lifecycle::new();
        assert_eq!(life.requested(), None);
        let (first, second) = (life.clone(), life.clone());
        let waiting = tokio::spawn(async move { tokio::join!(first.wait(), second.wait()) });
        tokio::task::yield_now().await;
        life.request_restart();
        assert_eq!(timeout(SOON, waiting).await.unwrap().unwrap(), (Ending::Restart, Ending::Restart));
        assert_eq!(life.wait().await, Ending::Restart);
    }

    #[tokio::test]
    async fn a_stop_is_final_and_wins() {
        let life = Lifecycle::new();
        life.request_restart();
        life.request_stop();
        life.request_restart();
        life.begin();
        assert_eq!(life.wait().await, Ending::Stop);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_life_forgets_the_restart() {
        let life = Lifecycle::new();
        life.request_restart();
        life.request_restart();
        assert_eq!(life.wait().await, Ending::Restart);
        life.begin();
        assert_eq!(life.requested(), None);
        assert!(timeout(SOON, life.wait()).await.is_err());
    }

    #[tokio::test]
    async fn real_signals_stop_and_then_force() {
        let life = Lifecycle::new();
        let (forced, heard) = oneshot::channel();
        let signals = Signals::install().unwrap();
        let watching = tokio::spawn(signals.watch(life.clone(), move || forced.send(()).unwrap()));

        kill_process(getpid(), Number::TERM).unwrap();
        assert_eq!(timeout(SOON, life.wait()).await.unwrap(), Ending::Stop);
        assert!(!watching.is_finished());

        kill_process(getpid(), Number::INT).unwrap();
        timeout(SOON, heard).await.unwrap().unwrap();
        timeout(SOON, watching).await.unwrap().unwrap();
    }
}
