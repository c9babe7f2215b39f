//! What is in memory: the rows of the tables in a form that answers questions at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use protocol::ApiError;
use rpc::{KeyHolder, User};
use runtime::Secret;

use super::NOTED_EVERY;
use crate::random::{Digest, digest_of};
use crate::tables::{StoredKey, StoredSession, StoredUser};
use crate::token::SigningKey;

#[derive(Default)]
pub(super) struct State {
    pub(super) users: BTreeMap<String, StoredUser>,
    /// By key id.
    pub(super) sessions: HashMap<String, Arc<Session>>,
    pub(super) keys: Vec<Arc<NamedKey>>,
    pub(super) api_key: Option<ApiKey>,
    /// The tables could not be read.
    pub(super) is_unreadable: bool,
}

/// A session whose user exists.
pub(super) struct Session {
    pub(super) stored: StoredSession,
    pub(super) public: Vec<u8>,
    pub(super) user: Arc<User>,
    pub(super) last_used: LastUsed,
}

pub(super) struct NamedKey {
    pub(super) stored: StoredKey,
    pub(super) holder: Arc<KeyHolder>,
    pub(super) last_used: LastUsed,
}

/// The one key of the specification.
pub(super) struct ApiKey {
    pub(super) key: Secret<String>,
    pub(super) digest: Digest,
    pub(super) made: f64,
    pub(super) holder: Arc<KeyHolder>,
}

impl ApiKey {
    pub(super) fn new(key: String, made: f64) -> Self {
        let holder = Arc::new(KeyHolder { name: None, role: rpc::Role::Admin });
        Self { digest: digest_of(&key), key: Secret::new(key), made, holder }
    }
}

/// Which session or key was used when.
pub(super) type Used = (String, f64);

/// When something was used, in Unix seconds, as far as it was noted.
pub(super) struct LastUsed {
    seconds: AtomicU64,
    is_new: AtomicBool,
}

impl LastUsed {
    pub(super) fn new(seconds: f64) -> Self {
        Self { seconds: AtomicU64::new(seconds.to_bits()), is_new: AtomicBool::new(false) }
    }

    pub(super) fn get(&self) -> f64 {
        f64::from_bits(self.seconds.load(Ordering::Relaxed))
    }

    /// True when this use is to be written down, because the last one was some time ago.
    pub(super) fn note(&self, now: f64) -> bool {
        if now - self.get() < NOTED_EVERY {
            return false;
        }
        self.seconds.store(now.to_bits(), Ordering::Relaxed);
        !self.is_new.swap(true, Ordering::Relaxed)
    }

    fn take_new(&self) -> Option<f64> {
        self.is_new.swap(false, Ordering::Relaxed).then(|| self.get())
    }
}

impl Session {
    pub(super) fn new(stored: StoredSession, owner: &StoredUser) -> Result<Self, ApiError> {
        let public = SigningKey::from_seed(&stored.seed)?.public();
        let last_used = LastUsed::new(stored.last_used);
        let user = User { name: owner.name.clone(), source: owner.source, role: owner.role, session: stored.id.clone() };
        Ok(Self { stored, public, user: Arc::new(user), last_used })
    }
}

impl NamedKey {
    pub(super) fn new(stored: StoredKey) -> Self {
        let holder = Arc::new(KeyHolder { name: Some(stored.name.clone()), role: stored.role });
        Self { holder, last_used: LastUsed::new(stored.last_used.unwrap_or_default()), stored }
    }
}

impl State {
    pub(super) fn new(
        users: Vec<StoredUser>,
        sessions: Vec<StoredSession>,
        keys: Vec<StoredKey>,
        api_key: String,
        made: f64,
    ) -> Result<Self, ApiError> {
        let users: BTreeMap<_, _> = users.into_iter().map(|user| (user.name.clone(), user)).collect();
        let sessions = sessions.into_iter().filter_map(|session| {
            let owner = users.get(&session.user_name)?;
            Some(Session::new(session, owner).map(|session| (session.stored.id.clone(), Arc::new(session))))
        });
        Ok(Self {
            sessions: sessions.collect::<Result<_, _>>()?,
            keys: keys.into_iter().map(|key| Arc::new(NamedKey::new(key))).collect(),
            api_key: Some(ApiKey::new(api_key, made)),
            users,
            is_unreadable: false,
        })
    }

    /// Ids of the sessions that `wanted` picks.
    pub(super) fn session_ids(&self, wanted: impl Fn(&Session) -> bool) -> Vec<String> {
        self.sessions.values().filter(|session| wanted(session)).map(|session| session.stored.id.clone()).collect()
    }

    /// When sessions and keys were used, where that is not written down yet.
    pub(super) fn take_used(&self) -> (Vec<Used>, Vec<Used>) {
        let sessions = self.sessions.values().filter_map(|session| Some((session.stored.id.clone(), session.last_used.take_new()?)));
        let keys = self.keys.iter().filter_map(|key| Some((key.stored.name.clone(), key.last_used.take_new()?)));
        (sessions.collect(), keys.collect())
    }
}
