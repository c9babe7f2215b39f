//! The API key of the specification, and named keys with roles.

use std::sync::Arc;

use protocol::ApiError;
use rpc::{Identity, Role};
use schemars::JsonSchema;
use serde::Serialize;

use super::state::{ApiKey, NamedKey};
use super::{Accounts, kept, now};
use crate::random;
use crate::tables::StoredKey;

/// Named keys that there may be.
const MAX_KEYS: usize = 64;

/// Longest name of a key in bytes.
const MAX_KEY_NAME: usize = 64;

/// A key that is to be made.
pub struct NewKey {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// Unix seconds from which on it does not count.
    pub expires_on: Option<f64>,
}

/// A named key as administrators see it: the key itself was shown once.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KeyInfo {
    name: String,
    role: Role,
    /// Unix seconds, like the other times.
    created_on: f64,
    expires_on: Option<f64>,
    /// As far as noted, which is once a minute; null when it never was.
    last_used: Option<f64>,
}

impl Accounts {
    /// Who holds this key, if it is one.
    pub(super) fn api_key_holder(&self, key: &str) -> Option<Identity> {
        if !self.options.enable_api_key {
            return None;
        }
        let digest = random::digest_of(key);
        let state = self.state.read();
        if let Some(known) = state.api_key.as_ref().filter(|known| random::are_equal(&known.digest, &digest)) {
            return Some(Identity::Key(known.holder.clone()));
        }
        let named = state.keys.iter().find(|known| random::are_equal(&known.stored.digest, &digest))?;
        let now = now();
        if named.stored.expires_on.is_some_and(|end| end <= now) {
            return None;
        }
        if named.last_used.note(now) {
            self.used.notify_one();
        }
        Some(Identity::Key(named.holder.clone()))
    }

    /// The key of the specification and when it was made.
    ///
    /// # Errors
    /// 503 when keys could not be read.
    pub(crate) fn api_key(&self) -> Result<(String, f64), ApiError> {
        let state = self.state.read();
        let key = state.api_key.as_ref().ok_or_else(|| ApiError::unavailable("API keys cannot be read"))?;
        Ok((key.key.expose().clone(), key.made))
    }

    /// Replaces the key of the specification. It counts at once; connections that the old one opened stay (document 1, *Authentication*).
    ///
    /// # Errors
    /// When it cannot be written down.
    pub(crate) async fn renew_api_key(&self) -> Result<String, ApiError> {
        let _changing = self.changing.lock().await;
        let (key, made) = (random::letters_and_digits::<32>()?, now());
        self.keys.set_api_key(key.clone(), made).await.map_err(kept)?;
        self.state.write().api_key = Some(ApiKey::new(key.clone(), made));
        tracing::info!("API key replaced");
        Ok(key)
    }

    /// Makes a named key and gives it, this once.
    ///
    /// # Errors
    /// 400 for a name that is taken or not usable, for an end that is past, and when there are too many.
    pub async fn create_key(&self, new: NewKey) -> Result<String, ApiError> {
        let NewKey { name, role, expires_on } = new;
        if name.is_empty() || name.len() > MAX_KEY_NAME || name.trim() != name || name.chars().any(char::is_control) {
            return Err(ApiError::bad_request("Argument [name]: expected 1 to 64 bytes without control characters or outer spaces"));
        }
        let created_on = now();
        if expires_on.is_some_and(|end| end.is_nan() || end <= created_on) {
            return Err(ApiError::bad_request("Argument [expires_on]: expected a time in the future, in Unix seconds"));
        }
        let _changing = self.changing.lock().await;
        {
            let state = self.state.read();
            if state.keys.iter().any(|key| key.stored.name == name) {
                return Err(ApiError::bad_request(format!("A key named {name} exists already")));
            }
            if state.keys.len() >= MAX_KEYS {
                return Err(ApiError::bad_request(format!("There are {MAX_KEYS} keys already")));
            }
        }
        let key = random::letters_and_digits::<32>()?;
        let stored = StoredKey { name, role, digest: random::digest_of(&key), created_on, expires_on, last_used: None };
        self.keys.add(stored.clone()).await.map_err(kept)?;
        tracing::info!(name = %stored.name, role = role.as_str(), "API key created");
        self.state.write().keys.push(Arc::new(NamedKey::new(stored)));
        Ok(key)
    }

    /// Removes a named key; the connections that it opened become strangers'.
    ///
    /// # Errors
    /// 404 when there is no such key.
    pub(crate) async fn delete_key(&self, name: &str) -> Result<(), ApiError> {
        let _changing = self.changing.lock().await;
        if !self.state.read().keys.iter().any(|key| key.stored.name == name) {
            return Err(ApiError::not_found(format!("There is no key named {name}")));
        }
        self.keys.remove(name.to_owned()).await.map_err(kept)?;
        self.state.write().keys.retain(|key| key.stored.name != name);
        let is_lost = |identity: &Identity| matches!(identity, Identity::Key(holder) if holder.name.as_deref() == Some(name));
        self.oneshots.lock().forget(is_lost);
        self.connections.revoke(is_lost);
        tracing::info!(name, "API key deleted");
        Ok(())
    }

    /// The named keys, without the keys themselves.
    pub(crate) fn list_keys(&self) -> Vec<KeyInfo> {
        let state = self.state.read();
        let info = |key: &Arc<NamedKey>| {
            let StoredKey { name, role, created_on, expires_on, .. } = key.stored.clone();
            let last_used = key.last_used.get();
            KeyInfo { name, role, created_on, expires_on, last_used: (last_used > 0.0).then_some(last_used) }
        };
        let mut keys: Vec<_> = state.keys.iter().map(info).collect();
        keys.sort_by(|one, other| one.name.cmp(&other.name));
        keys
    }
}
