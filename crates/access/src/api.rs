//! Operations of document 1 *Authentication and users*, and ours for roles, sessions and named keys (docs/access.md).

use std::sync::Arc;

use protocol::{ApiError, Form};
use rpc::identity::{API_KEY_USER, TRUSTED_USER};
use rpc::{Access, Call, Identity, Registry, Role, Transport, UserSource};
use runtime::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounts::{Accounts, LoggedIn, Login};
use crate::tables::StoredUser;

mod additions;

/// Neither MQTT nor templates have these operations: who may do what is decided by people.
pub(crate) const WAYS: &[Transport] = &[Transport::Http, Transport::Socket];

#[derive(Deserialize, JsonSchema)]
struct LoginParams {
    username: String,
    password: String,
    /// `core` or `ldap`; the configured default when absent.
    #[serde(default)]
    source: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct CreateParams {
    username: String,
    password: String,
    /// Only `core`: users of a directory appear at their first login.
    #[serde(default)]
    source: Option<String>,
    /// `admin` when absent.
    #[serde(default)]
    role: Role,
}

#[derive(Deserialize, JsonSchema)]
struct NameParams {
    username: String,
}

#[derive(Deserialize, JsonSchema)]
struct PasswordParams {
    /// The current one.
    password: String,
    new_password: String,
}

#[derive(Deserialize, JsonSchema)]
struct RefreshParams {
    refresh_token: String,
}

#[derive(Serialize, JsonSchema)]
struct LoginResult {
    username: String,
    token: String,
    source: &'static str,
    refresh_token: String,
    action: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct UserAction {
    username: String,
    action: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct PasswordResult {
    username: String,
    action: &'static str,
    /// Those from before the change do not count any more.
    token: String,
    refresh_token: String,
}

#[derive(Serialize, JsonSchema)]
struct RefreshResult {
    username: String,
    token: String,
    source: &'static str,
    action: &'static str,
}

/// *User Info* of document 1. All null for callers who are no user, on the unix socket.
#[derive(Serialize, JsonSchema)]
struct UserInfo {
    username: Option<String>,
    source: Option<&'static str>,
    /// Unix seconds.
    created_on: Option<f64>,
    role: Role,
}

#[derive(Serialize, JsonSchema)]
struct UserList {
    users: Vec<UserInfo>,
}

#[derive(Serialize, JsonSchema)]
struct AccessInfo {
    default_source: &'static str,
    available_sources: Vec<&'static str>,
    login_required: bool,
    /// Whether the caller's address is trusted, even while that lets nobody in; null on the unix socket.
    trusted: Option<bool>,
}

impl Accounts {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        self.register_logins(registry);
        self.register_users(registry);
        self.register_keys(registry);
        self.register_additions(registry);
    }

    fn register_logins(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("access.login")
            .post("/access/login")
            .only(WAYS)
            .access(Access::Open)
            .audited()
            .doc("Logs a user in. Over a persistent connection, that connection becomes the user's.")
            .handle(self, |accounts, call, params: LoginParams| async move {
                let source = accounts.source(params.source.as_deref())?;
                let login = Login { username: params.username, password: Secret::new(params.password), source };
                Ok(login_result(accounts.log_in(&call, login).await?, call.form, "user_logged_in"))
            });
        registry
            .op("access.logout")
            .post("/access/logout")
            .only(WAYS)
            .access(Access::View)
            .audited()
            .doc("Logs the caller out, on all devices.")
            .handle(self, |accounts, call, (): ()| async move {
                Ok(UserAction { username: accounts.log_out(&call).await?, action: "user_logged_out" })
            });
        registry
            .op("access.refresh_jwt")
            .post("/access/refresh_jwt")
            .only(WAYS)
            .access(Access::Open)
            .doc("A new access token for a refresh token.")
            .answer(self, |accounts, call, params: RefreshParams| {
                let (user, token) = accounts.refresh(&params.refresh_token)?;
                Ok(RefreshResult { username: user.name.clone(), token, source: user.source.as_str(call.form), action: "user_jwt_refresh" })
            });
        registry
            .op("access.oneshot_token")
            .get("/access/oneshot_token")
            .only(WAYS)
            .access(Access::View)
            .doc("A token for one request from the same address within five seconds, as `?token=`.")
            .answer(self, |accounts, call, (): ()| accounts.oneshot(&call.identity, call.peer.as_ref()));
        registry
            .op("access.info")
            .get("/access/info")
            .only(WAYS)
            .access(Access::Open)
            .doc("How users log in here, and whether the caller has to.")
            .answer(self, |accounts, call, (): ()| Ok(accounts.info(call)));
    }

    fn register_users(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("access.get_user")
            .get("/access/user")
            .only(WAYS)
            .access(Access::View)
            .doc("Who the caller is.")
            .answer(self, |accounts, call, (): ()| Ok(accounts.caller(call)));
        registry.op("access.post_user").post("/access/user").only(WAYS).access(Access::Admin).doc("Creates a user and logs it in.").handle(
            self,
            |accounts, call, params: CreateParams| async move {
                if params.source.as_deref().is_some_and(|source| UserSource::parse(source) != Some(UserSource::Core)) {
                    return Err(ApiError::bad_request("Argument [source]: users can only be created in the service's own database"));
                }
                let created = accounts.create_user(&call, params.username, Secret::new(params.password), params.role).await?;
                Ok(login_result(created, call.form, "user_created"))
            },
        );
        registry.op("access.delete_user").delete("/access/user").only(WAYS).access(Access::Admin).doc("Deletes another user.").handle(
            self,
            |accounts, call, params: NameParams| async move {
                accounts.delete_user(&call, &params.username).await?;
                Ok(UserAction { username: params.username, action: "user_deleted" })
            },
        );
        registry.op("access.users.list").get("/access/users/list").only(WAYS).access(Access::View).doc("All users.").answer(
            self,
            |accounts, call, (): ()| {
                let users = accounts.list_users().iter().map(|user| user_info(user, call.form)).collect();
                Ok(UserList { users })
            },
        );
        registry
            .op("access.user.password")
            .post("/access/user/password")
            .only(WAYS)
            .access(Access::View)
            .audited()
            .doc("Changes the caller's password. All sessions end; the answer has tokens of a new one.")
            .handle(self, |accounts, call, params: PasswordParams| async move {
                let (current, new) = (Secret::new(params.password), Secret::new(params.new_password));
                let LoggedIn { user, token, refresh_token } = accounts.change_password(&call, current, new).await?;
                Ok(PasswordResult { username: user.name.clone(), action: "user_password_reset", token, refresh_token })
            });
    }

    fn register_keys(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("access.get_api_key")
            .get("/access/api_key")
            .only(WAYS)
            .access(Access::Admin)
            .doc("The API key.")
            .answer(self, |accounts, _, (): ()| accounts.api_key().map(|(key, _)| key));
        registry
            .op("access.post_api_key")
            .post("/access/api_key")
            .only(WAYS)
            .access(Access::Admin)
            .doc("Replaces the API key. It counts at once; connections that the old one opened stay.")
            .handle(self, |accounts, _, (): ()| async move { accounts.renew_api_key().await });
    }

    fn source(&self, word: Option<&str>) -> Result<UserSource, ApiError> {
        let Some(word) = word else { return Ok(self.default_source) };
        UserSource::parse(word).ok_or_else(|| ApiError::bad_request(format!("Argument [source]: expected core or ldap, got \"{word}\"")))
    }

    fn info(&self, call: &Call) -> AccessInfo {
        let ldap = self.directory.as_ref().map(|_| UserSource::Ldap);
        AccessInfo {
            default_source: self.default_source.as_str(call.form),
            available_sources: [Some(UserSource::Core), ldap].into_iter().flatten().map(|source| source.as_str(call.form)).collect(),
            login_required: self.needs_login(),
            trusted: call.peer.map(|peer| peer.is_trusted),
        }
    }

    fn caller(&self, call: &Call) -> UserInfo {
        let role = call.identity.role().unwrap_or(Role::Viewer);
        let reserved = |name: &str, since| UserInfo {
            username: Some(name.to_owned()),
            source: Some(UserSource::Core.as_str(call.form)),
            created_on: Some(since),
            role,
        };
        match &call.identity {
            Identity::User(user) => match self.list_users().iter().find(|stored| stored.name == user.name) {
                Some(stored) => user_info(stored, call.form),
                None => UserInfo { username: Some(user.name.clone()), source: Some(user.source.as_str(call.form)), created_on: None, role },
            },
            Identity::Trusted => reserved(TRUSTED_USER, self.began),
            Identity::Key(_) => reserved(API_KEY_USER, self.api_key().map_or(self.began, |(_, made)| made)),
            Identity::Local | Identity::Internal | Identity::Stranger => UserInfo { username: None, source: None, created_on: None, role },
        }
    }
}

fn user_info(user: &StoredUser, form: Form) -> UserInfo {
    UserInfo {
        username: Some(user.name.clone()),
        source: Some(user.source.as_str(form)),
        created_on: Some(user.created_on),
        role: user.role,
    }
}

fn login_result(logged_in: LoggedIn, form: Form, action: &'static str) -> LoginResult {
    let LoggedIn { user, token, refresh_token } = logged_in;
    LoginResult { username: user.name.clone(), token, source: user.source.as_str(form), refresh_token, action }
}
