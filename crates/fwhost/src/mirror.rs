//! What we know of the printer, and who is told of changes: cache, hub and freshness behind one lock.
//!
//! One lock, so that a subscription's answer and the updates after it fit together: the snapshot is taken and the subscriber added in
//! the same moment. Everything that the host sends goes in here in the order of arrival, answers of passed-through queries included, and
//! every event is derived from what really changed here (wire/5-fwhost.md section 12, trap 2).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use protocol::status::{Fields, HostStatus, ObjectDiff, Selection, StatusDiff, Text};
use tokio::time::Instant;

use crate::cache::Cache;
use crate::hub::Hub;
use crate::sink::{StatusSink, SubscriberId};

/// The mirror image of the printer.
#[derive(Default)]
pub(crate) struct Mirror {
    cache: Cache,
    hub: Hub,
    /// Objects of the standing subscription: these are followed, all others are only as true as the last query.
    standing: HashSet<Text>,
    eventtime: Option<Text>,
    last_tick: Option<Instant>,
    /// A command of ours completed after the last tick: the cache may not show its effects yet.
    command_since_tick: bool,
    /// Counts connections, so that a late answer cannot subscribe to the next one.
    epoch: u64,
}

impl Mirror {
    /// Which connection this is about.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The standing subscription was answered: complete values of `objects`, followed from now on.
    pub(crate) fn load(&mut self, objects: &[Text], status: &HostStatus<'_>, now: Instant) -> Option<Arc<StatusDiff>> {
        self.standing = objects.iter().cloned().collect();
        for name in objects {
            self.cache.add_object(name);
        }
        self.tick(status, now)
    }

    /// An update of the standing subscription.
    pub(crate) fn tick(&mut self, status: &HostStatus<'_>, now: Instant) -> Option<Arc<StatusDiff>> {
        self.last_tick = Some(now);
        self.command_since_tick = false;
        let Self { cache, standing, .. } = self;
        let objects = merge(cache, status, |name| standing.contains(name).then_some(&Fields::All));
        self.publish(status, objects)
    }

    /// The answer of a passed-through query. Does not make the cache fresh: it is about some objects only. Also tells whether it showed a
    /// field that the standing subscription does not carry although it follows the object.
    pub(crate) fn absorb(&mut self, asked: &Selection, status: &HostStatus<'_>) -> (Option<Arc<StatusDiff>>, bool) {
        let followed = |mirror: &Self| -> usize {
            asked.0.keys().filter(|name| mirror.standing.contains(*name)).map(|name| mirror.cache.field_count(name)).sum()
        };
        let before = followed(self);
        let objects = merge(&mut self.cache, status, |name| asked.0.get(name));
        (self.publish(status, objects), followed(self) > before)
    }

    /// A command of ours completed.
    pub(crate) fn command_completed(&mut self) {
        self.command_since_tick = true;
    }

    /// The connection is gone, and with it everything that was known.
    pub(crate) fn clear(&mut self) {
        let mut hub = std::mem::take(&mut self.hub);
        *self = Self { epoch: self.epoch + 1, ..Self::default() };
        hub.reset();
    }

    /// The answer for `selection` when the cache holds all of it and is true now: followed, not older than `limit`, and no command of
    /// ours completed since (read your own writes).
    pub(crate) fn fresh_answer(&self, selection: &Selection, now: Instant, limit: Duration) -> Option<Vec<u8>> {
        let fresh = !self.command_since_tick && self.last_tick.is_some_and(|tick| now.duration_since(tick) <= limit);
        let followed = || selection.0.keys().all(|name| self.standing.contains(name));
        (fresh && followed() && self.cache.covers(selection)).then(|| self.answer(selection))
    }

    /// `{"eventtime":…,"status":{…}}` as far as known.
    pub(crate) fn answer(&self, selection: &Selection) -> Vec<u8> {
        let mut out = br#"{"eventtime":"#.to_vec();
        out.extend_from_slice(self.eventtime.as_deref().unwrap_or("0.0").as_bytes());
        out.extend_from_slice(br#","status":"#);
        self.cache.write(&mut out, selection);
        out.push(b'}');
        out
    }

    pub(crate) fn field(&self, object: &str, field: &str) -> Option<Text> {
        self.cache.field(object, field).cloned()
    }

    /// Begins a subscription, unless nobody wants it any more: it may have waited for the host.
    pub(crate) fn subscribe(&mut self, subscriber: SubscriberId, sink: Arc<dyn StatusSink>, selection: Selection) {
        if sink.is_wanted() {
            sink.begins();
            self.hub.add(subscriber, sink, selection);
        }
    }

    pub(crate) fn unsubscribe(&mut self, subscriber: SubscriberId) {
        self.hub.remove(subscriber);
    }

    fn publish(&mut self, status: &HostStatus<'_>, objects: Vec<ObjectDiff>) -> Option<Arc<StatusDiff>> {
        let eventtime = Text::from(status.eventtime.get());
        self.eventtime = Some(eventtime.clone());
        if objects.is_empty() {
            return None;
        }
        let diff = Arc::new(StatusDiff { eventtime, objects });
        self.hub.publish(&diff);
        Some(diff)
    }
}

/// Merges the objects that are wanted; what changed.
fn merge<'f>(cache: &mut Cache, status: &HostStatus<'_>, wanted: impl Fn(&str) -> Option<&'f Fields>) -> Vec<ObjectDiff> {
    let mut changed = Vec::new();
    for (name, fields) in &status.status.0 {
        // The host answers `{}` for objects that it does not know.
        if let Some(wanted) = wanted(name).filter(|_| !fields.0.is_empty()) {
            changed.extend(cache.merge(name, fields, wanted));
        }
    }
    changed
}

#[cfg(test)]
mod tests;
