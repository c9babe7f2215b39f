//! Logging in: one wording and one timing for every login that fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::event::UserName;
use protocol::{ApiError, ErrorKind, Event};
use rpc::{Call, Identity, Role, Transport, User, UserSource};
use runtime::Secret;

use super::sessions::Tokens;
use super::users::is_reserved;
use super::{Accounts, kept, now};
use crate::directory::DirectoryError;
use crate::password::{MAX_PASSWORD, PasswordHash};
use crate::tables::StoredUser;

/// A failed login is answered this long after it began or later: no answer comes earlier because there is no such user.
const FAILURE_TIME: Duration = Duration::from_millis(500);

/// What somebody who wants in shows.
pub struct Login {
    /// Login name.
    pub username: String,
    /// Password.
    pub password: Secret<String>,
    /// Where the password is to be checked.
    pub source: UserSource,
}

/// Somebody who got in.
pub struct LoggedIn {
    /// Who.
    pub user: Arc<User>,
    /// Access token.
    pub token: String,
    /// Refresh token.
    pub refresh_token: String,
}

impl LoggedIn {
    pub(super) fn new(user: Arc<User>, tokens: Tokens) -> Self {
        Self { user, token: tokens.access, refresh_token: tokens.refresh }
    }
}

/// The one text for every failed login.
fn refused() -> ApiError {
    ApiError::new(ErrorKind::Unauthorized, "Invalid username or password")
}

impl Accounts {
    /// Logs a user in. A login over a socket makes that socket the user's.
    ///
    /// # Errors
    /// 401 when the password does not fit, whatever the reason; 429 when too many log in at once.
    pub async fn log_in(&self, call: &Call, login: Login) -> Result<LoggedIn, ApiError> {
        let Login { username, password, source } = login;
        let proven = self.guarded(call, self.prove(&username, &password, source)).await?;
        let _changing = self.changing.lock().await;
        let owner = self.accept(&username, proven).await?;
        let (user, tokens) = self.begin_session(&owner, call).await?;
        if let (Transport::Socket, Some(connection)) = (call.transport, &call.connection) {
            connection.set_identity(Identity::User(user.clone()));
        }
        tracing::info!(user = %user.name, address = call.peer.map(|peer| tracing::field::display(peer.address)), "logged in");
        Ok(LoggedIn::new(user, tokens))
    }

    /// Checks a password within the rules for failures: they are counted by address, and none is answered early.
    pub(super) async fn guarded<T>(&self, call: &Call, proof: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
        let address = call.peer.map(|peer| peer.address);
        if let Some(address) = address
            && let Err(wait) = self.lockout.lock().begin(address, Instant::now())
        {
            let text = format!("Too many failed logins from this address; try again in {} seconds", wait.as_secs() + 1);
            return Err(ApiError::new(ErrorKind::Unauthorized, text));
        }
        let began = tokio::time::Instant::now();
        let result = proof.await;
        match &result {
            Ok(_) => address.into_iter().for_each(|address| self.lockout.lock().succeeded(address)),
            Err(error) => {
                if error.kind == ErrorKind::Unauthorized {
                    tracing::warn!(address = address.map(tracing::field::display), "a login failed");
                }
                tokio::time::sleep_until(began + FAILURE_TIME).await;
            }
        }
        result
    }

    async fn prove(&self, username: &str, password: &Secret<String>, source: UserSource) -> Result<Proof, ApiError> {
        let user = self.state.read().users.get(username).filter(|user| user.source == source).cloned();
        match source {
            UserSource::Core => {
                let stored = user.map_or_else(PasswordHash::nothing, |user| user.password);
                let password = password.clone();
                self.hasher.run(move || prove_by_hash(&stored, password.expose())).await?
            }
            UserSource::Ldap => self.prove_by_directory(username, password).await,
        }
    }

    async fn prove_by_directory(&self, username: &str, password: &Secret<String>) -> Result<Proof, ApiError> {
        let is_possible = is_usable_name(username) && !password.expose().is_empty() && password.expose().len() <= MAX_PASSWORD;
        let directory = self.directory.as_ref().filter(|_| is_possible).ok_or_else(refused)?;
        let name = directory.check(username, password).await.map_err(|error| match error {
            DirectoryError::Refused => refused(),
            DirectoryError::Unavailable(reason) => {
                tracing::warn!(reason, "the directory of users cannot be asked");
                ApiError::new(ErrorKind::Unauthorized, "The directory of users cannot be asked; try again later")
            }
        })?;
        let is_other = self.state.read().users.get(&name).is_some_and(|user| user.source != UserSource::Ldap);
        if is_other || !is_usable_name(&name) || is_reserved(&name) {
            tracing::warn!(user = name, "a user of the directory cannot log in, because the name is taken or cannot be used here");
            return Err(refused());
        }
        Ok(Proof::ByDirectory { name })
    }

    /// The user whose password was proven: still there, still with that password. The caller holds the lock on changes.
    async fn accept(&self, username: &str, proof: Proof) -> Result<StoredUser, ApiError> {
        let name = match &proof {
            Proof::ByDirectory { name } => name,
            Proof::ByHash { .. } => username,
        };
        let known = self.state.read().users.get(name).cloned();
        match (proof, known) {
            (Proof::ByHash { fits, better }, Some(mut user)) if user.password == fits => {
                if let Some(better) = better {
                    user.password = better;
                    self.put_user(&user).await?;
                    tracing::info!(user = %user.name, "the hash of an imported password was replaced");
                }
                Ok(user)
            }
            (Proof::ByDirectory { .. }, Some(user)) if user.source == UserSource::Ldap => Ok(user),
            (Proof::ByDirectory { name }, None) => {
                let password = PasswordHash::nothing();
                let user = StoredUser { name, source: UserSource::Ldap, role: Role::default(), password, created_on: now() };
                self.check_room()?;
                self.put_user(&user).await?;
                tracing::info!(user = %user.name, "user of the directory added");
                Ok(user)
            }
            _ => Err(refused()),
        }
    }

    /// Changes the caller's own password: all sessions end, the caller's goes on under a new key.
    ///
    /// # Errors
    /// 400 when the caller is no user with a password here or the new password cannot be used; 401 when the current one is wrong.
    pub(crate) async fn change_password(&self, call: &Call, current: Secret<String>, new: Secret<String>) -> Result<LoggedIn, ApiError> {
        let caller = call.identity.user().ok_or_else(|| ApiError::bad_request("No user is logged in here"))?.clone();
        if caller.source != UserSource::Core {
            return Err(ApiError::bad_request("The password of this user is kept in a directory and cannot be changed here"));
        }
        let new = check_password("new_password", new)?;
        let proof = self.guarded(call, self.prove(&caller.name, &current, UserSource::Core)).await?;
        let hash = self.hasher.run(move || PasswordHash::of(new.expose())).await??;
        let _changing = self.changing.lock().await;
        let mut owner = self.accept(&caller.name, proof).await?;
        owner.password = hash;
        self.put_user(&owner).await?;
        let ids = self.state.read().session_ids(|session| session.user.name == caller.name);
        let (user, tokens) = self.begin_session(&owner, call).await?;
        // The sockets of the caller's session go over to the new one; all others lose the user.
        let moved = Identity::User(user.clone());
        let is_callers = |identity: &Identity| identity.user().is_some_and(|user| user.session == caller.session);
        self.connections.change_identity(|identity| is_callers(identity).then(|| moved.clone()));
        let revoked = self.end_sessions(ids).await?;
        self.tell_only(call, Event::UserLoggedOut(UserName { username: caller.name.clone() }), revoked);
        tracing::info!(user = %caller.name, "password changed");
        Ok(LoggedIn::new(user, tokens))
    }
}

/// That a password fits.
enum Proof {
    /// The stored hash that it fits, and a better one of the same password where that one is of an old kind.
    ByHash { fits: PasswordHash, better: Option<PasswordHash> },
    /// The name that the directory keeps for the user.
    ByDirectory { name: String },
}

fn prove_by_hash(stored: &PasswordHash, password: &str) -> Result<Proof, ApiError> {
    if password.len() > MAX_PASSWORD || !stored.fits(password) {
        return Err(refused());
    }
    let better = if stored.is_outdated() { Some(PasswordHash::of(password)?) } else { None };
    Ok(Proof::ByHash { fits: stored.clone(), better })
}

/// Longest login name in bytes.
const MAX_NAME: usize = 128;

/// True for a name that shows as what it is and fits into a token.
pub(super) fn is_usable_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && name.trim() == name && !name.chars().any(|c| c.is_control() || is_invisible(c))
}

/// Characters that show as nothing or turn their neighbours around: with them two names can look the same.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A new password.
pub(super) fn check_password(argument: &str, password: Secret<String>) -> Result<Secret<String>, ApiError> {
    if password.expose().is_empty() || password.expose().len() > MAX_PASSWORD {
        return Err(ApiError::bad_request(format!("Argument [{argument}]: expected 1 to {MAX_PASSWORD} bytes")));
    }
    Ok(password)
}

impl Accounts {
    /// Writes a user down and then shows it. The caller holds the lock on changes.
    pub(super) async fn put_user(&self, user: &StoredUser) -> Result<(), ApiError> {
        self.users.put(user.clone()).await.map_err(kept)?;
        self.state.write().users.insert(user.name.clone(), user.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_usable_name;

    #[test]
    fn names_show_as_what_they_are() {
        for name in ["anna", "a b", "Ж", "名前"] {
            assert!(is_usable_name(name), "{name}");
        }
        for name in ["", " anna", "an\nna", "an\u{200b}na", "\u{202e}anna", "anna\u{feff}", &"a".repeat(129)] {
            assert!(!is_usable_name(name), "{name:?}");
        }
    }
}
