//! Operations of document 1 *Extensions*.

use std::sync::Arc;

use protocol::ApiError;
use rpc::{Access, Registry, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{AgentInfo, Agents, given};

#[derive(Serialize, JsonSchema)]
struct AgentList {
    agents: Vec<AgentInfo>,
}

#[derive(Deserialize, JsonSchema)]
struct RequestParams {
    /// Name of the agent.
    agent: String,
    /// The agent's method.
    method: String,
    /// Array or object that the agent gets as `params`; without it, or when it is empty, the agent gets none.
    #[serde(default)]
    #[schemars(with = "Option<Value>")]
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize, JsonSchema)]
struct EventParams {
    /// Any name but `connected` and `disconnected`.
    event: String,
    /// Anything; left out of the notification when it is not given.
    #[serde(default)]
    #[schemars(with = "Option<Value>")]
    data: Option<Box<RawValue>>,
}

#[derive(Deserialize, JsonSchema)]
struct MethodParams {
    /// Name by which macros call it.
    method_name: String,
}

impl Agents {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.extensions.list")
            .get("/server/extensions/list")
            .access(Access::View)
            .doc("The agents that are connected.")
            .answer(self, |agents, _, (): ()| Ok(AgentList { agents: agents.list() }));
        registry
            .op("server.extensions.request")
            .post("/server/extensions/request")
            .access(Access::Control)
            .doc("Calls a method of an agent and answers its result unchanged.")
            .handle(self, |agents, _, params: RequestParams| async move {
                let arguments = params.arguments.as_deref().map(checked).transpose()?;
                agents.request(&params.agent, &params.method, arguments.and_then(given)).await
            });
        registry
            .op("connection.send_event")
            .only(&[Transport::Socket])
            .access(Access::Control)
            .doc("Tells all persistent connections something. For agents.")
            .answer(self, |agents, call, params: EventParams| {
                agents.send_event(call.connection()?.id, params.event, params.data)?;
                Ok("ok")
            });
        registry
            .op("connection.register_remote_method")
            .only(&[Transport::Socket])
            .access(Access::Control)
            .doc("Lets gcode macros call this agent, until it disconnects. For agents.")
            .answer(self, |agents, call, params: MethodParams| {
                agents.register_method(call.connection()?.id, params.method_name)?;
                Ok("ok")
            });
    }
}

fn checked(arguments: &RawValue) -> Result<&RawValue, ApiError> {
    if arguments.get().trim_start().starts_with(['{', '[']) {
        return Ok(arguments);
    }
    Err(ApiError::argument("Unable to convert argument [arguments]: expected an array or an object"))
}
