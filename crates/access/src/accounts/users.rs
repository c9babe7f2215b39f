//! Creating, deleting and listing users, and their roles.

use std::sync::Arc;

use protocol::event::UserName;
use protocol::{ApiError, Event};
use rpc::identity::{API_KEY_USER, TRUSTED_USER};
use rpc::{Call, Identity, Role, User, UserSource};
use runtime::Secret;

use super::login::{LoggedIn, check_password, is_usable_name};
use super::state::Session;
use super::{Accounts, kept, now};
use crate::password::PasswordHash;
use crate::tables::StoredUser;

/// Users that there may be.
const MAX_USERS: usize = 256;

impl Accounts {
    /// Creates a user and logs it in; the caller's own connection stays the caller's.
    ///
    /// # Errors
    /// 400 for a name that is taken, reserved or not usable, and for a password that is not usable.
    pub(crate) async fn create_user(&self, call: &Call, name: String, password: Secret<String>, role: Role) -> Result<LoggedIn, ApiError> {
        refuse_reserved(&name)?;
        if !is_usable_name(&name) {
            return Err(ApiError::bad_request(
                "Argument [username]: expected 1 to 128 bytes without control or invisible characters and outer spaces",
            ));
        }
        let password = check_password("password", password)?;
        self.check_new(&name)?;
        let password = self.hasher.run(move || PasswordHash::of(password.expose())).await??;
        let _changing = self.changing.lock().await;
        self.check_new(&name)?;
        let user = StoredUser { name, source: UserSource::Core, role, password, created_on: now() };
        self.put_user(&user).await?;
        let (identity, tokens) = self.begin_session(&user, call).await?;
        tracing::info!(user = %user.name, role = role.as_str(), "user created");
        self.tell_all(call, Event::UserCreated(UserName { username: user.name }), Vec::new());
        Ok(LoggedIn::new(identity, tokens))
    }

    fn check_new(&self, name: &str) -> Result<(), ApiError> {
        if self.state.read().users.contains_key(name) {
            return Err(ApiError::bad_request(format!("User {name} already exists")));
        }
        self.check_room()
    }

    /// Refuses one more user than there may be.
    pub(super) fn check_room(&self) -> Result<(), ApiError> {
        if self.state.read().users.len() >= MAX_USERS {
            return Err(ApiError::bad_request(format!("There are {MAX_USERS} users already")));
        }
        Ok(())
    }

    /// Deletes a user with all sessions.
    ///
    /// # Errors
    /// 400 for the caller's own account, for a reserved name and for an unknown one.
    pub(crate) async fn delete_user(&self, call: &Call, name: &str) -> Result<(), ApiError> {
        refuse_reserved(name)?;
        if call.identity.user().is_some_and(|user| user.name == name) {
            return Err(ApiError::bad_request("A user cannot delete the own account; another one has to do it"));
        }
        let _changing = self.changing.lock().await;
        self.known_user(name)?;
        self.users.remove(name.to_owned()).await.map_err(kept)?;
        let ids = self.state.read().session_ids(|session| session.user.name == name);
        self.state.write().users.remove(name);
        let revoked = self.forget_sessions(&ids);
        tracing::info!(user = name, "user deleted");
        self.tell_all(call, Event::UserDeleted(UserName { username: name.to_owned() }), revoked);
        Ok(())
    }

    /// Gives a user another role, at once on all connections.
    ///
    /// # Errors
    /// 400 for an unknown user.
    pub(crate) async fn set_role(&self, name: &str, role: Role) -> Result<(), ApiError> {
        let _changing = self.changing.lock().await;
        let user = StoredUser { role, ..self.known_user(name)? };
        self.put_user(&user).await?;
        {
            let mut state = self.state.write();
            let own: Vec<_> = state.sessions.values().filter(|session| session.user.name == name).cloned().collect();
            for session in own {
                let session = Session::new(session.stored.clone(), &user)?;
                state.sessions.insert(session.stored.id.clone(), Arc::new(session));
            }
        }
        let changed = |identity: &Identity| {
            let user = identity.user().filter(|user| user.name == name)?;
            Some(Identity::User(Arc::new(User { role, ..(**user).clone() })))
        };
        // What was begun with another role must not be carried on with it.
        self.oneshots.lock().forget(|identity| changed(identity).is_some());
        self.connections.change_identity(changed);
        tracing::info!(user = name, role = role.as_str(), "role of a user changed");
        Ok(())
    }

    fn known_user(&self, name: &str) -> Result<StoredUser, ApiError> {
        let user = self.state.read().users.get(name).cloned();
        user.ok_or_else(|| ApiError::bad_request(format!("No such user: {name}")))
    }

    /// All users by name.
    pub(crate) fn list_users(&self) -> Vec<StoredUser> {
        self.state.read().users.values().cloned().collect()
    }
}

fn refuse_reserved(name: &str) -> Result<(), ApiError> {
    if is_reserved(name) {
        return Err(ApiError::bad_request(format!("The name {name} is reserved")));
    }
    Ok(())
}

/// True for names that stand for callers who are no users.
pub(super) fn is_reserved(name: &str) -> bool {
    [API_KEY_USER, TRUSTED_USER].contains(&name)
}
