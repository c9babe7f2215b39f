//! Sessions: their beginning, their tokens, their end.

use std::sync::Arc;

use protocol::event::UserName;
use protocol::{ApiError, Event};
use rpc::{Access, Call, Connection, Identity, User};
use schemars::JsonSchema;
use serde::Serialize;

use super::state::Session;
use super::{Accounts, kept, now};
use crate::random;
use crate::tables::{StoredSession, StoredUser};
use crate::token::{ACCESS_LIFETIME, SigningKey, TokenType};

/// Sessions that one user may have; the one that was used longest ago gives way to a new one.
const MAX_SESSIONS_PER_USER: usize = 64;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The two tokens of a login.
pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) refresh: String,
}

/// A session as its owner and administrators see it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionInfo {
    /// Names the session in `access.sessions.delete`.
    session_id: String,
    username: String,
    /// Unix seconds, like the other times.
    created_on: f64,
    /// As far as noted, which is once a minute.
    last_used: f64,
    /// End of the refresh token.
    expires_on: f64,
    /// Where the login came from; null on the unix socket.
    address: Option<String>,
    /// How the program behind the login called itself, if it did.
    client: Option<String>,
    /// True for the session of the caller.
    current: bool,
}

impl Accounts {
    /// Begins a session of a user. The caller holds the lock on changes.
    pub(super) async fn begin_session(&self, owner: &StoredUser, call: &Call) -> Result<(Arc<User>, Tokens), ApiError> {
        let began = now();
        let stored = StoredSession {
            id: random::base64url()?,
            user_name: owner.name.clone(),
            seed: random::bytes()?,
            created_on: began,
            last_used: began,
            expires_on: began + f64::from(self.options.login_timeout) * SECONDS_PER_DAY,
            address: call.peer.map(|peer| peer.address.to_string()),
            client: call.connection.as_ref().and_then(|connection| connection.client()).map(|client| client.name),
        };
        let session = Session::new(stored.clone(), owner)?;
        let tokens = Tokens { access: self.sign(&session, TokenType::Access)?, refresh: self.sign(&session, TokenType::Refresh)? };
        self.make_room_for_session(&owner.name).await?;
        self.sessions.add(stored).await.map_err(kept)?;
        let user = session.user.clone();
        self.state.write().sessions.insert(user.session.clone(), Arc::new(session));
        Ok((user, tokens))
    }

    async fn make_room_for_session(&self, username: &str) -> Result<(), ApiError> {
        let oldest = {
            let state = self.state.read();
            let own: Vec<_> = state.sessions.values().filter(|session| session.user.name == username).collect();
            let oldest = own.iter().min_by(|one, other| one.last_used.get().total_cmp(&other.last_used.get()));
            oldest.filter(|_| own.len() >= MAX_SESSIONS_PER_USER).map(|session| session.stored.id.clone())
        };
        if let Some(oldest) = oldest {
            self.end_sessions(vec![oldest]).await?;
        }
        Ok(())
    }

    fn sign(&self, session: &Session, kind: TokenType) -> Result<String, ApiError> {
        #[allow(clippy::cast_possible_truncation, reason = "seconds of this era")]
        let (issued, end) = (now() as i64, session.stored.expires_on as i64);
        let expires = if kind == TokenType::Access { issued + ACCESS_LIFETIME } else { end };
        let key = SigningKey::from_seed(&session.stored.seed)?;
        key.sign(&session.stored.id, &self.options.issuer, &session.user.name, kind, issued, expires)
    }

    /// A new access token for the session of a refresh token.
    ///
    /// # Errors
    /// 401 when the refresh token does not count.
    pub(crate) fn refresh(&self, token: &str) -> Result<(Arc<User>, String), ApiError> {
        let invalid = || ApiError::new(protocol::ErrorKind::Unauthorized, "Invalid refresh token");
        let user = self.token(token, TokenType::Refresh).map_err(|_| invalid())?;
        let session = self.state.read().sessions.get(&user.session).cloned().ok_or_else(invalid)?;
        Ok((user, self.sign(&session, TokenType::Access)?))
    }

    /// Ends sessions; the connections that lived by them become strangers'. The caller holds the lock on changes.
    pub(super) async fn end_sessions(&self, ids: Vec<String>) -> Result<Vec<Arc<Connection>>, ApiError> {
        self.sessions.remove(ids.clone()).await.map_err(kept)?;
        Ok(self.forget_sessions(&ids))
    }

    /// Forgets sessions that are not on disk any more.
    pub(super) fn forget_sessions(&self, ids: &[String]) -> Vec<Arc<Connection>> {
        self.state.write().sessions.retain(|id, _| !ids.contains(id));
        self.verified.clear();
        let is_lost = |identity: &Identity| identity.user().is_some_and(|user| ids.contains(&user.session));
        self.oneshots.lock().forget(is_lost);
        self.connections.revoke(is_lost)
    }

    /// Ends all sessions of the caller (wire/1-core.md section 11 no. 10).
    ///
    /// # Errors
    /// 400 when the caller is no user.
    pub(crate) async fn log_out(&self, call: &Call) -> Result<String, ApiError> {
        let user = call.identity.user().ok_or_else(|| ApiError::bad_request("No user is logged in here"))?.clone();
        let _changing = self.changing.lock().await;
        let ids = self.state.read().session_ids(|session| session.user.name == user.name);
        let revoked = self.end_sessions(ids).await?;
        tracing::info!(user = %user.name, "logged out");
        self.tell_all(call, Event::UserLoggedOut(UserName { username: user.name.clone() }), revoked);
        Ok(user.name.clone())
    }

    /// Sessions of one user or of all, as far as the caller may see them.
    ///
    /// # Errors
    /// 403 for sessions of others without the role of an administrator.
    pub(crate) fn list_sessions(&self, call: &Call, username: Option<&str>) -> Result<Vec<SessionInfo>, ApiError> {
        let own = call.identity.user().map(|user| user.name.as_str());
        let wanted = username.or(own);
        if own.is_none() || wanted != own {
            call.identity.check(Access::Admin)?;
        }
        let current = call.identity.user().map(|user| user.session.as_str());
        let state = self.state.read();
        let sessions = state.sessions.values().filter(|session| wanted.is_none_or(|name| name == session.user.name));
        let mut sessions: Vec<_> = sessions.map(|session| info(session, current)).collect();
        sessions.sort_by(|one, other| other.last_used.total_cmp(&one.last_used));
        Ok(sessions)
    }

    /// Ends one session. Users may end their own, administrators any.
    ///
    /// # Errors
    /// 404 when the caller knows no such session.
    pub(crate) async fn end_session(&self, call: &Call, id: &str) -> Result<String, ApiError> {
        let _changing = self.changing.lock().await;
        let session = self.state.read().sessions.get(id).cloned();
        let is_own = |session: &Arc<Session>| call.identity.user().is_some_and(|user| user.name == session.user.name);
        let may_all = call.identity.may(Access::Admin);
        let session =
            session.filter(|session| may_all || is_own(session)).ok_or_else(|| ApiError::not_found("There is no such session"))?;
        let revoked = self.end_sessions(vec![id.to_owned()]).await?;
        // Only those whose session it was: the user's other devices stay logged in.
        self.tell_only(call, Event::UserLoggedOut(UserName { username: session.user.name.clone() }), revoked);
        Ok(session.user.name.clone())
    }

    pub(super) async fn drop_expired(&self) {
        let _changing = self.changing.lock().await;
        let now = now();
        let expired = self.state.read().session_ids(|session| session.stored.expires_on < now);
        if !expired.is_empty()
            && let Err(error) = self.sessions.remove(expired.clone()).await
        {
            tracing::warn!(%error, "expired sessions could not be removed");
        }
        // Their tokens are void. Connections that they opened stay, as with an expired access token.
        self.state.write().sessions.retain(|id, _| !expired.contains(id));
    }

    /// Tells everybody after the answer, and those who just lost their identity as well.
    pub(super) fn tell_all(&self, call: &Call, event: Event, revoked: Vec<Arc<Connection>>) {
        let connections = self.connections.clone();
        call.after_answer(move || connections.emit_also(&event, &revoked));
    }

    /// Tells only those who just lost their identity, after the answer.
    pub(super) fn tell_only(&self, call: &Call, event: Event, revoked: Vec<Arc<Connection>>) {
        call.after_answer(move || {
            let frames = event.frames();
            revoked.iter().for_each(|connection| connection.outbox.push_all(&frames));
        });
    }
}

fn info(session: &Session, current: Option<&str>) -> SessionInfo {
    let StoredSession { id, user_name, created_on, expires_on, address, client, .. } = &session.stored;
    SessionInfo {
        session_id: id.clone(),
        username: user_name.clone(),
        created_on: *created_on,
        last_used: session.last_used.get(),
        expires_on: *expires_on,
        address: address.clone(),
        client: client.clone(),
        current: current == Some(id),
    }
}
