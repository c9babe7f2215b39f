use super::*;

use std::collections::HashMap;

use rpc::connection::Registered;
use rpc::{Arguments, Call, ConnectionKind, Identity, Operations, Outcome, Registry};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A firmware host that only remembers what it is offered.
#[derive(Default)]
struct Macros(Mutex<HashMap<String, Arc<MacroHandler>>>);

impl Macros {
    fn call(&self, method: &str, arguments: &Value) -> bool {
        let handler = self.0.lock().get(method).cloned();
        handler.map(|handler| handler(serde_json::value::to_raw_value(arguments).unwrap())).is_some()
    }
}

impl MacroHost for Macros {
    fn offer(&self, method: &str, handler: MacroHandler) -> Result<(), ApiError> {
        let mut offered = self.0.lock();
        if offered.contains_key(method) {
            return Err(ApiError::bad_request("taken"));
        }
        offered.insert(method.into(), Arc::new(handler));
        Ok(())
    }
    fn withdraw(&self, method: &str) {
        self.0.lock().remove(method);
    }
}

struct House {
    connections: Arc<Connections>,
    macros: Arc<Macros>,
    operations: Operations,
    agents: Arc<Agents>,
}

impl House {
    fn new() -> Self {
        let (connections, macros) = (Arc::<Connections>::default(), Arc::<Macros>::default());
        let agents = Agents::new(connections.clone(), macros.clone());
        let mut registry = Registry::default();
        agents.register(&mut registry);
        Self { connections, macros, operations: registry.build().unwrap(), agents }
    }

    fn connect(&self) -> Registered {
        self.connections.register(ConnectionKind::Websocket, Identity::Trusted, None)
    }

    fn identify(&self, registered: &Registered, name: &str) -> Result<(), ApiError> {
        let info = ClientInfo { name: name.into(), version: "1.2".into(), kind: ClientKind::Agent, url: "http://a".into() };
        self.connections.identify(&registered.connection, info)
    }

    fn agent(&self, name: &str) -> Registered {
        let registered = self.connect();
        self.identify(&registered, name).unwrap();
        registered
    }

    async fn call(&self, from: &Registered, method: &str, params: Value) -> Result<Value, ApiError> {
        let text = serde_json::value::to_raw_value(&params).unwrap();
        let call = Arc::new(Call::on(&from.connection));
        let operation = self.operations.method(method).unwrap().operation;
        let result = match operation.invoke(&call, &Arguments::from_json(Some(&text)).unwrap()) {
            Outcome::Done(result) => result,
            Outcome::Working(work) => work.await,
        };
        result.map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    /// A request to the agent `a`, with what the agent got and the answer that it gives.
    async fn relay(&self, agent: &Registered, arguments: Value, answer: &str) -> (Value, Result<Value, ApiError>) {
        let client = self.connect();
        let request = self.call(&client, "server.extensions.request", json!({"agent": "a", "method": "m", "arguments": arguments}));
        let answering = async {
            let got = sent(agent).pop().unwrap();
            let text = answer.replace("ID", &got["id"].to_string());
            let envelope::Document::Single(envelope::Incoming::Reply(reply)) = envelope::parse(text.as_bytes()) else { panic!("{text}") };
            agent.connection.take_answer(&reply);
            agent.connection.take_answer(&reply);
            got
        };
        let (result, got) = tokio::join!(request, answering);
        (got, result)
    }
}

fn sent(to: &Registered) -> Vec<Value> {
    let mut out = Vec::new();
    to.connection.outbox.take(&mut out, usize::MAX);
    out.iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect()
}

#[tokio::test]
async fn agents_come_and_go_and_others_are_told() {
    let house = House::new();
    let client = house.connect();
    let agent = house.agent("a");
    let info = json!({"name": "a", "version": "1.2", "type": "agent", "url": "http://a"});
    assert_eq!(sent(&client)[0]["params"], json!([{"agent": "a", "event": "connected", "data": info}]));
    assert_eq!(house.call(&client, "server.extensions.list", json!({})).await.unwrap(), json!({"agents": [info]}));
    assert!(sent(&agent).is_empty(), "what it causes is no news to an agent");
    drop(agent);
    assert_eq!(sent(&client)[0]["params"], json!([{"agent": "a", "event": "disconnected"}]));
    assert_eq!(house.call(&client, "server.extensions.list", json!({})).await.unwrap(), json!({"agents": []}));
}

#[tokio::test]
async fn a_name_is_taken_once_and_whoever_is_refused_may_try_another() {
    let house = House::new();
    let first = house.agent("a");
    let second = house.connect();
    assert_eq!(house.identify(&second, "a").unwrap_err().kind, ErrorKind::BadRequest);
    assert!(house.identify(&second, "").is_err() && house.identify(&second, &"x".repeat(MAX_NAME + 1)).is_err());
    house.identify(&second, "b").unwrap();
    drop(first);
    house.agent("a");
    // Logged out, it is nobody's agent, and may become one again after a login.
    house.connections.revoke(|identity| *identity == Identity::Trusted);
    assert!(house.agents.list().is_empty());
    second.connection.set_identity(Identity::Trusted);
    house.identify(&second, "b").unwrap();
    let stranger = house.connections.register(ConnectionKind::Websocket, Identity::Stranger, None);
    assert_eq!(house.identify(&stranger, "c").unwrap_err().kind, ErrorKind::Forbidden);
}

#[tokio::test]
async fn results_come_back_unchanged() {
    let house = House::new();
    let agent = house.agent("a");
    for (answer, result) in [("null", Value::Null), ("[1.0, {\"b\": 2}]", json!([1.0, {"b": 2}])), ("\"ok\"", json!("ok"))] {
        let (got, relayed) = house.relay(&agent, json!({"k": 1}), &format!(r#"{{"jsonrpc":"2.0","result":{answer},"id":ID}}"#)).await;
        assert_eq!((got["method"].as_str(), &got["params"]), (Some("m"), &json!({"k": 1})));
        assert_eq!(relayed.unwrap(), result);
    }
    for empty in [Value::Null, json!({}), json!([])] {
        let (got, _) = house.relay(&agent, empty, r#"{"jsonrpc":"2.0","result":1,"id":ID}"#).await;
        assert_eq!(got.get("params"), None);
    }
}

#[tokio::test]
async fn errors_of_an_agent_are_passed_on() {
    let house = House::new();
    let agent = house.agent("a");
    let (_, result) = house.relay(&agent, json!([1]), r#"{"jsonrpc":"2.0","error":{"code":5,"message":"bad"},"id":ID}"#).await;
    let error = result.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Agent, "Agent a RPC error: bad"));
    assert_eq!(error.data.unwrap().get(), r#"{"code":5,"message":"bad"}"#);
    let (_, result) = house.relay(&agent, json!([1]), r#"{"jsonrpc":"2.0","error":"odd","id":ID}"#).await;
    assert_eq!(result.unwrap_err().data.unwrap().get(), "\"odd\"");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let house = House::new();
    let (client, agent) = (house.connect(), house.agent("a"));
    let request = || house.call(&client, "server.extensions.request", json!({"agent": "a", "method": "m"}));
    let start = Instant::now();
    assert_eq!(request().await.unwrap_err().kind, ErrorKind::Timeout);
    assert!(start.elapsed() >= ANSWER_TIMEOUT);
    let leaving = async { drop(agent) };
    let (result, ()) = tokio::join!(request(), leaving);
    assert_eq!(result.unwrap_err().kind, ErrorKind::Internal);
    assert_eq!(request().await.unwrap_err().kind, ErrorKind::BadRequest, "gone");
    let scalar = json!({"agent": "a", "method": "m", "arguments": 5});
    assert_eq!(house.call(&client, "server.extensions.request", scalar).await.unwrap_err().kind, ErrorKind::Argument);
}

#[tokio::test]
async fn events_reach_everybody_else() {
    let house = House::new();
    let (client, agent) = (house.connect(), house.agent("a"));
    sent(&client);
    let send = |from, params| house.call(from, "connection.send_event", params);
    assert_eq!(send(&agent, json!({"event": "x", "data": [1.0]})).await.unwrap(), "ok");
    send(&agent, json!({"event": "y", "data": null})).await.unwrap();
    let told = sent(&client);
    assert_eq!(told[0], json!({"jsonrpc": "2.0", "method": "notify_agent_event", "params": [{"agent": "a", "event": "x", "data": [1.0]}]}));
    assert_eq!(told[1]["params"], json!([{"agent": "a", "event": "y"}]));
    assert!(sent(&agent).is_empty());
    for refused in ["connected", "disconnected", "", "a\nb"] {
        assert!(send(&agent, json!({"event": refused})).await.is_err(), "{refused:?}");
    }
    assert!(send(&client, json!({"event": "x"})).await.unwrap_err().message.contains("agent"), "only agents");
    assert!(sent(&client).is_empty());
}

#[tokio::test]
async fn macros_call_agents_until_they_leave() {
    let house = House::new();
    let agent = house.agent("a");
    let register =
        async |from: &Registered, name: &str| house.call(from, "connection.register_remote_method", json!({"method_name": name})).await;
    assert_eq!(register(&agent, "beep").await.unwrap(), "ok");
    assert!(register(&agent, "beep").await.is_err(), "taken, also by itself");
    let other = house.agent("b");
    assert!(register(&other, "beep").await.is_err());
    assert!(register(&house.connect(), "boop").await.is_err());
    sent(&agent);
    assert!(house.macros.call("beep", &json!({"tone": 440})) && house.macros.call("beep", &json!({})));
    assert_eq!(
        sent(&agent),
        [json!({"jsonrpc": "2.0", "method": "beep", "params": {"tone": 440}}), json!({"jsonrpc": "2.0", "method": "beep"})]
    );
    for index in 1..MAX_METHODS {
        register(&agent, &format!("m{index}")).await.unwrap();
    }
    assert!(register(&agent, "one_more").await.is_err());
    drop(agent);
    assert!(!house.macros.call("beep", &json!({})), "withdrawn with its agent");
    register(&other, "beep").await.unwrap();
}
