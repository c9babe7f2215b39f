//! Where status updates of a connection's subscription go.

use std::sync::Arc;

use fwhost::StatusSink;
use protocol::Frame;
use protocol::status::{Selection, StatusDiff};
use rpc::Outbox;

/// The outbox of a connection, as the subscription hub sees it.
pub(crate) struct ConnectionSink {
    pub(crate) outbox: Arc<Outbox>,
    /// Number of the request behind the subscription.
    pub(crate) subscription: u64,
}

impl StatusSink for ConnectionSink {
    fn push(&self, frame: &Frame, diff: &Arc<StatusDiff>, selection: &Arc<Selection>) {
        self.outbox.push_status(frame, diff, selection);
    }

    fn is_wanted(&self) -> bool {
        self.outbox.is_current(self.subscription)
    }

    fn begins(&self) {
        self.outbox.drop_status();
    }

    fn reset(&self) {
        self.outbox.drop_status();
    }
}
