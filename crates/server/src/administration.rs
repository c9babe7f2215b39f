//! Operations of document 1 *Server administration*, but for the stores (crate `printer`).

use std::pin::Pin;
use std::sync::Arc;

use fwhost::FwHost;
use protocol::version::{API_VERSION, API_VERSION_STRING, CORE_VERSION, UPSTREAM_VERSION};
use protocol::{ApiError, FwhostState};
use rpc::{Access, Call, Connection, Connections, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config_report::ConfigReport;
use crate::logs::{LogApplication, RolledOver};
use crate::warnings::Warnings;

/// *Server Info* of document 1. Both names of a renamed member are written (`protocol::dual`).
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerInfo {
    fwhost_connected: bool,
    fwhost_state: FwhostState,
    components: Arc<[String]>,
    failed_components: Arc<[String]>,
    registered_directories: Vec<String>,
    warnings: Vec<String>,
    websocket_count: usize,
    core_version: &'static str,
    /// The program version whose API is spoken, for clients that decide by it.
    moonraker_version: &'static str,
    missing_fwhost_requirements: Vec<&'static str>,
    api_version: [u32; 3],
    api_version_string: &'static str,
}

type Directories = Box<dyn Fn() -> Vec<String> + Send + Sync>;
/// Rolls over a log; the error is for the caller.
pub type RollOver = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;
type Restart = Box<dyn Fn() + Send + Sync>;
/// Makes a connection that of whoever shows a credential; the error is for the caller.
pub type Authenticate = Box<dyn Fn(&Connection, Credential<'_>) -> Result<(), ApiError> + Send + Sync>;

/// What a client shows that introduces itself.
#[derive(Clone, Copy)]
pub enum Credential<'a> {
    /// A JSON Web Token.
    AccessToken(&'a str),
    /// An API key.
    ApiKey(&'a str),
}

/// What administration needs to know and do, made by the build.
pub struct Parts {
    /// Names of loaded components.
    pub components: Arc<[String]>,
    /// Names of components that failed to load.
    pub failed_components: Arc<[String]>,
    /// Names of the registered file roots.
    pub directories: Directories,
    /// Rolls over our own log.
    pub roll_over: RollOver,
    /// Rolls over the log of the firmware host.
    pub roll_over_firmware: RollOver,
    /// Asks for a restart after the answer.
    pub restart: Restart,
    /// Lets somebody in who shows a credential.
    pub authenticate: Authenticate,
    /// The configuration in use.
    pub config: ConfigReport,
}

/// The server about itself.
pub struct Administration {
    host: FwHost,
    pub(crate) connections: Arc<Connections>,
    warnings: Warnings,
    pub(crate) parts: Parts,
}

#[derive(Deserialize, JsonSchema)]
struct InfoParams {
    /// Keeps line breaks in warnings.
    #[serde(default)]
    raw: bool,
}

#[derive(Deserialize, JsonSchema)]
struct RollOverParams {
    /// One application; all when absent.
    #[serde(default)]
    application: Option<LogApplication>,
}

impl Administration {
    /// Made once everything else is built.
    #[must_use]
    pub fn new(host: FwHost, connections: Arc<Connections>, warnings: Warnings, parts: Parts) -> Arc<Self> {
        Arc::new(Self { host, connections, warnings, parts })
    }

    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.info")
            .get("/server/info")
            .access(Access::View)
            .doc("State of the server and of its connection to the firmware host.")
            .answer(self, |server, _, params: InfoParams| Ok(server.info(params.raw)));
        registry
            .op("server.config")
            .get("/server/config")
            .access(Access::View)
            .doc("The configuration in use, the configuration as written, and the files that it came from. Viewers see no passwords, tokens and keys.")
            .answer(self, |server, call, (): ()| Ok(server.parts.config.seen_by(&call.identity)));
        registry
            .op("server.restart")
            .post("/server/restart")
            .access(Access::Admin)
            .doc("Restarts the server within its process; connections end and can be opened again at once.")
            .answer(self, |server, _, (): ()| {
                (server.parts.restart)();
                Ok("ok")
            });
        registry
            .op("server.logs.rollover")
            .post("/server/logs/rollover")
            .access(Access::Admin)
            .doc("Begins a new log file.")
            .handle(self, |server, call, params: RollOverParams| async move { Ok(server.roll_over(&call, params.application).await) });
        self.register_identity(registry);
    }

    fn info(&self, raw: bool) -> ServerInfo {
        let host = self.host.status();
        let warnings = self.warnings.texts().into_iter().map(|text| if raw { text } else { text.replace('\n', "<br/>") });
        ServerInfo {
            fwhost_connected: host.state != FwhostState::Disconnected,
            fwhost_state: host.state,
            components: self.parts.components.clone(),
            failed_components: self.parts.failed_components.clone(),
            registered_directories: (self.parts.directories)(),
            warnings: warnings.collect(),
            websocket_count: self.connections.count(),
            core_version: CORE_VERSION,
            moonraker_version: UPSTREAM_VERSION,
            missing_fwhost_requirements: host.missing_requirements.clone(),
            api_version: API_VERSION,
            api_version_string: API_VERSION_STRING,
        }
    }

    async fn roll_over(&self, call: &Call, wanted: Option<LogApplication>) -> RolledOver {
        let mut outcome = RolledOver::default();
        for application in LogApplication::ALL.into_iter().filter(|application| wanted.is_none_or(|wanted| wanted == *application)) {
            let name = application.name(call.form);
            match self.roll_over_one(application).await {
                Ok(()) => outcome.rolled_over.push(name),
                Err(error) => {
                    outcome.failed.insert(name, error.message);
                }
            }
        }
        outcome
    }

    /// A busy printer keeps its logs: what led to a fault must not be split over files (design.md section 7).
    async fn roll_over_one(&self, application: LogApplication) -> Result<(), ApiError> {
        let printing =
            self.host.print_stats().is_some_and(|stats| matches!(stats.state, fwhost::PrintState::Printing | fwhost::PrintState::Paused));
        if printing && self.host.status().state == FwhostState::Ready {
            return Err(ApiError::bad_request("Logs are not rolled over during a print"));
        }
        match application {
            LogApplication::Core => (self.parts.roll_over)().await.map_err(ApiError::bad_request),
            LogApplication::Firmware => (self.parts.roll_over_firmware)().await.map_err(ApiError::bad_request),
        }
    }
}
