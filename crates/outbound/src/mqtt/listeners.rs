//! Who wants which messages. One subscription at the broker serves everybody who asked for the same filter.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Weak};

use super::client::Shared;
use super::{Message, MqttError, Qos, topic};

/// Different MQTT filters at one time.
pub const MAX_SUBSCRIPTIONS: usize = 1024;

/// Topics of which a listener with wildcards remembers that it has heard them.
const MAX_REMEMBERED: usize = 4096;

/// Takes messages; must not wait.
pub(super) type Callback = Arc<dyn Fn(&Message) + Send + Sync>;

/// A subscription; it ends when this is dropped.
pub struct Subscription {
    pub(super) shared: Weak<Shared>,
    pub(super) filter: String,
    pub(super) id: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.unsubscribe(&self.filter, self.id);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subscription").field(&self.filter).finish()
    }
}

/// What is to be said to the broker.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) subscribe: Vec<(String, Qos)>,
    pub(super) unsubscribe: Vec<String>,
}

/// All listeners.
#[derive(Default)]
pub(super) struct Listeners {
    exact: HashMap<String, Vec<Listener>>,
    wild: HashMap<String, Vec<Listener>>,
    last_id: u64,
    /// Filters about which the broker has to be told something.
    changed: BTreeSet<String>,
}

/// Who gets a message.
pub(super) struct Audience {
    pub(super) callbacks: Vec<Callback>,
    /// Whether the message could have come later to all of them; none when nobody gets it.
    pub(super) patience: Option<bool>,
}

struct Listener {
    id: u64,
    qos: Qos,
    may_wait: bool,
    callback: Callback,
    /// Topics that it has heard on this connection. A kept message comes again whenever anybody subscribes; it is news only to those who have
    /// not heard anything newer.
    heard: HashSet<String>,
}

impl Listener {
    /// True when the message is news.
    fn hears(&mut self, message: &Message) -> bool {
        if self.heard.contains(&message.topic) {
            return !message.retain;
        }
        if self.heard.len() < MAX_REMEMBERED {
            self.heard.insert(message.topic.clone());
        }
        true
    }
}

impl Listeners {
    /// Adds a listener; its number.
    pub(super) fn add(&mut self, filter: &str, qos: Qos, may_wait: bool, callback: Callback) -> Result<u64, MqttError> {
        topic::check_filter(filter)?;
        let is_known = self.table(filter).contains_key(filter);
        if !is_known && self.exact.len() + self.wild.len() >= MAX_SUBSCRIPTIONS {
            return Err(MqttError::TooManySubscriptions(MAX_SUBSCRIPTIONS));
        }
        self.last_id += 1;
        let listener = Listener { id: self.last_id, qos, may_wait, callback, heard: HashSet::new() };
        self.table(filter).entry(filter.to_owned()).or_default().push(listener);
        self.changed.insert(filter.to_owned());
        Ok(self.last_id)
    }

    /// Removes a listener. The caller drops what comes back after it has let go of the lock.
    pub(super) fn remove(&mut self, filter: &str, id: u64) -> Option<Callback> {
        let table = self.table(filter);
        let listeners = table.get_mut(filter)?;
        let at = listeners.iter().position(|listener| listener.id == id)?;
        let removed = listeners.swap_remove(at);
        if listeners.is_empty() {
            table.remove(filter);
            self.changed.insert(filter.to_owned());
        }
        Some(removed.callback)
    }

    /// A new connection: the broker knows nothing.
    pub(super) fn begin(&mut self) {
        self.changed = self.exact.keys().chain(self.wild.keys()).cloned().collect();
        for listener in self.exact.values_mut().chain(self.wild.values_mut()).flatten() {
            listener.heard.clear();
        }
    }

    /// What the broker has to be told since the last time.
    pub(super) fn changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        for filter in std::mem::take(&mut self.changed) {
            let qos = self.table(&filter).get(&filter).and_then(|listeners| listeners.iter().map(|listener| listener.qos).max());
            match qos {
                Some(qos) => changes.subscribe.push((filter, qos)),
                None => changes.unsubscribe.push(filter),
            }
        }
        changes
    }

    /// Who gets this message.
    pub(super) fn interested(&mut self, message: &Message) -> Audience {
        let exact = self.exact.get_mut(&message.topic).into_iter().flatten();
        let wild = self.wild.iter_mut().filter(|(filter, _)| topic::matches(filter, &message.topic)).flat_map(|(_, listeners)| listeners);
        let mut audience = Audience { callbacks: Vec::new(), patience: None };
        for listener in exact.chain(wild) {
            if listener.hears(message) {
                audience.callbacks.push(listener.callback.clone());
                audience.patience = Some(listener.may_wait && audience.patience != Some(false));
            }
        }
        audience
    }

    fn table(&mut self, filter: &str) -> &mut HashMap<String, Vec<Listener>> {
        if topic::has_wildcard(filter) { &mut self.wild } else { &mut self.exact }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(listeners: &mut Listeners, filter: &str, qos: Qos) -> u64 {
        listeners.add(filter, qos, false, Arc::new(|_| {})).unwrap()
    }

    fn heard(listeners: &mut Listeners, topic: &str, retain: bool) -> usize {
        listeners.interested(&Message { topic: topic.into(), payload: "".into(), qos: Qos::AtMostOnce, retain }).callbacks.len()
    }

    #[test]
    fn one_subscription_with_the_highest_quality_serves_all() {
        let mut listeners = Listeners::default();
        let first = add(&mut listeners, "a", Qos::AtMostOnce);
        let second = add(&mut listeners, "a", Qos::ExactlyOnce);
        assert_eq!(listeners.changes(), Changes { subscribe: vec![("a".into(), Qos::ExactlyOnce)], unsubscribe: vec![] });
        listeners.remove("a", first);
        assert_eq!(listeners.changes(), Changes::default(), "somebody still wants it");
        listeners.remove("a", second);
        assert_eq!(listeners.changes(), Changes { subscribe: vec![], unsubscribe: vec!["a".into()] });
        assert!(listeners.remove("a", second).is_none());
    }

    #[test]
    fn leaving_and_coming_back_is_one_subscription() {
        let mut listeners = Listeners::default();
        let id = add(&mut listeners, "a/#", Qos::AtMostOnce);
        listeners.remove("a/#", id);
        add(&mut listeners, "a/#", Qos::AtLeastOnce);
        assert_eq!(listeners.changes().subscribe, [("a/#".to_owned(), Qos::AtLeastOnce)]);
        listeners.begin();
        assert_eq!(listeners.changes().subscribe.len(), 1, "again after a new connection");
    }

    #[test]
    fn messages_reach_everybody_who_asked_for_them() {
        let mut listeners = Listeners::default();
        for filter in ["a/b", "a/+", "#", "a/c"] {
            add(&mut listeners, filter, Qos::AtMostOnce);
        }
        assert_eq!(heard(&mut listeners, "a/b", false), 3);
        assert_eq!(heard(&mut listeners, "x", false), 1);
        assert_eq!(heard(&mut listeners, "$SYS/x", false), 0);
    }

    #[test]
    fn a_message_may_wait_when_nobody_is_in_a_hurry() {
        let mut listeners = Listeners::default();
        listeners.add("+/b", Qos::AtMostOnce, true, Arc::new(|_| {})).unwrap();
        let mut may_wait = |topic: &str| {
            add(&mut listeners, "a/b", Qos::AtMostOnce);
            listeners.interested(&Message { topic: topic.into(), payload: "".into(), qos: Qos::AtMostOnce, retain: false }).patience
        };
        assert_eq!((may_wait("c/b"), may_wait("a/b"), may_wait("nobody")), (Some(true), Some(false), None));
    }

    #[test]
    fn a_kept_message_is_news_only_to_those_who_heard_nothing_yet() {
        let mut listeners = Listeners::default();
        add(&mut listeners, "a", Qos::AtMostOnce);
        assert_eq!(heard(&mut listeners, "a", false), 1);
        add(&mut listeners, "a", Qos::AtMostOnce);
        assert_eq!(heard(&mut listeners, "a", true), 1, "only the new one");
        assert_eq!(heard(&mut listeners, "a", true), 0);
        assert_eq!(heard(&mut listeners, "a", false), 2);
        listeners.begin();
        assert_eq!(heard(&mut listeners, "a", true), 2, "after a new connection it is news to all");
    }

    #[test]
    fn there_is_a_limit() {
        let mut listeners = Listeners::default();
        for n in 0..MAX_SUBSCRIPTIONS {
            add(&mut listeners, &n.to_string(), Qos::AtMostOnce);
        }
        let one_more = listeners.add("one more", Qos::AtMostOnce, false, Arc::new(|_| {}));
        assert_eq!(one_more, Err(MqttError::TooManySubscriptions(MAX_SUBSCRIPTIONS)));
        assert!(listeners.add("7", Qos::AtMostOnce, false, Arc::new(|_| {})).is_ok());
        assert!(listeners.add("a#", Qos::AtMostOnce, false, Arc::new(|_| {})).is_err());
    }
}
