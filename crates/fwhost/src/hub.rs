//! The subscription hub: who wants what, grouped by equal selections so that each distinct one is serialised once.

use std::collections::HashMap;
use std::sync::Arc;

use protocol::status::{Selection, StatusDiff};

use crate::sink::{StatusSink, SubscriberId};

/// Everybody with the same selection.
type Group = Vec<(SubscriberId, Arc<dyn StatusSink>)>;

/// All subscriptions.
#[derive(Default)]
pub(crate) struct Hub {
    groups: HashMap<Arc<Selection>, Group>,
    /// Where each subscriber is.
    subscribers: HashMap<SubscriberId, Arc<Selection>>,
}

impl Hub {
    /// Adds a subscription, in place of the subscriber's earlier one.
    pub(crate) fn add(&mut self, subscriber: SubscriberId, sink: Arc<dyn StatusSink>, selection: Selection) {
        self.remove(subscriber);
        let selection = match self.groups.get_key_value(&selection) {
            Some((shared, _)) => shared.clone(),
            None => Arc::new(selection),
        };
        self.groups.entry(selection.clone()).or_default().push((subscriber, sink));
        self.subscribers.insert(subscriber, selection);
    }

    pub(crate) fn remove(&mut self, subscriber: SubscriberId) {
        let Some(selection) = self.subscribers.remove(&subscriber) else { return };
        if let Some(sinks) = self.groups.get_mut(&selection) {
            sinks.retain(|(other, _)| *other != subscriber);
            if sinks.is_empty() {
                self.groups.remove(&selection);
            }
        }
    }

    /// Gives every subscriber its part of `diff`.
    pub(crate) fn publish(&self, diff: &Arc<StatusDiff>) {
        for (selection, sinks) in &self.groups {
            if let Some(frame) = diff.notification(selection) {
                for (_, sink) in sinks {
                    sink.push(&frame, diff, selection);
                }
            }
        }
    }

    /// Ends all subscriptions.
    pub(crate) fn reset(&mut self) {
        self.subscribers.clear();
        for (_, sink) in self.groups.drain().flat_map(|(_, sinks)| sinks) {
            sink.reset();
        }
    }
}
