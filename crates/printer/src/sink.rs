//! Where status updates of a connection's subscription go.

use std::sync::Arc;

use fwhost::StatusSink;
use protocol::Frame;
use protocol::status::{Selection, StatusDiff};
use rpc::Outbox;

/// The outbox of a connection, as the subscription hub sees it.
pub(crate) struct ConnectionSink(pub(crate) Arc<Outbox>);

impl StatusSink for ConnectionSink {
    fn push(&self, frame: &Frame, diff: &Arc<StatusDiff>, selection: &Arc<Selection>) {
        self.0.push_status(frame, diff, selection);
    }

    fn reset(&self) {
        self.0.drop_status();
    }
}
