//! Websockets that say who they are after they were opened, and what they lose at logout.

use serde_json::{Value, json};

use crate::harness::ws::Frames;
use crate::harness::{Rpc, RpcError, TestServer};

/// A server that trusts nobody, and the tokens of its user.
async fn with_anna() -> (TestServer, Value) {
    let server = TestServer::builder().authorization("").start().await;
    let anna = server.unix().await.ok("access.post_user", json!({"username": "anna", "password": "secret of it"})).await;
    (server, anna)
}

async fn identify(ws: &mut Rpc<Frames>, kind: &str, credentials: Value) -> Result<Value, RpcError> {
    let mut params = json!({"client_name": "test", "version": "1", "type": kind, "url": "http://a"});
    params.as_object_mut().unwrap().extend(credentials.as_object().unwrap().clone());
    ws.call("server.connection.identify", params).await
}

#[tokio::test]
async fn a_token_or_a_key_opens_a_websocket_later() {
    let (server, anna) = with_anna().await;
    let key = server.unix().await.ok("access.get_api_key", json!({})).await;
    for good in [json!({"access_token": anna["token"]}), json!({"api_key": key})] {
        let mut ws = server.ws().await;
        for bad in [json!({}), json!({"access_token": "x.y.z"}), json!({"access_token": anna["refresh_token"]}), json!({"api_key": "x"})] {
            let refused = identify(&mut ws, "web", bad.clone()).await.unwrap_err();
            assert_eq!(refused, RpcError::new(-32602, "Unauthorized"), "{bad}");
        }
        assert_eq!(ws.call("server.info", json!({})).await.unwrap_err().message, "Unauthorized");
        identify(&mut ws, "web", good).await.unwrap();
        ws.ok("server.info", json!({})).await;
        ws.ok("printer.gcode.script", json!({"script": "M115"})).await;
        ws.notified("notify_gcode_response").await;
        assert_eq!(identify(&mut ws, "web", json!({})).await.unwrap_err().message, "Connection already identified");
    }
}

#[tokio::test]
async fn messages_may_be_large_as_soon_as_the_client_is_known() {
    let (server, anna) = with_anna().await;
    let mut ws = server.ws().await;
    let item = json!({"namespace": "n", "key": "k", "value": "x".repeat(1024 * 1024)});
    identify(&mut ws, "web", json!({"access_token": anna["token"]})).await.unwrap();
    ws.ok("server.database.post_item", item.clone()).await;
    server.unix().await.ok("access.delete_user", json!({"username": "anna"})).await;
    ws.notified("notify_user_deleted").await;
    let _ = ws.begin("server.database.post_item", item).await;
    assert_eq!(ws.closed().await, Some(1009), "a stranger's again");
}

#[tokio::test]
async fn logout_leaves_a_socket_nothing_but_the_way_in() {
    let (server, anna) = with_anna().await;
    let (mut ws, mut local) = (server.ws().await, server.unix().await);
    identify(&mut ws, "web", json!({"access_token": anna["token"]})).await.unwrap();
    ws.ok("printer.objects.subscribe", json!({"objects": {"toolhead": null, "heater_bed": null}})).await;
    ws.ok("access.logout", json!({})).await;
    ws.notified("notify_user_logged_out").await;
    ws.forget();
    local.ok("printer.gcode.script", json!({"script": "G28\nM115"})).await;
    local.notified("notify_gcode_response").await;
    assert_eq!(ws.call("server.info", json!({})).await.unwrap_err().message, "Unauthorized");
    assert!(!ws.came_before("notify_status_update") && !ws.came_before("notify_gcode_response"));
    assert_eq!(identify(&mut ws, "web", json!({"access_token": anna["token"]})).await.unwrap_err().message, "Unauthorized");
    ws.ok("access.login", json!({"username": "anna", "password": "secret of it"})).await;
    identify(&mut ws, "web", json!({})).await.unwrap();
}

#[tokio::test]
async fn an_agent_is_none_any_more_after_its_logout() {
    let (server, anna) = with_anna().await;
    let (mut agent, mut local) = (server.ws().await, server.unix().await);
    identify(&mut agent, "agent", json!({"access_token": anna["token"]})).await.unwrap();
    let waiting = local.begin("server.extensions.request", json!({"agent": "test", "method": "m"})).await;
    agent.asked("m").await;
    agent.ok("access.logout", json!({})).await;
    assert_eq!(local.answer(waiting).await.unwrap_err().code, 500);
    local.notified_where("notify_agent_event", |params| params[0]["event"] == "disconnected").await;
    assert_eq!(local.ok("server.extensions.list", json!({})).await["agents"], json!([]));
}

#[tokio::test]
async fn viewers_are_no_agents() {
    let (server, _) = with_anna().await;
    let viewer = json!({"username": "vera", "password": "secret of it", "role": "viewer"});
    let vera = server.unix().await.ok("access.post_user", viewer).await;
    let mut ws = server.ws().await;
    assert_eq!(identify(&mut ws, "agent", json!({"access_token": vera["token"]})).await.unwrap_err().code, 403);
    identify(&mut ws, "web", json!({})).await.unwrap();
}
