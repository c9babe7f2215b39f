//! Agents: programs that stay connected and offer methods to clients and macros.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Channel, Rpc, RpcError, TestServer, wait};

async fn identify<C: Channel>(client: &mut Rpc<C>, name: &str) -> Result<Value, RpcError> {
    client.call("server.connection.identify", json!({"client_name": name, "version": "1", "type": "agent", "url": "http://a"})).await
}

fn request(method: &str, arguments: &Value) -> Value {
    json!({"agent": "a", "method": method, "arguments": arguments})
}

#[tokio::test]
async fn a_client_talks_to_an_agent_through_the_server() {
    let server = TestServer::without_printer().await;
    let (mut client, mut agent) = (server.ws().await, server.unix().await);
    identify(&mut agent, "a").await.unwrap();
    assert_eq!(client.notified("notify_agent_event").await[0]["event"], "connected");
    for (answer, expected) in [
        (json!({"result": null}), Ok(Value::Null)),
        (json!({"result": [{"deep": 1.0}]}), Ok(json!([{"deep": 1.0}]))),
        (json!({"error": {"code": 5, "message": "bad"}}), Err(RpcError::new(424, "Agent a RPC error: bad"))),
    ] {
        let id = client.begin("server.extensions.request", request("m", &json!([1, "x"]))).await;
        let asked = agent.asked("m").await;
        assert_eq!(asked["params"], json!([1, "x"]));
        agent.reply(&asked, &answer).await;
        agent.reply(&asked, &json!({"result": "twice"})).await;
        assert_eq!(client.answer(id).await, expected);
    }
    let (http, asking) = (server.http(), request("m", &Value::Null));
    let (reply, ()) = tokio::join!(http.post_json("/server/extensions/request", &asking), async {
        let asked = agent.asked("m").await;
        assert_eq!(asked.get("params"), None);
        agent.reply(&asked, &json!({"result": null})).await;
    });
    assert_eq!(reply.result(), Value::Null);
}

#[tokio::test]
async fn whoever_waits_for_an_agent_that_leaves_is_told() {
    let server = TestServer::without_printer().await;
    let (mut client, mut agent) = (server.ws().await, server.ws().await);
    identify(&mut agent, "a").await.unwrap();
    let id = client.begin("server.extensions.request", request("m", &json!({}))).await;
    agent.asked("m").await;
    drop(agent);
    assert_eq!(client.answer(id).await.unwrap_err().code, 500);
    assert_eq!(client.notified_where("notify_agent_event", |params| params[0]["event"] == "disconnected").await[0]["agent"], "a");
    assert_eq!(client.ok("server.extensions.list", json!({})).await, json!({"agents": []}));
    assert_eq!(client.call("server.extensions.request", request("m", &json!({}))).await.unwrap_err().code, 400);
}

#[tokio::test]
async fn a_second_agent_of_a_name_may_choose_another() {
    let server = TestServer::without_printer().await;
    let (mut first, mut second) = (server.ws().await, server.ws().await);
    identify(&mut first, "a").await.unwrap();
    assert_eq!(identify(&mut second, "a").await.unwrap_err().code, 400);
    second.ok("server.info", json!({})).await;
    identify(&mut second, "b").await.unwrap();
    assert_eq!(identify(&mut second, "c").await.unwrap_err().message, "Connection already identified");
    let names = second.ok("server.extensions.list", json!({})).await["agents"].as_array().unwrap().clone();
    assert_eq!(names.iter().map(|agent| &agent["name"]).collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test]
async fn macros_call_agents_also_after_a_restart_of_the_firmware_host() {
    let server = TestServer::start().await;
    let (mut client, mut agent) = (server.ws().await, server.ws().await);
    identify(&mut agent, "a").await.unwrap();
    assert!(client.call("connection.register_remote_method", json!({"method_name": "x"})).await.is_err(), "agents only");
    agent.ok("connection.register_remote_method", json!({"method_name": "a_beep"})).await;
    assert_eq!(agent.call("connection.register_remote_method", json!({"method_name": "a_beep"})).await.unwrap_err().code, 400);
    let beep = json!({"script": "CALL_REMOTE METHOD=a_beep TONE=440"});
    client.ok("printer.gcode.script", beep.clone()).await;
    assert_eq!(agent.notified("a_beep").await, json!({"tone": 440}));
    // The first start may have been told after the websocket was opened.
    client.forget();
    client.ok("printer.restart", json!({})).await;
    client.notified("notify_klippy_ready").await;
    client.ok("printer.gcode.script", beep.clone()).await;
    assert_eq!(agent.notified("a_beep").await, json!({"tone": 440}));
    drop(agent);
    client.notified_where("notify_agent_event", |params| params[0]["event"] == "disconnected").await;
    client.ok("printer.gcode.script", beep).await;
}

#[tokio::test]
async fn events_of_an_agent_reach_everybody_else() {
    let server = TestServer::without_printer().await;
    let (mut client, mut local, mut agent) = (server.ws().await, server.unix().await, server.ws().await);
    assert!(agent.call("connection.send_event", json!({"event": "x"})).await.is_err());
    identify(&mut agent, "a").await.unwrap();
    agent.ok("connection.send_event", json!({"event": "x", "data": {"n": 1}})).await;
    assert_eq!(agent.call("connection.send_event", json!({"event": "connected"})).await.unwrap_err().code, 400);
    let is_x = |params: &Value| params == &json!([{"agent": "a", "event": "x", "data": {"n": 1}}]);
    client.notified_where("notify_agent_event", is_x).await;
    local.notified_where("notify_agent_event", is_x).await;
    assert!(!agent.saw("notify_agent_event").await);
}

/// Ends the example when the test does.
struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_example_agent_serves_clients_and_macros() {
    let has_package = Command::new("python3").args(["-c", "import websockets"]).stderr(Stdio::null()).status();
    if !has_package.is_ok_and(|status| status.success()) {
        println!("skipped: needs python3 with the package websockets");
        return;
    }
    let server = TestServer::start().await;
    let mut client = server.ws().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agent.py");
    let url = format!("ws://127.0.0.1:{}/websocket", server.port);
    let _example = Example(Command::new("python3").arg(script).arg(url).stdout(Stdio::null()).spawn().unwrap());
    client.notified_where("notify_agent_event", |params| params[0]["agent"] == "greeter").await;
    let ask = |method: &str| json!({"agent": "greeter", "method": method, "arguments": {"name": "Ada"}});
    assert_eq!(client.ok("server.extensions.request", ask("greet")).await, json!({"text": "Hello Ada"}));
    assert_eq!(client.call("server.extensions.request", ask("none")).await.unwrap_err().message, "Agent greeter RPC error: no method none");
    // The example registers its method right after it came.
    let say = json!({"script": "CALL_REMOTE METHOD=greeter_say TEXT=hi"});
    let heard = || async {
        let mut client = server.ws().await;
        client.ok("printer.gcode.script", say.clone()).await;
        client.ok("server.extensions.request", ask("greet")).await;
        client.came_before("notify_agent_event")
    };
    wait::until("the macro reaches the example", heard, |heard| *heard).await;
    assert_eq!(client.notified_where("notify_agent_event", |params| params[0]["event"] == "said").await[0]["data"], json!({"text": "hi"}));
}
