//! LED strips and what templates call, wired to the rest.

use std::sync::Arc;

use devices::led::LedStrips;
use devices::settings::InstrumentSettings;
use fwhost::FwHost;
use outbound::Client;
use rpc::{Connections, Registry};
use runtime::Supervisor;

/// All of them.
pub struct Instruments {
    strips: Arc<LedStrips>,
    /// Operations are declared also when nothing is configured: for the contract.
    is_complete: bool,
}

impl Instruments {
    /// Builds them; nothing runs yet.
    pub fn new(settings: &InstrumentSettings, host: &FwHost, connections: &Arc<Connections>, client: &Client) -> Self {
        Self { strips: LedStrips::new(settings.led.clone(), host.clone(), connections, client), is_complete: false }
    }

    /// With the operations of everything that could be configured.
    pub fn complete(self) -> Self {
        Self { is_complete: true, ..self }
    }

    /// Names of those that are configured, as clients look them up.
    pub fn components(&self) -> Vec<&'static str> {
        if self.strips.is_empty() { Vec::new() } else { vec!["led", "wled"] }
    }

    /// Declares the operations of those that are configured.
    pub fn register(&self, registry: &mut Registry) {
        if self.is_complete || !self.strips.is_empty() {
            self.strips.register(registry);
        }
    }

    /// Lets them work.
    pub fn start(&self, supervisor: &Supervisor) {
        self.strips.start(supervisor);
    }

    /// Lets go of everything that would keep the server's parts alive.
    pub fn close(&self) {
        self.strips.close();
    }
}
