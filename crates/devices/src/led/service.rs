//! The handle: all strips.

use std::sync::Arc;

use futures_util::future::join_all;
use fwhost::FwHost;
use indexmap::IndexMap;
use outbound::Client;
use protocol::ApiError;
use protocol::led::LedStatus;
use rpc::Connections;
use runtime::Supervisor;
use schemars::JsonSchema;
use serde::Serialize;

use super::model::Change;
use super::options::LedOptions;
use super::remote;
use super::worker::{self, Strip};

/// All LED strips.
pub struct LedStrips {
    pub(super) strips: IndexMap<String, Arc<Strip>>,
    pub(super) host: FwHost,
}

/// What a batch says of one strip.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum BatchEntry {
    Known(LedStatus),
    Unknown { error: &'static str },
}

impl LedStrips {
    /// The strips of the configuration; [`LedStrips::start`] lets them work.
    #[must_use]
    pub fn new(configured: Vec<(String, LedOptions)>, host: FwHost, connections: &Arc<Connections>, client: &Client) -> Arc<Self> {
        let strip = |(name, options): (String, LedOptions)| {
            (name.clone(), Arc::new(Strip::new(name, options, client.clone(), connections.clone())))
        };
        Arc::new(Self { strips: configured.into_iter().map(strip).collect(), host })
    }

    /// True without any strip.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strips.is_empty()
    }

    /// Lets them work.
    pub fn start(self: &Arc<Self>, supervisor: &Supervisor) {
        if self.is_empty() {
            return;
        }
        for strip in self.strips.values() {
            let strip = strip.clone();
            supervisor.spawn(format!("LED strip {}", strip.name), move |stop| worker::run(strip.clone(), stop));
        }
        remote::offer(self);
    }

    /// Lets go of everything that would keep the server's parts alive.
    pub fn close(&self) {
        remote::withdraw(&self.host);
    }

    /// All strips as they are known, in the order of the configuration.
    pub(super) fn list(&self) -> IndexMap<String, LedStatus> {
        self.strips.iter().map(|(name, strip)| (name.clone(), strip.status())).collect()
    }

    pub(super) fn strip(&self, name: &str) -> Result<&Arc<Strip>, ApiError> {
        self.strips.get(name).ok_or_else(|| ApiError::bad_request(format!("No valid strip named {name:.100}")))
    }

    /// Changes several strips at once, or only looks at them. A strip that fails says so in `error` and keeps no other from its turn.
    ///
    /// # Errors
    /// 400 when no strip is named.
    pub(super) async fn batch(&self, names: Vec<String>, change: Option<Change>) -> Result<IndexMap<String, BatchEntry>, ApiError> {
        if names.is_empty() {
            return Err(ApiError::bad_request("No arguments provided: expected the names of strips as keys"));
        }
        let each = names.into_iter().map(|name| async {
            let Some(strip) = self.strips.get(&name) else { return (name, BatchEntry::Unknown { error: "strip_not_found" }) };
            let status = match change.clone() {
                None => strip.status(),
                Some(change) => match strip.change(change).await {
                    Ok(status) => status,
                    Err(error) => {
                        let status = strip.status();
                        LedStatus { error: status.error.or(Some(error.message)), ..status }
                    }
                },
            };
            (name, BatchEntry::Known(status))
        });
        Ok(join_all(each).await.into_iter().collect())
    }
}
