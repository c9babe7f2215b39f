//! The announcements and how they change, as pure functions of the time.

use std::collections::{BTreeMap, BTreeSet};

use protocol::announcement::Announcement;
use protocol::vocabulary::ANNOUNCEMENT_SOURCE;
use protocol::{ApiError, Form};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::feed;
use super::rss::Item;

/// Entries in all; further ones of feeds are left out, and of our own the oldest goes.
pub const MAX_ENTRIES: usize = 1000;

/// Longest time after which a dismissal lapses, in seconds: ten years.
const MAX_WAKE: f64 = 10.0 * 365.0 * 86400.0;

/// `source` of entries that our own components make.
const INTERNAL: &str = "internal";

/// One announcement as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) entry_id: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    priority: String,
    /// Unix seconds.
    #[serde(default)]
    date: f64,
    #[serde(default)]
    pub(super) dismissed: bool,
    /// Unix seconds.
    #[serde(default)]
    date_dismissed: Option<f64>,
    /// Unix seconds, unlike what clients see.
    #[serde(default)]
    dismiss_wake: Option<f64>,
    #[serde(default)]
    source: String,
    #[serde(default)]
    feed: String,
}

/// An announcement of one of our own components.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Name of the component.
    pub feed: String,
    /// Title.
    pub title: String,
    /// Text.
    pub description: String,
    /// Where there is more to read; may be empty.
    pub url: String,
    /// True for what people should be alerted to.
    pub is_high: bool,
}

/// Keys of records that are to be written, and of those that are gone.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) put: Vec<u32>,
    pub(super) gone: Vec<u32>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.put.is_empty() && self.gone.is_empty()
    }
}

/// All announcements, by the keys of their records.
#[derive(Debug, Clone, Default)]
pub(super) struct Board(BTreeMap<u32, Entry>);

impl Board {
    /// Reads the records of the database; what cannot be used is left out.
    pub(super) fn read(records: &RawValue) -> Self {
        let records: BTreeMap<String, Box<RawValue>> = serde_json::from_str(records.get()).unwrap_or_default();
        let read = |(key, json): (String, Box<RawValue>)| {
            let entry: Entry = serde_json::from_str(json.get()).ok()?;
            Some((u32::from_str_radix(&key, 16).ok()?, entry))
        };
        Self(records.into_iter().filter_map(read).take(MAX_ENTRIES).collect())
    }

    pub(super) fn get(&self, key: u32) -> Option<&Entry> {
        self.0.get(&key)
    }

    /// Takes over what a feed holds now: new entries come, those that it has no more go, known ones stay as they are.
    pub(super) fn take_feed(&mut self, feed: &str, items: &[Item], now: f64) -> Changes {
        let mut changes = self.remove_where(|entry| entry.is_of(feed) && !items.iter().any(|item| item.guid == entry.entry_id));
        for item in items {
            if self.0.len() >= MAX_ENTRIES || self.find(&item.guid).is_some() {
                continue;
            }
            changes.put.push(self.insert(Entry {
                entry_id: item.guid.clone(),
                url: item.link.clone(),
                title: item.title.clone(),
                description: item.description.clone(),
                priority: priority(item.is_high),
                date: item.date.unwrap_or(now),
                dismissed: false,
                date_dismissed: None,
                dismiss_wake: None,
                source: ANNOUNCEMENT_SOURCE.upstream.to_owned(),
                feed: feed.to_owned(),
            }));
        }
        changes
    }

    /// Removes what came with a feed.
    pub(super) fn remove_feed(&mut self, feed: &str) -> Changes {
        self.remove_where(|entry| entry.is_of(feed))
    }

    /// Adds an entry of a component under this id; the same id again is the same entry.
    pub(super) fn announce(&mut self, notice: Notice, entry_id: String, now: f64) -> Changes {
        let mut changes = self.remove_where(|entry| entry.entry_id == entry_id);
        if self.0.len() >= MAX_ENTRIES
            && let Some((oldest, _)) = self.0.iter().find(|(_, entry)| entry.source == INTERNAL)
        {
            let oldest = *oldest;
            self.0.remove(&oldest);
            changes.gone.push(oldest);
        }
        changes.put.push(self.insert(Entry {
            entry_id,
            url: notice.url,
            title: notice.title,
            description: notice.description,
            priority: priority(notice.is_high),
            date: now,
            dismissed: false,
            date_dismissed: None,
            dismiss_wake: None,
            source: INTERNAL.to_owned(),
            feed: notice.feed,
        }));
        changes
    }

    /// Puts an entry of a component in the place of all its others, or only removes them; one that says the same stays as it is.
    pub(super) fn replace(&mut self, feed: &str, notice: Option<Notice>, entry_id: String, now: f64) -> Changes {
        let is_own = |entry: &Entry| entry.source == INTERNAL && entry.feed == feed;
        let says = |entry: &Entry, notice: &Notice| (&entry.title, &entry.description) == (&notice.title, &notice.description);
        if let Some(notice) = &notice
            && self.0.values().any(|entry| is_own(entry) && says(entry, notice))
        {
            return self.remove_where(|entry| is_own(entry) && !says(entry, notice));
        }
        let mut changes = self.remove_where(is_own);
        if let Some(notice) = notice {
            let added = self.announce(notice, entry_id, now);
            changes.put.extend(added.put);
            changes.gone.extend(added.gone);
        }
        changes
    }

    /// Removes one entry.
    pub(super) fn withdraw(&mut self, entry_id: &str) -> Changes {
        self.remove_where(|entry| entry.entry_id == entry_id)
    }

    /// Dismisses an entry, for `wake_time` seconds or for ever. Nothing changes when it is dismissed already.
    ///
    /// # Errors
    /// 400 when there is no such entry, or the time makes no sense.
    pub(super) fn dismiss(&mut self, entry_id: &str, wake_time: Option<f64>, now: f64) -> Result<Changes, ApiError> {
        if wake_time.is_some_and(|seconds| !(0.0..=MAX_WAKE).contains(&seconds)) {
            return Err(ApiError::bad_request(format!("Argument [wake_time]: expected seconds from 0 to {MAX_WAKE}")));
        }
        let key = self.find(entry_id).ok_or_else(|| ApiError::bad_request(format!("No key matching entry id: {entry_id}")))?;
        let mut changes = Changes::default();
        if let Some(entry) = self.0.get_mut(&key).filter(|entry| !entry.dismissed) {
            (entry.dismissed, entry.date_dismissed, entry.dismiss_wake) = (true, Some(now), wake_time.map(|seconds| now + seconds));
            changes.put.push(key);
        }
        Ok(changes)
    }

    /// Ends the dismissals that lapse up to `until`.
    pub(super) fn wake(&mut self, until: f64) -> Changes {
        let mut changes = Changes::default();
        for (key, entry) in &mut self.0 {
            if entry.dismissed && entry.dismiss_wake.is_some_and(|wake| wake <= until) {
                (entry.dismissed, entry.date_dismissed, entry.dismiss_wake) = (false, None, None);
                changes.put.push(*key);
            }
        }
        changes
    }

    /// When the next dismissal lapses.
    pub(super) fn next_wake(&self) -> Option<f64> {
        self.0.values().filter(|entry| entry.dismissed).filter_map(|entry| entry.dismiss_wake).min_by(f64::total_cmp)
    }

    /// What clients see, newest first.
    pub(super) fn shown(&self, form: Form, now: f64, with_dismissed: bool) -> Vec<Announcement> {
        let mut shown: Vec<_> =
            self.0.values().filter(|entry| with_dismissed || !entry.dismissed).map(|entry| entry.shown(form, now)).collect();
        shown.sort_by(|one, other| other.date.total_cmp(&one.date));
        shown
    }

    fn find(&self, entry_id: &str) -> Option<u32> {
        self.0.iter().find(|(_, entry)| entry.entry_id == entry_id).map(|(key, _)| *key)
    }

    fn insert(&mut self, entry: Entry) -> u32 {
        let key = self.0.last_key_value().map_or(0, |(last, _)| last.wrapping_add(1));
        // Keys count up; after four thousand million entries the gaps are used.
        let key = if self.0.contains_key(&key) { (0..).find(|key| !self.0.contains_key(key)).unwrap_or(0) } else { key };
        self.0.insert(key, entry);
        key
    }

    fn remove_where(&mut self, is_gone: impl Fn(&Entry) -> bool) -> Changes {
        let gone: BTreeSet<u32> = self.0.iter().filter(|(_, entry)| is_gone(entry)).map(|(key, _)| *key).collect();
        self.0.retain(|key, _| !gone.contains(key));
        Changes { put: Vec::new(), gone: gone.into_iter().collect() }
    }
}

impl Entry {
    fn is_of(&self, feed: &str) -> bool {
        self.source != INTERNAL && self.feed == feed
    }

    fn shown(&self, form: Form, now: f64) -> Announcement {
        let source = if self.source == INTERNAL { INTERNAL } else { ANNOUNCEMENT_SOURCE.in_form(form) };
        Announcement {
            entry_id: self.entry_id.clone(),
            url: self.url.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            priority: self.priority.clone(),
            date: self.date,
            dismissed: self.dismissed,
            date_dismissed: self.date_dismissed,
            dismiss_wake: self.dismiss_wake.map(|wake| (wake - now).max(0.0)),
            source: source.to_owned(),
            feed: feed::shown(&self.feed, form),
        }
    }
}

fn priority(is_high: bool) -> String {
    if is_high { "high" } else { "normal" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(guid: &str, date: f64) -> Item {
        Item { guid: guid.to_owned(), title: guid.to_uppercase(), date: Some(date), ..Item::default() }
    }

    fn ids(board: &Board, with_dismissed: bool) -> Vec<String> {
        board.shown(Form::Neutral, 0.0, with_dismissed).into_iter().map(|entry| entry.entry_id).collect()
    }

    fn notice(feed: &str) -> Notice {
        Notice { feed: feed.to_owned(), title: "t".to_owned(), description: String::new(), url: String::new(), is_high: true }
    }

    #[test]
    fn a_feed_brings_and_takes_its_own() {
        let mut board = Board::default();
        board.take_feed("moonraker", &[item("a/1", 1.0), item("a/2", 2.0)], 9.0);
        board.take_feed("klipper", &[item("a/3", 3.0), item("a/1", 7.0)], 9.0);
        board.announce(notice("moonraker"), "moonraker/x".to_owned(), 5.0);
        assert_eq!(ids(&board, true), ["moonraker/x", "a/3", "a/2", "a/1"]);
        board.dismiss("a/2", None, 9.0).unwrap();
        let changes = board.take_feed("moonraker", &[item("a/2", 5.0)], 9.0);
        assert_eq!(changes, Changes { put: vec![], gone: vec![0] });
        assert_eq!(ids(&board, false), ["moonraker/x", "a/3"], "known ones stay as they are, also dismissed");
        assert!(board.take_feed("moonraker", &[item("a/2", 5.0)], 9.0).is_empty());
        board.take_feed("moonraker", &[], 9.0);
        board.take_feed("moonraker", &[item("a/2", 5.0)], 9.0);
        assert_eq!(ids(&board, false), ["moonraker/x", "a/2", "a/3"], "what returns is no longer dismissed");
        assert_eq!(board.remove_feed("klipper").gone.len(), 1);
        assert_eq!(board.withdraw("moonraker/x").gone.len(), 1);
    }

    #[test]
    fn dismissals_lapse() {
        let mut board = Board::default();
        board.take_feed("f", &[item("a", 1.0), item("b", 2.0)], 0.0);
        assert_eq!(board.dismiss("a", Some(60.0), 1000.0).unwrap().put, [0]);
        assert!(board.dismiss("a", Some(5.0), 1010.0).unwrap().is_empty(), "already dismissed");
        board.dismiss("b", None, 1000.0).unwrap();
        let a = &board.shown(Form::Neutral, 1020.0, true)[1];
        assert_eq!((a.dismissed, a.date_dismissed, a.dismiss_wake), (true, Some(1000.0), Some(40.0)));
        assert_eq!(board.next_wake(), Some(1060.0));
        assert!(board.wake(1059.0).is_empty());
        assert_eq!(board.wake(1060.0).put, [0]);
        assert_eq!((ids(&board, false), board.next_wake()), (vec!["a".to_owned()], None));
        assert_eq!(board.dismiss("x", None, 0.0).unwrap_err().message, "No key matching entry id: x");
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e18] {
            assert!(board.dismiss("a", Some(bad), 0.0).unwrap_err().message.contains("wake_time"));
        }
    }

    #[test]
    fn values_follow_the_caller() {
        let mut board = Board::default();
        board.take_feed("moonraker", &[item("a", 1.0)], 0.0);
        let shown = |form| board.shown(form, 0.0, true).remove(0);
        assert_eq!((shown(Form::Neutral).source.as_str(), shown(Form::Neutral).feed.as_str()), ("external", "core"));
        assert_eq!((shown(Form::Upstream).source.as_str(), shown(Form::Upstream).feed.as_str()), ("moonlight", "moonraker"));
    }

    #[test]
    fn records_are_read_forgivingly() {
        let records = r#"{"000000":{"entry_id":"a","date":5,"dismissed":true,"dismiss_wake":9,"source":"moonlight","feed":"f"},"00000B":{"entry_id":"b"},"x":{"entry_id":"c"},"01":5}"#;
        let mut board = Board::read(&RawValue::from_string(records.to_owned()).unwrap());
        assert_eq!((ids(&board, true), board.next_wake()), (vec!["a".to_owned(), "b".to_owned()], Some(9.0)));
        assert_eq!(board.take_feed("g", &[item("new", 1.0)], 0.0).put, [12]);
    }

    #[test]
    fn the_number_is_bounded() {
        let mut board = Board::default();
        for feed in 0..20 {
            let items: Vec<_> = (0..100).map(|n| item(&format!("{feed}/{n}"), 1.0)).collect();
            board.take_feed(&feed.to_string(), &items, 0.0);
        }
        assert_eq!(ids(&board, true).len(), MAX_ENTRIES);
        board.remove_feed("0");
        (0..200).for_each(|n| drop(board.announce(notice("x"), n.to_string(), f64::from(n))));
        assert!(ids(&board, true).len() <= MAX_ENTRIES && ids(&board, true)[0] == "199");
    }

    proptest! {
        /// Whatever happens, ids are unique, and a dismissed entry has a date.
        #[test]
        fn any_events_leave_it_in_order(events in proptest::collection::vec((0_u8..5, 0_u8..6, 0_u32..100), 0..60)) {
            let mut board = Board::default();
            for (now, (kind, which, time)) in events.into_iter().enumerate() {
                let (now, id) = (now as f64, format!("id{which}"));
                match kind {
                    0 => drop(board.take_feed("f", &(0..which).map(|n| item(&format!("id{n}"), 1.0)).collect::<Vec<_>>(), now)),
                    1 => drop(board.take_feed("g", &[item(&id, 1.0)], now)),
                    2 => drop(board.dismiss(&id, (time % 2 == 0).then_some(f64::from(time)), now)),
                    3 => drop(board.announce(notice("n"), id, now)),
                    _ => drop(board.wake(now)),
                }
                let mut all = ids(&board, true);
                let count = all.len();
                all.sort();
                all.dedup();
                prop_assert_eq!(all.len(), count);
                for entry in board.shown(Form::Neutral, now, true) {
                    prop_assert_eq!(entry.dismissed, entry.date_dismissed.is_some());
                    prop_assert!(entry.dismissed || entry.dismiss_wake.is_none());
                }
            }
        }
    }
}
