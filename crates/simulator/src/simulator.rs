//! Starting and stopping a simulator.

use std::io;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::control::Control;
use crate::options::Options;
use crate::server::host::Host;

/// Events queued for the host; senders wait when it is full.
const EVENT_QUEUE: usize = 1024;

/// A running simulator. Dropping it ends it without waiting; [`Simulator::stop`] waits.
#[derive(Debug)]
pub struct Simulator {
    control: Control,
    token: CancellationToken,
    tasks: TaskTracker,
}

impl Simulator {
    /// Binds the socket and starts the printer, which becomes ready after [`Options::startup`].
    ///
    /// # Errors
    /// The socket cannot be bound.
    #[expect(clippy::unused_async, reason = "binding needs a runtime; an async function makes that visible")]
    pub async fn start(options: Options) -> io::Result<Self> {
        let (events, queue) = mpsc::channel(EVENT_QUEUE);
        let tasks = TaskTracker::new();
        let token = CancellationToken::new();
        let mut host = Host::new(options, events.clone(), tasks.clone());
        host.listen()?;
        let control = Control { events, snapshot: host.watch() };
        tasks.spawn(host.run(queue, token.clone()));
        Ok(Self { control, token, tasks })
    }

    /// The handle for steering it.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Runs until `stop` is cancelled, then ends the simulator.
    pub async fn run_until(self, stop: CancellationToken) {
        stop.cancelled().await;
        self.stop().await;
    }

    /// Closes all connections and removes the socket file.
    pub async fn stop(self) {
        self.token.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.token.cancel();
    }
}
