//! The clients' database, as a front end uses it at its start; what was acknowledged stays.

use serde_json::{Value, json};

use crate::harness::TestServer;

#[tokio::test]
async fn a_front_end_starts() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    let missing = ws.call("server.database.get_item", json!({"namespace": "mainsail"})).await.unwrap_err();
    assert_eq!(missing.code, -32601, "{missing:?}");
    let item = json!({"namespace": "mainsail", "key": "general.printername", "value": "Voron"});
    assert_eq!(ws.ok("server.database.post_item", item.clone()).await, item);
    let all = ws.ok("server.database.get_item", json!({"namespace": "mainsail"})).await;
    assert_eq!((&all["value"], &all["key"]), (&json!({"general": {"printername": "Voron"}}), &Value::Null));
    let listed = ws.ok("server.database.list", json!({})).await;
    assert!(listed["namespaces"].as_array().unwrap().contains(&json!("mainsail")));
    let gone = ws.ok("server.database.delete_item", json!({"namespace": "mainsail", "key": "general.printername"})).await;
    assert_eq!(gone["value"], "Voron");
}

#[tokio::test]
async fn items_are_kept_over_http() {
    let server = TestServer::without_printer().await;
    let http = server.http();
    let target = "/server/database/item";
    http.post_json(target, &json!({"namespace": "n", "key": ["a.b", "c"], "value": null})).await.result();
    let item = http.get("/server/database/item?namespace=n&key:json=%5B%22a.b%22,%22c%22%5D").await.result();
    assert_eq!(item["value"], Value::Null);
    assert_eq!(http.get("/server/database/item?namespace=n").await.result()["value"], json!({"a.b": {"c": null}}));
    assert_eq!(http.delete("/server/database/item?namespace=n&key=none").await.status, 404);
    assert_eq!(http.get(target).await.error(), (400, "No data for argument: namespace".to_owned()));
}

#[tokio::test]
async fn own_namespaces_are_protected() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    for namespace in ["database", "moonraker", "core", "update_manager"] {
        let error = ws.call("server.database.post_item", json!({"namespace": namespace, "key": "a", "value": 1})).await.unwrap_err();
        assert_eq!(error.code, 403, "{namespace}: {error:?}");
    }
}

#[tokio::test]
async fn items_survive_a_restart() {
    let mut server = TestServer::without_printer().await;
    let item = json!({"namespace": "n", "key": "k", "value": {"deep": [1, 2.5, "ü"]}});
    server.ws().await.ok("server.database.post_item", item.clone()).await;
    server.restart().await;
    assert_eq!(server.ws().await.ok("server.database.get_item", json!({"namespace": "n", "key": "k"})).await, item);
}

#[tokio::test]
async fn acknowledged_items_survive_kill_9() {
    let mut server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    for index in 0..50 {
        ws.ok("server.database.post_item", json!({"namespace": "n", "key": format!("k{index}"), "value": index})).await;
    }
    server.kill9().await;
    server.start_again().await;
    let all = server.ws().await.ok("server.database.get_item", json!({"namespace": "n"})).await;
    assert_eq!(all["value"].as_object().unwrap().len(), 50);
    assert_eq!(server.info().await["warnings"], json!([]));
}
