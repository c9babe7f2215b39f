//! API keys, oneshot tokens, roles and sessions.

use serde_json::{Value, json};

use crate::harness::{RpcError, TestServer};

async fn strangers_server() -> TestServer {
    TestServer::builder().without_printer().authorization("").start().await
}

async fn status(server: &TestServer, verb: &str, target: &str, key: &str) -> u16 {
    server.http().send(verb, target, &[("X-Api-Key", key)], b"").await.status
}

#[tokio::test]
async fn the_api_key_is_replaced_at_once_and_open_sockets_stay() {
    let server = strangers_server().await;
    let mut local = server.unix().await;
    let old = local.ok("access.get_api_key", json!({})).await.as_str().unwrap().to_owned();
    assert!(old.len() == 32 && old.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{old}");
    assert_eq!((status(&server, "GET", "/server/info", &old).await, status(&server, "GET", "/server/info", "wrong").await), (200, 401));
    let mut ws = server.try_ws(&[("X-Api-Key", &old)]).await.unwrap();
    assert_eq!(ws.ok("access.get_user", json!({})).await["username"], "_API_KEY_USER_");
    let new = server.http().send("POST", "/access/api_key", &[("X-Api-Key", &old)], b"").await.result();
    assert_ne!(new, json!(old));
    assert_eq!(status(&server, "GET", "/server/info", &old).await, 401);
    assert_eq!(status(&server, "GET", "/server/info", new.as_str().unwrap()).await, 200);
    ws.ok("server.info", json!({})).await;
    let rpc = br#"{"jsonrpc":"2.0","method":"server.info","id":1}"#;
    let answer = server.http().send("POST", "/server/jsonrpc", &[("X-Api-Key", &old)], rpc).await.json();
    assert_eq!(answer["error"]["message"], "Unauthorized");
}

#[tokio::test]
async fn keys_can_be_switched_off() {
    let server = TestServer::builder().without_printer().authorization("[authorization]\nenable_api_key: false\n").start().await;
    let key = server.unix().await.ok("access.get_api_key", json!({})).await;
    assert_eq!(status(&server, "GET", "/server/info", key.as_str().unwrap()).await, 401);
}

#[tokio::test]
async fn a_oneshot_token_opens_one_thing_once() {
    let server = TestServer::builder().authorization("").start().await;
    let key = server.unix().await.ok("access.get_api_key", json!({})).await.as_str().unwrap().to_owned();
    let http = server.http();
    let oneshot = || async {
        let token = http.send("GET", "/access/oneshot_token", &[("X-Api-Key", &key)], b"").await.result();
        let token = token.as_str().unwrap().to_owned();
        assert!(token.len() == 32 && token.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7')), "{token}");
        token
    };
    let token = oneshot().await;
    assert_eq!(http.get(&format!("/server/info?token={token}")).await.status, 200);
    assert_eq!(http.get(&format!("/server/info?token={token}")).await.status, 401);
    // Over a proxy that nobody configured the address is not the one that the token was made for.
    let mut ws = server.try_ws_at(&format!("/websocket?token={}", oneshot().await), &[]).await.unwrap();
    ws.ok("server.info", json!({})).await;
    assert_eq!(server.bridge().await.err(), Some(401), "a bridge needs one when authentication is required");
    assert_eq!(server.bridge_at("/klippysocket?token=").await.err(), Some(401));
    let mut bridge = server.bridge_at(&format!("/klippysocket?token={}", oneshot().await)).await.unwrap();
    bridge.ask(&json!({"id": 1, "method": "info", "params": {}}), |document| document["id"] == 1).await;
    let error = server.unix().await.call("access.oneshot_token", json!({})).await.unwrap_err();
    assert!(error.code == 400 && error.message.contains("address"), "{error:?}");
}

#[tokio::test]
async fn named_keys_have_roles_and_can_be_taken_away() {
    let server = strangers_server().await;
    let mut local = server.unix().await;
    let made = local.ok("access.keys.create", json!({"name": "camera", "role": "viewer"})).await;
    let key = made["key"].as_str().unwrap();
    assert_eq!((made["role"].as_str(), made["action"].as_str()), (Some("viewer"), Some("key_created")));
    assert_eq!(status(&server, "GET", "/server/info", key).await, 200);
    let refused = server.http().send("POST", "/printer/emergency_stop", &[("X-Api-Key", key)], b"").await;
    assert_eq!(refused.error(), (403, "This needs the role operator; your role is viewer".to_owned()));
    assert_eq!(status(&server, "GET", "/access/api_key", key).await, 403, "a viewer does not become more by the other key");
    let mut ws = server.try_ws(&[("X-Api-Key", key)]).await.unwrap();
    assert_eq!(ws.call("server.restart", json!({})).await.unwrap_err().code, 403);
    let listed = local.ok("access.keys.list", json!({})).await;
    assert_eq!((&listed["keys"][0]["name"], listed.to_string().contains(key)), (&json!("camera"), false));
    assert!(listed["keys"][0]["last_used"].as_f64().unwrap() > 0.0);
    assert_eq!(local.call("access.keys.create", json!({"name": "camera", "role": "admin"})).await.unwrap_err().code, 400);
    assert_eq!(
        local.call("access.keys.create", json!({"name": "late", "role": "admin", "expires_on": 1000.0})).await.unwrap_err().code,
        400
    );
    local.ok("access.keys.delete", json!({"name": "camera"})).await;
    assert_eq!(status(&server, "GET", "/server/info", key).await, 401);
    assert_eq!(ws.call("server.info", json!({})).await, Err(RpcError::new(-32602, "Unauthorized")));
    assert_eq!(local.call("access.keys.delete", json!({"name": "camera"})).await.unwrap_err().code, -32601);
}

#[tokio::test]
async fn roles_hold_on_every_way_and_change_at_once() {
    let server = TestServer::builder().authorization("").start().await;
    let mut local = server.unix().await;
    let user = local.ok("access.post_user", json!({"username": "kid", "password": "p", "role": "viewer"})).await;
    let header = format!("Bearer {}", user["token"].as_str().unwrap());
    let headers = [("Authorization", header.as_str())];
    let mut ws = server.try_ws(&headers).await.unwrap();
    ws.ok("printer.objects.query", json!({"objects": {"toolhead": null}})).await;
    assert_eq!(ws.call("printer.gcode.script", json!({"script": "G28"})).await.unwrap_err().code, 403);
    let rpc = br#"{"jsonrpc":"2.0","method":"printer.emergency_stop","id":1}"#;
    assert_eq!(server.http().send("POST", "/server/jsonrpc", &headers, rpc).await.json()["error"]["code"], 403);
    assert_eq!(server.http().send("POST", "/server/files/upload", &headers, b"").await.status, 403);
    assert_eq!(server.http().send("DELETE", "/server/files/gcodes/a.gcode", &headers, b"").await.status, 403);
    let token = server.http().send("GET", "/access/oneshot_token", &headers, b"").await.result();
    assert_eq!(server.bridge_at(&format!("/fwhostsocket?token={}", token.as_str().unwrap())).await.err(), Some(403));
    let changed = local.ok("access.users.role", json!({"username": "kid", "role": "operator"})).await;
    assert_eq!(changed, json!({"username": "kid", "role": "operator", "action": "user_role_changed"}));
    ws.ok("printer.gcode.script", json!({"script": "G28"})).await;
    assert_eq!(ws.call("access.users.role", json!({"username": "kid", "role": "admin"})).await.unwrap_err().code, 403);
    assert_eq!(ws.call("access.post_user", json!({"username": "b", "password": "p"})).await.unwrap_err().code, 403);
    assert_eq!(server.info().await["klippy_state"], "ready");
}

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one() {
    let server = strangers_server().await;
    let mut local = server.unix().await;
    let first = local.ok("access.post_user", json!({"username": "anna", "password": "p", "role": "viewer"})).await;
    let other = local.ok("access.post_user", json!({"username": "bob", "password": "p"})).await;
    let second = server.http().post_json("/access/login", &json!({"username": "anna", "password": "p"})).await.result();
    let bearer = |answer: &Value| format!("Bearer {}", answer["token"].as_str().unwrap());
    let mut ws = server.try_ws(&[("Authorization", &bearer(&first))]).await.unwrap();
    let own = ws.ok("access.sessions.list", json!({})).await;
    let own = own["sessions"].as_array().unwrap();
    assert_eq!((own.len(), own.iter().filter(|session| session["current"] == true).count()), (2, 1));
    assert_eq!(ws.call("access.sessions.list", json!({"username": "bob"})).await.unwrap_err().code, 403);
    let all = local.ok("access.sessions.list", json!({})).await;
    assert_eq!(all["sessions"].as_array().unwrap().len(), 3);
    let bobs = local.ok("access.sessions.list", json!({"username": "bob"})).await;
    let bobs = json!({"session_id": bobs["sessions"][0]["session_id"]});
    assert_eq!(ws.call("access.sessions.delete", bobs).await.unwrap_err().code, -32601, "nobody else's");
    let elsewhere = own.iter().find(|session| session["current"] == false).unwrap();
    let ended = ws.ok("access.sessions.delete", json!({"session_id": elsewhere["session_id"]})).await;
    assert_eq!(ended["action"], "session_ended");
    let http = server.http();
    for (answer, expected) in [(&first, 200), (&second, 401), (&other, 200)] {
        assert_eq!(http.send("GET", "/server/info", &[("Authorization", &bearer(answer))], b"").await.status, expected);
    }
}

#[tokio::test]
async fn sources_have_two_names_and_the_component_is_listed() {
    let server = TestServer::without_printer().await;
    let info = server.http().get("/access/info").await.result();
    assert_eq!(info, json!({"default_source": "core", "available_sources": ["core"], "login_required": false, "trusted": true}));
    let components = server.info().await["components"].clone();
    assert!(components.as_array().unwrap().contains(&json!("authorization")), "{components}");
    assert_eq!(server.unix().await.ok("access.info", json!({})).await["trusted"], Value::Null);
    assert_eq!(server.unix().await.ok("access.get_user", json!({})).await["username"], Value::Null);
    let upstream = TestServer::builder().without_printer().config_name("moonraker.conf").start().await;
    let info = upstream.http().get("/access/info").await.result();
    assert_eq!((&info["default_source"], &info["available_sources"]), (&json!("moonraker"), &json!(["moonraker"])));
    let user = upstream.http().post_json("/access/user", &json!({"username": "a", "password": "p", "source": "moonraker"})).await.result();
    assert_eq!(user["source"], "moonraker");
}

#[tokio::test]
async fn clients_can_be_trusted_by_name() {
    let server = TestServer::builder().without_printer().authorization("[authorization]\ntrusted_clients:\n    localhost\n").start().await;
    let look = || async { server.http().get("/server/info").await.status };
    crate::harness::wait::until("trust in localhost", look, |status| *status == 200).await;
    assert_eq!(server.info().await["warnings"], json!([]));
}
