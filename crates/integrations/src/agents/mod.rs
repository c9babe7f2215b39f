//! Agents: who is there, what they are asked, what they tell, and which macros they serve.

mod api;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fwhost::FwHost;
use indexmap::IndexMap;
use parking_lot::Mutex;
use protocol::event::AgentEvent;
use protocol::{ApiError, ErrorKind, Event, envelope};
use rpc::{Access, AskAnswer, ClientInfo, ClientKind, Connection, ConnectionId, Connections, Rendered};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

/// An agent must answer a request within this time.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// Remote methods of one agent.
pub const MAX_METHODS: usize = 128;

/// Bytes of the name of an agent, an event or a remote method.
pub const MAX_NAME: usize = 256;

/// Events that only the server sends.
const RESERVED_EVENTS: [&str; 2] = ["connected", "disconnected"];

/// Takes the keyword arguments of a macro's call, as a JSON object.
pub type MacroHandler = Box<dyn Fn(Box<RawValue>) + Send + Sync>;

/// Where macros of the printer find the methods that they may call.
pub trait MacroHost: Send + Sync {
    /// Offers a method; it stays offered whenever the firmware host comes back.
    ///
    /// # Errors
    /// 400 when the name is taken.
    fn offer(&self, method: &str, handler: MacroHandler) -> Result<(), ApiError>;
    /// Takes a method back.
    fn withdraw(&self, method: &str);
}

impl MacroHost for FwHost {
    fn offer(&self, method: &str, handler: MacroHandler) -> Result<(), ApiError> {
        self.register_remote_method(method, handler)
    }

    fn withdraw(&self, method: &str) {
        self.unregister_remote_method(method);
    }
}

/// *Agent Info* of document 1.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct AgentInfo {
    name: String,
    version: String,
    /// Always `agent`.
    r#type: ClientKind,
    url: String,
}

struct Agent {
    info: AgentInfo,
    connection: Arc<Connection>,
    methods: Vec<String>,
}

/// The agents that are connected.
pub struct Agents {
    connections: Arc<Connections>,
    macros: Arc<dyn MacroHost>,
    /// In the order in which they came.
    present: Mutex<IndexMap<ConnectionId, Agent>>,
}

impl Agents {
    /// Nobody yet; connections that identify as agents are taken in from now on.
    #[must_use]
    pub fn new(connections: Arc<Connections>, macros: Arc<dyn MacroHost>) -> Arc<Self> {
        let agents = Arc::new(Self { connections, macros, present: Mutex::default() });
        // Weak: the table of connections must not keep alive what holds it.
        let come = Arc::downgrade(&agents);
        agents.connections.on_identify(move |connection, info| match come.upgrade() {
            Some(agents) if info.kind == ClientKind::Agent => agents.arrive(connection, info),
            _ => Ok(()),
        });
        let go = || {
            let agents = Arc::downgrade(&agents);
            move |connection: &Connection| {
                if let Some(agents) = agents.upgrade() {
                    agents.leave(connection.id);
                }
            }
        };
        agents.connections.on_close(go());
        agents.connections.on_revoke(go());
        agents
    }

    fn arrive(&self, connection: &Arc<Connection>, info: &ClientInfo) -> Result<(), ApiError> {
        if !connection.identity().may(Access::Control) {
            return Err(ApiError::forbidden("Agents need the right to control the printer"));
        }
        check_name("client_name", &info.name)?;
        let info = AgentInfo { name: info.name.clone(), version: info.version.clone(), r#type: info.kind, url: info.url.clone() };
        let mut present = self.present.lock();
        if present.values().any(|agent| agent.info.name == info.name) {
            return Err(ApiError::bad_request(format!("Agent {} is connected already", info.name)));
        }
        if connection.outbox.closed().is_some() {
            return Err(ApiError::bad_request("The connection has ended"));
        }
        present.insert(connection.id, Agent { info: info.clone(), connection: connection.clone(), methods: Vec::new() });
        drop(present);
        let data = serde_json::value::to_raw_value(&info).ok();
        self.tell(connection.id, AgentEvent { agent: info.name, event: "connected".into(), data });
        // Whoever took the right away between the look at it and the entry found no agent to remove.
        if !connection.identity().may(Access::Control) {
            self.leave(connection.id);
        }
        Ok(())
    }

    fn leave(&self, connection: ConnectionId) {
        let Some(agent) = self.present.lock().shift_remove(&connection) else { return };
        agent.methods.iter().for_each(|method| self.macros.withdraw(method));
        self.tell(connection, AgentEvent { agent: agent.info.name, event: "disconnected".into(), data: None });
    }

    fn tell(&self, agent: ConnectionId, event: AgentEvent) {
        self.connections.emit_except(&Event::Agent(event), agent);
    }

    fn list(&self) -> Vec<AgentInfo> {
        self.present.lock().values().map(|agent| agent.info.clone()).collect()
    }

    /// Asks an agent; its result comes back as it is.
    async fn request(&self, name: &str, method: &str, arguments: Option<&RawValue>) -> Result<Rendered, ApiError> {
        let found = self.present.lock().values().find(|agent| agent.info.name == name).map(|agent| agent.connection.clone());
        let connection = found.ok_or_else(|| ApiError::bad_request(format!("Agent {name} is not connected")))?;
        let mut asking = connection.ask(method, arguments)?;
        let answer = timeout(ANSWER_TIMEOUT, asking.answer())
            .await
            .map_err(|_| ApiError::new(ErrorKind::Timeout, format!("Agent {name} did not answer within {} s", ANSWER_TIMEOUT.as_secs())))?;
        result(name, answer)
    }

    fn send_event(&self, connection: ConnectionId, event: String, data: Option<Box<RawValue>>) -> Result<(), ApiError> {
        let agent = self.present.lock().get(&connection).map(|agent| agent.info.name.clone()).ok_or_else(not_an_agent)?;
        check_name("event", &event)?;
        if RESERVED_EVENTS.contains(&event.as_str()) {
            return Err(ApiError::bad_request(format!("Argument [event]: the name '{event}' is reserved")));
        }
        self.tell(connection, AgentEvent { agent, event, data });
        Ok(())
    }

    fn register_method(&self, connection: ConnectionId, method: String) -> Result<(), ApiError> {
        // The lock is kept, so that an agent that leaves meanwhile takes this method with it, too.
        let mut present = self.present.lock();
        let agent = present.get_mut(&connection).ok_or_else(not_an_agent)?;
        check_name("method_name", &method)?;
        if agent.methods.len() >= MAX_METHODS {
            return Err(ApiError::bad_request(format!("An agent can register {MAX_METHODS} remote methods")));
        }
        let (outbox, name) = (agent.connection.outbox.clone(), method.clone());
        let call = move |arguments: Box<RawValue>| {
            let arguments = given(&arguments).map(|arguments| arguments.get().as_bytes());
            outbox.push(envelope::notification(&name, arguments));
        };
        self.macros.offer(&method, Box::new(call))?;
        agent.methods.push(method);
        Ok(())
    }
}

/// What an agent answered, for whoever asked.
fn result(agent: &str, answer: Option<AskAnswer>) -> Result<Rendered, ApiError> {
    match answer {
        Some(Ok(result)) => Ok(Rendered(Bytes::from(String::from(Box::<str>::from(result))))),
        Some(Err(error)) => {
            let text = serde_json::from_str::<serde_json::Value>(error.get()).ok();
            let text = text.as_ref().and_then(|error| error["message"].as_str()).unwrap_or("no reason given");
            let text: String = text.chars().take(MAX_NAME).collect();
            Err(ApiError { data: Some(error), ..ApiError::new(ErrorKind::Agent, format!("Agent {agent} RPC error: {text}")) })
        }
        None => Err(ApiError::internal(format!("Agent {agent} disconnected before it answered"))),
    }
}

/// Arguments with something in them.
fn given(arguments: &RawValue) -> Option<&RawValue> {
    let inner = arguments.get().trim().strip_prefix(['{', '['])?.strip_suffix(['}', ']'])?;
    (!inner.trim().is_empty()).then_some(arguments)
}

fn check_name(argument: &str, name: &str) -> Result<(), ApiError> {
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(ApiError::argument(format!("Argument [{argument}]: expected 1 to {MAX_NAME} bytes without control characters")));
    }
    Ok(())
}

fn not_an_agent() -> ApiError {
    ApiError::bad_request("Only connections that identified with type 'agent' can do this")
}
