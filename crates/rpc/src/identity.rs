//! Who a caller is and what that allows. Document 1 *Authentication*, design.md section 7; the table is docs/access.md.

use std::net::IpAddr;
use std::sync::Arc;

use protocol::vocabulary::{APP_CORE, SOURCE_LDAP};
use protocol::{ApiError, Form};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an operation does to the world, and so who may call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// Anybody, also strangers: the way in.
    Open,
    /// Reads.
    View,
    /// Moves the printer, or changes files, jobs or settings.
    Control,
    /// Changes the server, the host machine, or who may do what.
    Admin,
}

impl Access {
    /// The name in the served contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::View => "view",
            Self::Control => "control",
            Self::Admin => "admin",
        }
    }

    /// The least role that may call operations of this class; none for those that are open to everybody.
    #[must_use]
    pub fn needs(self) -> Option<Role> {
        match self {
            Self::Open => None,
            Self::View => Some(Role::Viewer),
            Self::Control => Some(Role::Operator),
            Self::Admin => Some(Role::Admin),
        }
    }
}

/// What a user or the holder of a key may do; a greater one may do all that a lesser one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks.
    Viewer,
    /// Prints.
    Operator,
    /// Everything. The role of whoever was given no other.
    #[default]
    Admin,
}

impl Role {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role that this word stands for.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Viewer, Self::Operator, Self::Admin].into_iter().find(|role| role.as_str() == word)
    }
}

/// Where a user's password is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UserSource {
    /// Our own database.
    #[default]
    Core,
    /// A directory server.
    Ldap,
}

impl UserSource {
    /// The word for it in the given form.
    #[must_use]
    pub fn as_str(self, form: Form) -> &'static str {
        match self {
            Self::Core => APP_CORE.in_form(form),
            Self::Ldap => SOURCE_LDAP,
        }
    }

    /// The source that this word stands for, in either form and any case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        if APP_CORE.is(&word) {
            return Some(Self::Core);
        }
        (word == SOURCE_LDAP).then_some(Self::Ldap)
    }
}

/// A user who is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Login name.
    pub name: String,
    /// Where the password was checked.
    pub source: UserSource,
    /// What the user may do.
    pub role: Role,
    /// Id of the session: whatever ends it takes this identity away.
    pub session: String,
}

/// Whoever showed an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    /// Name of the key; none for the one key of the specification.
    pub name: Option<String>,
    /// What the key allows.
    pub role: Role,
}

/// Who a caller is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Identity {
    /// Nobody that we know.
    #[default]
    Stranger,
    /// An address that the owner declared trusted.
    Trusted,
    /// A peer on the unix socket: the file permissions let it in.
    Local,
    /// The service itself (templates, start-up work).
    Internal,
    /// A user with a valid token.
    User(Arc<User>),
    /// Somebody with a valid API key.
    Key(Arc<KeyHolder>),
}

/// User name under which callers from trusted addresses appear.
pub const TRUSTED_USER: &str = "_TRUSTED_USER_";

/// User name under which holders of API keys appear.
pub const API_KEY_USER: &str = "_API_KEY_USER_";

impl Identity {
    /// True when the caller may use operations that need authorisation.
    #[must_use]
    pub fn is_authorised(&self) -> bool {
        !matches!(self, Self::Stranger)
    }

    /// What the caller may do; nothing for strangers.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Stranger => None,
            Self::Trusted | Self::Local | Self::Internal => Some(Role::Admin),
            Self::User(user) => Some(user.role),
            Self::Key(key) => Some(key.role),
        }
    }

    /// True when the caller may use operations of this class.
    #[must_use]
    pub fn may(&self, access: Access) -> bool {
        access.needs().is_none_or(|needed| self.role().is_some_and(|role| role >= needed))
    }

    /// Refuses a caller who may not use operations of this class.
    ///
    /// # Errors
    /// 401 for strangers, 403 for those whose role is too small.
    pub fn check(&self, access: Access) -> Result<(), ApiError> {
        match (access.needs(), self.role()) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(ApiError::unauthorized()),
            (Some(needed), Some(role)) if role >= needed => Ok(()),
            (Some(needed), Some(role)) => {
                Err(ApiError::forbidden(format!("This needs the role {}; your role is {}", needed.as_str(), role.as_str())))
            }
        }
    }

    /// The name under which the caller appears in lists and histories; none on the unix socket and for strangers.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Stranger | Self::Local | Self::Internal => None,
            Self::Trusted => Some(TRUSTED_USER),
            Self::User(user) => Some(&user.name),
            Self::Key(_) => Some(API_KEY_USER),
        }
    }

    /// The user who is logged in.
    #[must_use]
    pub fn user(&self) -> Option<&Arc<User>> {
        if let Self::User(user) = self { Some(user) } else { None }
    }

    /// True when both are the same person or program, be it by another session.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::User(one), Self::User(other)) => one.name == other.name,
            (one, other) => one == other,
        }
    }
}

/// Where a caller sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The address, after proxy rules.
    pub address: IpAddr,
    /// True when the owner declared the address trusted, whether or not that lets anybody in right now (`force_logins`).
    pub is_trusted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(role: Role) -> Identity {
        Identity::User(Arc::new(User { name: "anna".into(), source: UserSource::Core, role, session: "s".into() }))
    }

    #[test]
    fn a_role_may_what_lesser_roles_may() {
        let classes = [Access::Open, Access::View, Access::Control, Access::Admin];
        let allowed = |identity: Identity| classes.into_iter().filter(|class| identity.may(*class)).count();
        assert_eq!(allowed(Identity::Stranger), 1);
        assert_eq!(allowed(user(Role::Viewer)), 2);
        assert_eq!(allowed(user(Role::Operator)), 3);
        for all in [user(Role::Admin), Identity::Trusted, Identity::Local, Identity::Internal] {
            assert_eq!(allowed(all), 4);
        }
    }

    #[test]
    fn strangers_are_told_to_log_in_and_small_roles_what_is_missing() {
        assert_eq!(Identity::Stranger.check(Access::View).unwrap_err().message, "Unauthorized");
        let refused = user(Role::Viewer).check(Access::Control).unwrap_err();
        assert_eq!((refused.kind.http_status(), refused.message.as_str()), (403, "This needs the role operator; your role is viewer"));
        assert!(user(Role::Operator).check(Access::Control).is_ok() && Identity::Stranger.check(Access::Open).is_ok());
    }

    #[test]
    fn words_of_both_vocabularies_name_a_source() {
        for word in ["core", "moonraker", "Moonraker"] {
            assert_eq!(UserSource::parse(word), Some(UserSource::Core));
        }
        assert_eq!(UserSource::parse("LDAP"), Some(UserSource::Ldap));
        assert_eq!(UserSource::parse("other"), None);
        assert_eq!(UserSource::Core.as_str(Form::Upstream), "moonraker");
    }

    #[test]
    fn another_session_is_the_same_person() {
        let Identity::User(one) = user(Role::Viewer) else { panic!() };
        let other = Identity::User(Arc::new(User { session: "t".into(), ..(*one).clone() }));
        assert!(Identity::User(one).is_same_as(&other) && !other.is_same_as(&Identity::Trusted));
    }
}
