//! Roles, sessions and named keys: operations that the specification does not have.

use std::sync::Arc;

use rpc::{Access, Registry, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WAYS;
use crate::accounts::{Accounts, KeyInfo, NewKey, SessionInfo};

#[derive(Deserialize, JsonSchema)]
struct RoleParams {
    username: String,
    role: Role,
}

#[derive(Serialize, JsonSchema)]
struct RoleResult {
    username: String,
    role: Role,
    action: &'static str,
}

#[derive(Deserialize, JsonSchema)]
struct SessionsParams {
    /// Whose; the caller's own when absent, those of all users for a caller who is none.
    #[serde(default)]
    username: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct SessionList {
    sessions: Vec<SessionInfo>,
}

#[derive(Deserialize, JsonSchema)]
struct SessionParams {
    session_id: String,
}

#[derive(Serialize, JsonSchema)]
struct SessionResult {
    session_id: String,
    username: String,
    action: &'static str,
}

#[derive(Deserialize, JsonSchema)]
struct KeyParams {
    name: String,
    /// What the key allows: `viewer`, `operator` or `admin`.
    role: Role,
    /// Unix seconds from which on it does not count; never when absent.
    #[serde(default)]
    expires_on: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct KeyResult {
    name: String,
    role: Role,
    /// Shown this once.
    key: String,
    expires_on: Option<f64>,
    action: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct KeyList {
    keys: Vec<KeyInfo>,
}

#[derive(Deserialize, JsonSchema)]
struct KeyNameParams {
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct KeyAction {
    name: String,
    action: &'static str,
}

impl Accounts {
    pub(super) fn register_additions(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("access.users.role")
            .post("/access/users/role")
            .only(WAYS)
            .access(Access::Admin)
            .doc("Gives a user another role, at once on all connections.")
            .handle(self, |accounts, _, params: RoleParams| async move {
                accounts.set_role(&params.username, params.role).await?;
                Ok(RoleResult { username: params.username, role: params.role, action: "user_role_changed" })
            });
        registry
            .op("access.sessions.list")
            .get("/access/sessions/list")
            .only(WAYS)
            .access(Access::View)
            .doc("Sessions, the one used last first. Those of others need the role of an administrator.")
            .answer(self, |accounts, call, params: SessionsParams| {
                Ok(SessionList { sessions: accounts.list_sessions(call, params.username.as_deref())? })
            });
        registry
            .op("access.sessions.delete")
            .delete("/access/session")
            .only(WAYS)
            .access(Access::View)
            .audited()
            .doc("Ends one session: its tokens and its connections. Those of others need the role of an administrator.")
            .handle(self, |accounts, call, params: SessionParams| async move {
                let username = accounts.end_session(&call, &params.session_id).await?;
                Ok(SessionResult { session_id: params.session_id, username, action: "session_ended" })
            });
        registry
            .op("access.keys.list")
            .get("/access/keys/list")
            .only(WAYS)
            .access(Access::Admin)
            .doc("Named API keys, without the keys themselves.")
            .answer(self, |accounts, _, (): ()| Ok(KeyList { keys: accounts.list_keys() }));
        registry
            .op("access.keys.create")
            .post("/access/key")
            .only(WAYS)
            .access(Access::Admin)
            .doc("Makes a named API key with a role and shows it, this once.")
            .handle(self, |accounts, _, params: KeyParams| async move {
                let KeyParams { name, role, expires_on } = params;
                let key = accounts.create_key(NewKey { name: name.clone(), role, expires_on }).await?;
                Ok(KeyResult { name, role, key, expires_on, action: "key_created" })
            });
        registry
            .op("access.keys.delete")
            .delete("/access/key")
            .only(WAYS)
            .access(Access::Admin)
            .doc("Removes a named API key; the connections that it opened need another credential.")
            .handle(self, |accounts, _, params: KeyNameParams| async move {
                accounts.delete_key(&params.name).await?;
                Ok(KeyAction { name: params.name, action: "key_deleted" })
            });
    }
}
