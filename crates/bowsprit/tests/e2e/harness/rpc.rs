//! JSON-RPC from the client's side, over any channel that carries documents.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::wait::within;

/// Told each second, whatever a test does.
pub(crate) const STATISTICS: &str = "notify_proc_stat_update";

/// What carries documents: a websocket, the unix socket.
pub(crate) trait Channel {
    /// Sends one document.
    async fn send(&mut self, text: &str);
    /// The next document; `None` at the end of the connection.
    async fn receive(&mut self) -> Option<String>;
}

/// The error of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl RpcError {
    /// An error to compare with.
    pub(crate) fn new(code: i64, message: &str) -> Self {
        Self { code, message: message.to_owned() }
    }
}

/// A client. What arrives while it waits for something else is kept.
pub(crate) struct Rpc<C> {
    pub(crate) channel: C,
    last_id: u64,
    kept: VecDeque<Value>,
}

impl<C: Channel> Rpc<C> {
    pub(crate) fn over(channel: C) -> Self {
        Self { channel, last_id: 0, kept: VecDeque::new() }
    }

    /// Calls and waits for the answer.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }

    /// Calls an operation that must succeed.
    pub(crate) async fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).await.unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    /// Sends a call without waiting for its answer; the id is for [`Rpc::answer`].
    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": self.last_id});
        self.channel.send(&request.to_string()).await;
        self.last_id
    }

    /// The answer to an earlier call.
    pub(crate) async fn answer(&mut self, id: u64) -> Result<Value, RpcError> {
        let mut message = self.wait_for(&format!("answer {id}"), |message| message["id"] == id).await;
        match message.get_mut("error") {
            Some(error) => {
                Err(RpcError { code: error["code"].as_i64().unwrap(), message: error["message"].as_str().unwrap_or_default().to_owned() })
            }
            None => Ok(message["result"].take()),
        }
    }

    /// Waits for a request of the server to this client (agents).
    pub(crate) async fn asked(&mut self, method: &str) -> Value {
        self.wait_for(method, |message| message["method"] == method && message.get("id").is_some()).await
    }

    /// Answers a request of the server with these members.
    pub(crate) async fn reply(&mut self, asked: &Value, members: &Value) {
        let mut answer = json!({"jsonrpc": "2.0", "id": asked["id"]});
        answer.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.channel.send(&answer.to_string()).await;
    }

    /// Sends text as it is and waits for the next message that is no notification.
    pub(crate) async fn raw(&mut self, text: &str) -> Value {
        self.channel.send(text).await;
        self.wait_for("an answer", |message| message.get("method").is_none()).await
    }

    /// Waits for a notification of this name; gives its parameters.
    pub(crate) async fn notified(&mut self, name: &str) -> Value {
        self.notified_where(name, |_| true).await
    }

    /// Waits for a notification of this name whose parameters fit.
    pub(crate) async fn notified_where(&mut self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let fits = |message: &Value| message["method"] == name && fits(&message["params"]);
        self.wait_for(name, fits).await["params"].take()
    }

    /// Waits for the next change of a file or folder; a root that is told anew, as at the start, is none.
    pub(crate) async fn file_change(&mut self) -> Value {
        self.notified_where("notify_filelist_changed", |params| params[0]["action"] != "root_update").await
    }

    /// Waits until a status update carries this value (`print_stats/state`).
    pub(crate) async fn status(&mut self, field: &str, value: &str) {
        let pointer = format!("/0/{field}");
        self.notified_where("notify_status_update", |params| params.pointer(&pointer).is_some_and(|seen| seen == value)).await;
    }

    /// The next message, whatever it is, but for the statistics that come each second.
    pub(crate) async fn next(&mut self) -> Value {
        self.wait_for("any message", |message| message["method"] != STATISTICS).await
    }

    /// True when a kept message or one that comes before the answer to a call made now is such a notification.
    pub(crate) async fn saw(&mut self, name: &str) -> bool {
        let _ = self.call("server.info", json!({})).await;
        self.kept.iter().any(|message| message["method"] == name)
    }

    /// True when such a notification came before what was waited for last.
    pub(crate) fn came_before(&self, name: &str) -> bool {
        self.kept.iter().any(|message| message["method"] == name)
    }

    /// Forgets what was kept.
    pub(crate) fn forget(&mut self) {
        self.kept.clear();
    }

    async fn wait_for(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(position) = self.kept.iter().position(&fits) {
            return self.kept.remove(position).unwrap();
        }
        within(what, async {
            loop {
                let message = self.read(what).await;
                if fits(&message) {
                    return message;
                }
                self.kept.push_back(message);
            }
        })
        .await
    }

    async fn read(&mut self, what: &str) -> Value {
        let text = within(what, self.channel.receive()).await.unwrap_or_else(|| panic!("the connection ended before: {what}"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }
}
