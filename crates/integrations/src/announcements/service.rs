//! The handle: announcements in memory and in the store. What clients see is replaced as a whole, after it is kept.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use outbound::{Client, Validators};
use parking_lot::Mutex;
use protocol::announcement::{Announcement, AnnouncementEntries, AnnouncementId};
use protocol::vocabulary::CORE_NAMESPACE;
use protocol::{ApiError, Event, Form};
use rpc::Connections;
use serde_json::value::{RawValue, to_raw_value};
use store::namespace::table;
use store::{Key, Namespace, Store, StoreError};
use tokio::sync::Notify;

use super::board::{Board, Changes, Notice};
use super::feed;
use super::options::AnnouncementOptions;
use super::rss::Item;
use super::schedule::Schedule;
use crate::fault::to_api;

/// The announcements, by six hexadecimal digits.
const ENTRIES: Namespace = Namespace::fixed("announcements");

/// Holds, below `announcements`, the subscriptions of clients and the validators of feeds.
const OWN: Namespace = Namespace::fixed(CORE_NAMESPACE.neutral);

/// The key there, and the member with the subscriptions.
const OWN_KEY: &str = "announcements";
const STORED_FEEDS: &str = "stored_feeds";

/// Feeds that clients may subscribe to.
const MAX_STORED_FEEDS: usize = 32;

/// Dismissals that lapse within this time after the start end at the start, in seconds.
const WAKE_MARGIN: f64 = 10.0;

/// What the component is made with.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The section.
    pub options: AnnouncementOptions,
    /// Where `<feed>.xml` is read from in developer mode.
    pub folder: PathBuf,
}

/// All announcements and feeds.
pub struct Announcements {
    pub(super) settings: Settings,
    pub(super) client: Client,
    pub(super) schedule: Mutex<Schedule>,
    /// The local files that were read last.
    pub(super) seen_files: Mutex<HashMap<String, FileState>>,
    /// Wakes the worker: dismissals or feeds have changed.
    pub(super) changed: Notify,
    state: ArcSwap<State>,
    /// One change at a time.
    changing: tokio::sync::Mutex<()>,
    store: Store,
    connections: Arc<Connections>,
}

#[derive(Debug, Clone, Default)]
struct State {
    board: Board,
    /// Subscriptions of clients.
    stored_feeds: Vec<String>,
    validators: BTreeMap<String, Validators>,
}

/// What tells one state of a file from another: time of the last change and size.
pub(super) type FileState = (SystemTime, u64);

/// One change of a record: the new value, or none when it goes.
type Record = (Namespace, Key, Option<Box<RawValue>>);

impl Announcements {
    /// A board without entries; they follow with [`Announcements::load`].
    #[must_use]
    pub fn new(settings: Settings, store: Store, connections: Arc<Connections>, client: Client) -> Arc<Self> {
        Arc::new(Self {
            settings,
            client,
            schedule: Mutex::default(),
            seen_files: Mutex::default(),
            changed: Notify::new(),
            state: ArcSwap::default(),
            changing: tokio::sync::Mutex::default(),
            store,
            connections,
        })
    }

    /// Reads what was kept. Dismissals that have lapsed meanwhile end silently.
    pub async fn load(&self) {
        let _changing = self.changing.lock().await;
        let read = |conn: &_| {
            let own = optional(table::get(conn, &OWN, Some(&own_key([])?)))?;
            Ok((optional(table::get(conn, &ENTRIES, None))?, own))
        };
        let (entries, own) = match self.store.read(read).await {
            Ok(kept) => kept,
            Err(error) => return tracing::error!(%error, "the announcements cannot be read"),
        };
        let mut state = State { board: entries.map(|entries| Board::read(&entries)).unwrap_or_default(), ..State::default() };
        if let Some(own) = own {
            state.read_own(&own);
        }
        let changes = state.board.wake(now() + WAKE_MARGIN);
        if let Err(error) = self.keep(state, &changes, Vec::new()).await {
            tracing::error!(%error, "announcements cannot be kept");
        }
    }

    /// The feeds in order: those that are always checked, those of the configuration, those of clients.
    pub(super) fn feeds(&self) -> Vec<String> {
        let mut feeds: Vec<String> = Vec::new();
        for feed in feed::defaults().chain(self.settings.options.subscriptions.clone()).chain(self.state.load().stored_feeds.clone()) {
            if !feeds.contains(&feed) {
                feeds.push(feed);
            }
        }
        feeds
    }

    pub(super) fn entries(&self, form: Form, with_dismissed: bool) -> Vec<Announcement> {
        self.state.load().board.shown(form, now(), with_dismissed)
    }

    pub(super) fn next_wake(&self) -> Option<f64> {
        self.state.load().board.next_wake()
    }

    pub(super) fn validators(&self, feed: &str) -> Validators {
        self.state.load().validators.get(feed).cloned().unwrap_or_default()
    }

    pub(super) async fn dismiss(&self, entry_id: &str, wake_time: Option<f64>) -> Result<(), ApiError> {
        let _changing = self.changing.lock().await;
        let mut state = self.copy();
        let changes = state.board.dismiss(entry_id, wake_time, now())?;
        if !changes.is_empty() {
            self.keep(state, &changes, Vec::new()).await.map_err(to_api)?;
            self.changed.notify_one();
            self.connections.emit(&Event::AnnouncementDismissed(AnnouncementId { entry_id: entry_id.to_owned() }));
        }
        Ok(())
    }

    /// Ends the dismissals that have lapsed.
    pub(super) async fn wake(&self) -> Result<(), StoreError> {
        let _changing = self.changing.lock().await;
        let mut state = self.copy();
        let changes = state.board.wake(now());
        if changes.is_empty() {
            return Ok(());
        }
        let woken: Vec<_> = changes.put.iter().filter_map(|key| Some(state.board.get(*key)?.entry_id.clone())).collect();
        self.keep(state, &changes, Vec::new()).await?;
        for entry_id in woken {
            self.connections.emit(&Event::AnnouncementWake(AnnouncementId { entry_id }));
        }
        Ok(())
    }

    /// Takes over what a feed holds; true when entries came or went.
    pub(super) async fn take(&self, feed: &str, items: &[Item], validators: Validators) -> Result<bool, StoreError> {
        let _changing = self.changing.lock().await;
        if !self.feeds().iter().any(|known| known == feed) {
            // Removed while it was asked.
            return Ok(false);
        }
        let mut state = self.copy();
        let changes = state.board.take_feed(feed, items, now());
        let mut records = Vec::new();
        for (name, value) in [("etag", &validators.etag), ("last_modified", &validators.last_modified)] {
            let value = value.as_ref().map(to_raw_value).transpose().map_err(|error| StoreError::BadValue(error.to_string()))?;
            records.push((OWN, own_key([feed, name])?, value));
        }
        let is_new = state.validators.insert(feed.to_owned(), validators.clone()).as_ref() != Some(&validators);
        if !changes.is_empty() || is_new {
            self.keep(state, &changes, records).await?;
        }
        if !changes.is_empty() {
            self.tell();
        }
        Ok(!changes.is_empty())
    }

    /// Subscribes to a feed; false when that is so already.
    pub(super) async fn subscribe(&self, feed: &str) -> Result<bool, ApiError> {
        let _changing = self.changing.lock().await;
        if self.feeds().iter().any(|known| known == feed) {
            return Ok(false);
        }
        let mut state = self.copy();
        if state.stored_feeds.len() >= MAX_STORED_FEEDS {
            return Err(ApiError::bad_request(format!("There are {MAX_STORED_FEEDS} subscriptions already: remove one first")));
        }
        state.stored_feeds.push(feed.to_owned());
        let records = vec![state.feeds_record().map_err(to_api)?];
        self.keep(state, &Changes::default(), records).await.map_err(to_api)?;
        Ok(true)
    }

    /// Ends a subscription of a client and removes what came with it.
    pub(super) async fn unsubscribe(&self, feed: &str) -> Result<(), ApiError> {
        let _changing = self.changing.lock().await;
        let mut state = self.copy();
        let Some(position) = state.stored_feeds.iter().position(|known| known == feed) else {
            return Err(ApiError::bad_request(format!("Feed '{feed}' not stored")));
        };
        if self.settings.options.subscriptions.iter().any(|known| known == feed) {
            return Err(ApiError::bad_request(format!("Feed '{feed}' exists in the configuration, cannot remove")));
        }
        state.stored_feeds.remove(position);
        state.validators.remove(feed);
        let changes = state.board.remove_feed(feed);
        let records = vec![state.feeds_record().map_err(to_api)?, (OWN, own_key([feed]).map_err(to_api)?, None)];
        self.keep(state, &changes, records).await.map_err(to_api)?;
        self.schedule.lock().remove(feed);
        self.seen_files.lock().remove(feed);
        if !changes.is_empty() {
            self.tell();
        }
        Ok(())
    }

    /// Adds an announcement of a component and gives its id.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn announce(&self, notice: Notice) -> Result<String, StoreError> {
        let _changing = self.changing.lock().await;
        let entry_id = new_id(&notice.feed);
        let mut state = self.copy();
        let changes = state.board.announce(notice, entry_id.clone(), now());
        self.keep(state, &changes, Vec::new()).await?;
        self.tell();
        Ok(entry_id)
    }

    /// Makes this the only announcement of a component; none removes what it has announced, also before the last start.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn replace(&self, feed: &str, notice: Option<Notice>) -> Result<(), StoreError> {
        let _changing = self.changing.lock().await;
        let mut state = self.copy();
        let changes = state.board.replace(feed, notice, new_id(feed), now());
        if !changes.is_empty() {
            self.keep(state, &changes, Vec::new()).await?;
            self.tell();
        }
        Ok(())
    }

    /// Removes an announcement, for example because its reason is gone.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn withdraw(&self, entry_id: &str) -> Result<(), StoreError> {
        let _changing = self.changing.lock().await;
        let mut state = self.copy();
        let changes = state.board.withdraw(entry_id);
        if !changes.is_empty() {
            self.keep(state, &changes, Vec::new()).await?;
            self.tell();
        }
        Ok(())
    }

    fn copy(&self) -> State {
        State::clone(&self.state.load())
    }

    /// Writes what has changed in one transaction, then shows it.
    async fn keep(&self, state: State, changes: &Changes, mut records: Vec<Record>) -> Result<(), StoreError> {
        let key = |key: &u32| Key::from_parts([format!("{key:06X}")]);
        for gone in &changes.gone {
            records.push((ENTRIES, key(gone)?, None));
        }
        for put in &changes.put {
            let value = to_raw_value(&state.board.get(*put)).map_err(|error| StoreError::BadValue(error.to_string()))?;
            records.push((ENTRIES, key(put)?, Some(value)));
        }
        if !records.is_empty() {
            let write = move |conn: &_| {
                for (namespace, key, value) in &records {
                    match value {
                        Some(value) => table::post(conn, namespace, key, value)?,
                        None => optional(table::delete(conn, namespace, key)).map(drop)?,
                    }
                }
                Ok(())
            };
            self.store.write(write).await?;
        }
        self.state.store(Arc::new(state));
        Ok(())
    }

    fn tell(&self) {
        let entries = self.entries(self.connections.default_form(), true);
        self.connections.emit(&Event::AnnouncementUpdate(AnnouncementEntries { entries }));
    }
}

/// Id of an announcement that a component makes now.
fn new_id(feed: &str) -> String {
    format!("{feed}/{}", Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S"))
}

impl State {
    /// Reads `{"stored_feeds":["a"],"a":{"etag":"…"}}`.
    fn read_own(&mut self, json: &RawValue) {
        let members: BTreeMap<String, serde_json::Value> = serde_json::from_str(json.get()).unwrap_or_default();
        for (name, value) in members {
            if name == STORED_FEEDS {
                let names = value.as_array().into_iter().flatten().filter_map(|name| feed::parse(name.as_str()?).ok());
                self.stored_feeds = names.take(MAX_STORED_FEEDS).collect();
            } else {
                let text = |member: &str| value.get(member)?.as_str().map(str::to_owned);
                self.validators.insert(name, Validators { etag: text("etag"), last_modified: text("last_modified") });
            }
        }
    }

    fn feeds_record(&self) -> Result<Record, StoreError> {
        let value = to_raw_value(&self.stored_feeds).map_err(|error| StoreError::BadValue(error.to_string()))?;
        Ok((OWN, own_key([STORED_FEEDS])?, Some(value)))
    }
}

/// A key in our part of [`OWN`]; names of feeds may hold dots.
fn own_key<const N: usize>(members: [&str; N]) -> Result<Key, StoreError> {
    Key::from_parts(std::iter::once(OWN_KEY).chain(members).map(str::to_owned))
}

/// What is not there is no error here.
fn optional<T>(outcome: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match outcome {
        Err(StoreError::NotFound(_)) => Ok(None),
        other => other.map(Some),
    }
}

/// Unix seconds.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
