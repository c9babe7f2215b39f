//! Restarting the firmware when its power is back.

use std::collections::BTreeMap;
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
    due: Mutex<Due>,
    wake: Arc<Notify>,
}

/// Who has got power since the firmware was last ready.
#[derive(Default)]
struct Due {
    /// The devices, with the pause before the restart.
    devices: BTreeMap<String, Duration>,
    /// Counts the changes.
    generation: u64,
}

impl Due {
    /// The longest pause, and the count of now; none when no restart is due.
    fn pause(&self) -> Option<(Duration, u64)> {
        self.devices.values().max().map(|pause| (*pause, self.generation))
    }
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
    pub(crate) fn powered(&self, device: &str, delay: Duration) {
        if self.host.status().state != FwhostState::Ready {
            let mut due = self.due.lock();
            due.devices.insert(device.to_owned(), delay);
            due.generation += 1;
            self.wake.notify_one();
        }
    }

    /// A board has none.
    pub(crate) fn unpowered(&self, device: &str) {
        let mut due = self.due.lock();
        if due.devices.remove(device).is_some() {
            due.generation += 1;
            self.wake.notify_one();
        }
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
            if self.must_wait() {
                continue;
            }
            let Some((pause, generation)) = self.due.lock().pause() else { continue };
            tokio::time::sleep(pause).await;
            // Meanwhile boards may have come and gone, which wakes us again, or the host was restarted.
            if self.must_wait() || self.due.lock().generation != generation {
                continue;
            }
            self.due.lock().devices.clear();
            if self.host.status().state == FwhostState::Ready {
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
