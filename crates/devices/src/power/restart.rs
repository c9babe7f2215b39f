//! Restarting the firmware when its power is back.

use std::sync::Arc;
use std::time::Duration;

use fwhost::{FwHost, HostEvent, Restart};
use parking_lot::Mutex;
use protocol::FwhostState;
use runtime::StopToken;
use tokio::sync::Notify;

/// Remembers that a board has got power, and restarts the firmware once the firmware host can be told.
pub(crate) struct Restarter {
    host: FwHost,
    /// The pause before the restart, while one is due.
    due: Mutex<Option<Duration>>,
    wake: Arc<Notify>,
}

impl Restarter {
    pub(crate) fn new(host: FwHost) -> Arc<Self> {
        let wake = Arc::new(Notify::new());
        let woken = wake.clone();
        host.on_event(move |event| {
            if matches!(event, HostEvent::Started(_)) {
                woken.notify_one();
            }
        });
        Arc::new(Self { host, due: Mutex::default(), wake })
    }

    /// A board has power. A host that is ready has been there all the time.
    pub(crate) fn powered(&self, delay: Duration) {
        if self.host.status().state != FwhostState::Ready {
            *self.due.lock() = Some(delay);
            self.wake.notify_one();
        }
    }

    /// A board has none any more.
    pub(crate) fn unpowered(&self) {
        *self.due.lock() = None;
    }

    /// Restarts when it is due, until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: StopToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.work() => {}
        }
    }

    async fn work(&self) {
        loop {
            self.wake.notified().await;
            let Some(delay) = *self.due.lock() else { continue };
            if self.must_wait() {
                continue;
            }
            tokio::time::sleep(delay).await;
            // Meanwhile it may have gone off again, or the host restarted by itself.
            if self.must_wait() || self.due.lock().take().is_none() || self.host.status().state == FwhostState::Ready {
                continue;
            }
            tracing::info!("restarting the firmware: its power is back");
            if let Err(error) = self.host.restart_gcode(Restart::Firmware).await {
                tracing::warn!(%error, "the firmware could not be restarted");
            }
        }
    }

    /// A host that is not there or still starting comes back with an event.
    fn must_wait(&self) -> bool {
        matches!(self.host.status().state, FwhostState::Disconnected | FwhostState::Startup)
    }
}
