//! What server info and printer info show about the link.

use std::sync::Arc;

use protocol::FwhostState;
use protocol::status::Text;

/// A consistent snapshot of the link.
#[derive(Debug, Clone)]
pub struct HostStatusView {
    /// As clients see it: `startup` until our own start sequence is done (wire/1-core.md section 8.3).
    pub state: FwhostState,
    /// The host's own explanation of its state; may have several lines.
    pub state_message: Text,
    /// The latest result of `info`, verbatim JSON; none while disconnected.
    pub info: Option<Text>,
    /// Endpoints that the host offers, sorted. Kept over reconnects: what was offered once answers 503 while the host is away.
    pub endpoints: Arc<[Text]>,
    /// Objects that clients need and that the printer's configuration lacks; empty unless ready.
    pub missing_requirements: Vec<&'static str>,
    /// Printer objects that have a status; empty until the start sequence is done.
    pub objects: Arc<[Text]>,
}

impl HostStatusView {
    /// True from the host's first answer to the end of the connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state != FwhostState::Disconnected
    }
}

impl Default for HostStatusView {
    fn default() -> Self {
        Self {
            state: FwhostState::Disconnected,
            state_message: "Firmware host not connected".into(),
            info: None,
            endpoints: Arc::default(),
            missing_requirements: Vec::new(),
            objects: Arc::default(),
        }
    }
}
