//! The handle of users, sessions and keys: everything is in memory, every change is on disk before it shows.

mod keys;
mod login;
mod sessions;
mod state;
mod users;

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use protocol::{ApiError, ErrorKind};
use rpc::{Connections, Identity, Peer, User, UserSource};
use store::{Store, StoreError};

use crate::directory::Directory;
use crate::hasher::Hasher;
use crate::lockout::{FREE_ATTEMPTS, Lockout};
use crate::oneshot::Oneshots;
use crate::random;
use crate::tables::{KeyTable, SessionTable, Users};
use crate::token::{TokenType, Unverified};
use crate::verified::Verified;
pub(crate) use keys::KeyInfo;
pub use keys::NewKey;
pub use login::{LoggedIn, Login};
pub(crate) use sessions::SessionInfo;
use state::State;

/// Seconds after which it is noted again that a session or a key was used; more often would only wear the disk.
const NOTED_EVERY: f64 = 60.0;

/// Options of `[authorization]` that concern users and keys.
#[derive(Debug, Clone)]
pub struct Options {
    /// API keys are accepted.
    pub enable_api_key: bool,
    /// Life of refresh tokens in days.
    pub login_timeout: u32,
    /// Failed logins of an address that are free.
    pub max_login_attempts: u32,
    /// Trusted addresses need a login as soon as there is a user.
    pub force_logins: bool,
    /// An earlier database was lost: that no user is known does not mean that there were none.
    pub users_may_be_lost: bool,
    /// Source of logins that name none.
    pub default_source: UserSource,
    /// Claim `iss` of tokens.
    pub issuer: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            enable_api_key: true,
            login_timeout: 90,
            max_login_attempts: FREE_ATTEMPTS,
            force_logins: false,
            users_may_be_lost: false,
            default_source: UserSource::Core,
            issuer: "http://localhost:7125".to_owned(),
        }
    }
}

/// Users, sessions and keys.
pub struct Accounts {
    options: Options,
    /// Source of logins that name none, as far as there is such a source.
    pub(crate) default_source: UserSource,
    pub(crate) directory: Option<Arc<dyn Directory>>,
    pub(crate) connections: Arc<Connections>,
    state: RwLock<State>,
    verified: Verified,
    oneshots: Mutex<Oneshots>,
    lockout: Mutex<Lockout>,
    hasher: Hasher,
    users: Users,
    sessions: SessionTable,
    keys: KeyTable,
    /// One change at a time: what is in memory is what is on disk.
    changing: tokio::sync::Mutex<()>,
    /// Something was used and that is to be noted.
    used: tokio::sync::Notify,
    /// When this server began, in Unix seconds.
    pub(crate) began: f64,
}

/// What a caller shows.
#[derive(Clone, Copy)]
pub enum Credential<'a> {
    /// A JSON Web Token from a login or a refresh.
    AccessToken(&'a str),
    /// The API key, or a named one.
    ApiKey(&'a str),
}

/// Why a token does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadToken;

impl Accounts {
    /// Accounts without anybody; [`Accounts::load`] brings those of `store`, which was opened with [`SCHEMA`](crate::SCHEMA).
    #[must_use]
    pub fn new(store: &Store, connections: Arc<Connections>, options: Options, directory: Option<Arc<dyn Directory>>) -> Arc<Self> {
        let default_source = if directory.is_some() { options.default_source } else { UserSource::Core };
        Arc::new(Self {
            default_source,
            lockout: Mutex::new(Lockout::new(options.max_login_attempts)),
            options,
            directory,
            connections,
            state: RwLock::default(),
            verified: Verified::default(),
            oneshots: Mutex::default(),
            hasher: Hasher::new(),
            users: Users::new(store.clone()),
            sessions: SessionTable::new(store.clone()),
            keys: KeyTable::new(store.clone()),
            changing: tokio::sync::Mutex::default(),
            used: tokio::sync::Notify::new(),
            began: now(),
        })
    }

    /// Reads what is stored; makes the API key when there is none. Gives warnings for the owner.
    pub async fn load(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.default_source != self.options.default_source {
            warnings
                .push("[authorization] default_source: there is no directory server, so logins are checked in the own database".to_owned());
        }
        match self.read().await {
            Ok(state) => {
                if self.options.force_logins && self.options.users_may_be_lost && state.users.is_empty() {
                    warnings.push(
                        "[authorization] force_logins: the database that held the users may be lost, so trusted clients need a login; \
                         docs/access.md says how to get in"
                            .to_owned(),
                    );
                }
                *self.state.write() = state;
            }
            Err(error) => {
                // Whether there are users is not known, so `force_logins` must hold.
                self.state.write().is_unreadable = true;
                warnings.push(format!("[authorization] Users and API keys cannot be read, so nobody can log in: {}", error.message));
            }
        }
        warnings
    }

    async fn read(&self) -> Result<State, ApiError> {
        let users = self.users.all().await.map_err(kept)?;
        let sessions = self.sessions.all().await.map_err(kept)?;
        let keys = self.keys.all().await.map_err(kept)?;
        let (key, made) = match self.keys.api_key().await.map_err(kept)? {
            Some(key) => key,
            None => {
                let (key, made) = (random::letters_and_digits::<32>()?, now());
                self.keys.set_api_key(key.clone(), made).await.map_err(kept)?;
                (key, made)
            }
        };
        State::new(users, sessions, keys, key, made)
    }

    /// True when an address alone lets nobody in: `force_logins`, and there is a user, or was one as far as can be told.
    #[must_use]
    pub fn needs_login(&self) -> bool {
        let state = self.state.read();
        self.options.force_logins && (!state.users.is_empty() || state.is_unreadable || self.options.users_may_be_lost)
    }

    /// Who shows this credential.
    ///
    /// # Errors
    /// 401 in the words that clients compare.
    pub fn authenticate(&self, credential: Credential<'_>) -> Result<Identity, ApiError> {
        match credential {
            Credential::AccessToken(token) => {
                self.token(token, TokenType::Access).map(Identity::User).map_err(|_| ApiError::unauthorized())
            }
            Credential::ApiKey(key) => self.api_key_holder(key).ok_or_else(ApiError::unauthorized),
        }
    }

    /// True while what this identity was proven by still counts, with the same role.
    #[must_use]
    pub fn is_current(&self, identity: &Identity) -> bool {
        let state = self.state.read();
        match identity {
            Identity::User(user) => state.sessions.get(&user.session).is_some_and(|session| session.user == *user),
            Identity::Key(held) => {
                held.name.as_ref().is_none_or(|name| state.keys.iter().any(|key| key.stored.name == *name && key.stored.role == held.role))
            }
            _ => true,
        }
    }

    /// The user behind a token of this type that is valid now.
    pub(crate) fn token(&self, token: &str, wanted: TokenType) -> Result<Arc<User>, BadToken> {
        let digest = random::digest_of(token.get(..crate::token::MAX_TOKEN).unwrap_or(token));
        let known = self.verified.get(&digest);
        let (session, claims) = match known {
            // The signature was checked before; whether the session still lives is asked every time.
            Some(known) => (self.state.read().sessions.get(&known.session).cloned().ok_or(BadToken)?, known),
            None => {
                let unverified = Unverified::read(token).ok_or(BadToken)?;
                let session = self.state.read().sessions.get(&unverified.key_id).cloned().ok_or(BadToken)?;
                let claims = unverified.verify(&session.public, &self.options.issuer).ok_or(BadToken)?;
                if claims.username != session.user.name {
                    return Err(BadToken);
                }
                let known = crate::verified::Known { session: unverified.key_id, kind: claims.token_type, expires: claims.exp };
                self.verified.add(digest, known.clone());
                (session, known)
            }
        };
        let now = now();
        if claims.kind != wanted || (claims.expires as f64) < now {
            return Err(BadToken);
        }
        if session.last_used.note(now) {
            self.used.notify_one();
        }
        Ok(session.user.clone())
    }

    /// A oneshot token for the caller.
    ///
    /// # Errors
    /// 400 on the unix socket, which has no address that the token could be bound to.
    pub fn oneshot(&self, identity: &Identity, peer: Option<&Peer>) -> Result<String, ApiError> {
        let peer =
            peer.ok_or_else(|| ApiError::bad_request("A oneshot token belongs to the address of its caller; this connection has none"))?;
        let token = random::base32()?;
        self.oneshots.lock().add(token.clone(), identity.clone(), peer.address, Instant::now());
        Ok(token)
    }

    /// Uses a oneshot token up.
    pub(crate) fn take_oneshot(&self, token: &str, peer: &Peer) -> Option<Identity> {
        self.oneshots.lock().take(token, peer.address, Instant::now())
    }

    /// Notes now and then when sessions and keys were used and forgets sessions that have expired, until the server stops.
    pub async fn keep(self: Arc<Self>, stop: runtime::StopToken) {
        loop {
            tokio::select! {
                () = self.used.notified() => {}
                () = stop.cancelled() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(std::time::Duration::from_secs_f64(NOTED_EVERY)) => self.note_use().await,
                () = stop.cancelled() => return self.note_use().await,
            }
        }
    }

    async fn note_use(&self) {
        let (sessions, keys) = self.state.read().take_used();
        let noted = async {
            self.sessions.touch(sessions).await?;
            self.keys.touch(keys).await
        };
        if let Err(error) = noted.await {
            tracing::warn!(%error, "it could not be noted when sessions and keys were used");
        }
        self.drop_expired().await;
    }
}

/// Unix seconds.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// A fault of the store, for clients.
#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn kept(error: StoreError) -> ApiError {
    let kind = match error {
        StoreError::Full => ErrorKind::Storage,
        ref error if error.kind() == store::ErrorKind::Internal => ErrorKind::Internal,
        _ => ErrorKind::Unavailable,
    };
    ApiError::new(kind, error.to_string())
}

#[cfg(test)]
mod tests;
