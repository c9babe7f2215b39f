//! The audit log: who changed what.

use serde_json::{Value, json};

use crate::harness::TestServer;
use crate::harness::ws::Frames;

async fn entries(server: &TestServer) -> Vec<Value> {
    server.unix().await.ok("access.audit.list", json!({})).await["entries"].as_array().unwrap().clone()
}

/// Transport, method, status of each entry from the oldest on.
fn shorts(entries: &[Value]) -> Vec<(String, String, u64)> {
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    entries.iter().rev().map(|entry| (text(entry, "transport"), text(entry, "method"), entry["status"].as_u64().unwrap())).collect()
}

#[tokio::test]
async fn whatever_changes_something_is_noted_on_every_transport() {
    let mut server = TestServer::start().await;
    let (mut ws, mut unix, http) = (server.ws().await, server.unix().await, server.http());
    ws.ok("printer.gcode.script", json!({"script": "G28"})).await;
    unix.ok("server.database.post_item", json!({"namespace": "n", "key": "k", "value": "very secret"})).await;
    server.upload("a.gcode", "G28").await;
    assert_eq!(http.send("DELETE", "/server/files/gcodes/a.gcode", &[], b"").await.status, 200);
    assert_eq!(http.post_json("/printer/print/start", &json!({"filename": "none.gcode"})).await.status, 400);
    http.get("/server/info").await.result();
    let seen = entries(&server).await;
    let expected = [
        ("websocket", "printer.gcode.script", 200),
        ("unix", "server.database.post_item", 200),
        ("http", "server.files.upload", 200),
        ("http", "server.files.delete_file", 200),
        ("http", "printer.print.start", 400),
    ];
    assert_eq!(shorts(&seen), expected.map(|(way, method, status)| (way.to_owned(), method.to_owned(), status)));
    assert_eq!((&seen[4]["caller"], &seen[4]["address"], &seen[3]["caller"]), (&json!("trusted"), &json!("127.0.0.1"), &json!("local")));
    assert_eq!((&seen[4]["arguments"], &seen[0]["arguments"]), (&json!({"script": "G28"}), &json!({"filename": "none.gcode"})));
    assert!(!json!(seen).to_string().contains("very secret"), "values are not kept");
    server.restart().await;
    assert_eq!(entries(&server).await, seen, "what was noted survives");
}

#[tokio::test]
async fn the_audit_log_is_read_page_by_page() {
    let server = TestServer::without_printer().await;
    let mut unix = server.unix().await;
    for number in 0..5 {
        unix.ok("server.database.post_item", json!({"namespace": format!("n{number}"), "key": "k", "value": 1})).await;
    }
    let (mut seen, mut before) = (Vec::new(), Value::Null);
    loop {
        let page = unix.ok("access.audit.list", json!({"before": before, "limit": 2})).await;
        seen.extend(page["entries"].as_array().unwrap().iter().map(|entry| entry["arguments"]["namespace"].as_str().unwrap().to_owned()));
        before = page["next"].clone();
        if before.is_null() {
            break;
        }
    }
    assert_eq!(seen, ["n4", "n3", "n2", "n1", "n0"]);
}

#[tokio::test]
async fn strangers_neither_read_nor_fill_the_audit_log() {
    let server = TestServer::builder().without_printer().authorization("").start().await;
    assert_eq!(server.http().get("/access/audit/list").await.status, 401);
    let mut ws = server.ws().await;
    for _ in 0..200 {
        let _ = ws.call("server.restart", json!({})).await;
    }
    assert!(entries(&server).await.len() <= 60);
}

#[tokio::test]
async fn logins_refusals_and_bridges_are_noted_without_secrets() {
    let server = TestServer::builder().authorization("").start().await;
    let (mut unix, http) = (server.unix().await, server.http());
    let vera = unix.ok("access.post_user", json!({"username": "vera", "password": "hidden word", "role": "viewer"})).await;
    for (password, status) in [("wrong hidden word", 401), ("hidden word", 200)] {
        assert_eq!(http.post_json("/access/login", &json!({"username": "vera", "password": password})).await.status, status);
    }
    let bearer = format!("Bearer {}", vera["token"].as_str().unwrap());
    assert_eq!(http.send("POST", "/server/restart", &[("Authorization", &bearer)], b"").await.status, 403);
    let key = unix.ok("access.get_api_key", json!({})).await;
    let bridge = Frames::open(server.port, "/fwhostsocket", &[("X-Api-Key", key.as_str().unwrap())]).await;
    assert!(bridge.is_ok());
    let seen = entries(&server).await;
    let expected = [
        ("unix", "access.post_user", 200),
        ("http", "access.login", 401),
        ("http", "access.login", 200),
        ("http", "server.restart", 403),
        ("unix", "access.get_api_key", 200),
        ("http", "fwhostsocket", 200),
    ];
    assert_eq!(shorts(&seen), expected.map(|(way, method, status)| (way.to_owned(), method.to_owned(), status)));
    assert_eq!((&seen[2]["caller"], &seen[2]["user"]), (&json!("user"), &json!("vera")));
    assert_eq!((&seen[4]["caller"], &seen[4]["arguments"]), (&json!("stranger"), &json!({"username": "vera"})));
    let text = json!(seen).to_string();
    assert!(!text.contains("hidden word") && !text.contains(vera["token"].as_str().unwrap()) && !text.contains(key.as_str().unwrap()));
}
