//! The operation that reads the audit log.

use std::sync::Arc;

use protocol::ApiError;
use rpc::{Access, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{AuditLog, Filter, Row};
use crate::api::WAYS;

/// Entries in one answer.
const MAX_PAGE: u32 = 500;

#[derive(Deserialize, JsonSchema)]
struct ListParams {
    /// Only entries before the one with this id: `next` of the page before.
    #[serde(default)]
    before: Option<i64>,
    /// Entries per page, 100 when absent, at most 500.
    #[serde(default)]
    limit: Option<u32>,
    /// Only what this user did.
    #[serde(default)]
    user: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Page {
    /// From the newest on.
    entries: Vec<Entry>,
    /// What to pass as `before` for the next page; null at the end.
    next: Option<i64>,
}

/// A call that changed something, or tried to.
#[derive(Serialize, JsonSchema)]
struct Entry {
    id: i64,
    /// Unix seconds.
    time: f64,
    /// `user`, `key`, `trusted` (by address), `local` (unix socket), `internal` or `stranger`.
    caller: String,
    /// Login name, or the name of the key.
    user: Option<String>,
    /// From where, after proxy rules.
    address: Option<String>,
    /// `http`, `websocket`, `unix`, `mqtt` or `internal`.
    transport: String,
    /// Method name.
    method: String,
    /// The arguments that are never secret, as text, cut when long.
    #[schemars(with = "Value")]
    arguments: Box<RawValue>,
    /// HTTP status of the outcome, whatever the transport.
    status: u16,
    /// Text of the error.
    error: Option<String>,
}

impl AuditLog {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("access.audit.list")
            .get("/access/audit/list")
            .only(WAYS)
            .access(Access::Admin)
            .unaudited()
            .doc("Who changed what, newest first, page by page.")
            .handle(self, |log, _, params: ListParams| async move { log.list(params).await });
    }

    async fn list(&self, params: ListParams) -> Result<Page, ApiError> {
        let limit = params.limit.unwrap_or(100).clamp(1, MAX_PAGE);
        let filter = Filter { before: params.before.unwrap_or(i64::MAX), limit, user: params.user };
        let rows = self.entries(filter).await.map_err(|error| {
            tracing::error!(%error, "the audit log cannot be read");
            ApiError::internal("The audit log cannot be read; the log has details")
        })?;
        let next = rows.last().filter(|_| rows.len() == limit as usize).map(|(id, _)| *id);
        Ok(Page { entries: rows.into_iter().map(|(id, row)| entry(id, row)).collect(), next })
    }
}

fn entry(id: i64, row: Row) -> Entry {
    Entry {
        id,
        time: row.time,
        caller: row.caller,
        user: row.user,
        address: row.address,
        transport: row.way,
        method: row.method,
        arguments: RawValue::from_string(row.arguments).unwrap_or_default(),
        status: row.status,
        error: row.error,
    }
}
