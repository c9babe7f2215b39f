//! The receiving end of a status subscription.

use std::sync::Arc;

use protocol::Frame;
use protocol::status::{Selection, StatusDiff};

/// Who subscribes: a connection or a component. One subscription each; a new one replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberId(pub u64);

/// Takes status updates. Called with the cache locked: a sink enqueues and returns, and never calls [`crate::FwHost`] from here.
pub trait StatusSink: Send + Sync {
    /// A finished `notify_status_update`, shared by all equal selections. `diff` is everything that changed at this tick and `selection` the
    /// subscriber's, for a slow reader that merges updates ([`protocol::status::PendingStatus`]).
    fn push(&self, frame: &Frame, diff: &Arc<StatusDiff>, selection: &Arc<Selection>);

    /// True while the subscription that this sink belongs to is still wanted: not when its subscriber has gone or has asked for something else
    /// meanwhile. Asked with the cache locked, right before the subscription begins.
    fn is_wanted(&self) -> bool {
        true
    }

    /// The subscription begins here, in place of the subscriber's earlier one. Called with the cache locked.
    fn begins(&self) {}

    /// The subscription ended because the host is gone. Not called when the subscriber itself replaced or cancelled it.
    fn reset(&self) {}
}
