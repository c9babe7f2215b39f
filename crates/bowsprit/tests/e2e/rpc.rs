//! The rules of JSON-RPC on persistent connections, and subscriptions.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::harness::ws::goodbye;
use crate::harness::{RpcError, TestServer};

const MARKER: &str = r#"{"jsonrpc":"2.0","method":"server.info","id":"marker"}"#;

#[tokio::test]
async fn ids_come_back_as_they_were() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    for id in ["0", "\"text\"", "-7", "1.5", "18446744073709551616"] {
        let answer = ws.raw(&format!(r#"{{"jsonrpc":"2.0","method":"server.info","id":{id}}}"#)).await;
        assert_eq!(answer["id"], serde_json::from_str::<Value>(id).unwrap(), "{id}");
        assert!(answer["result"].is_object());
    }
}

#[tokio::test]
async fn batches_are_answered_by_one_array() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    let batch = json!([
        {"jsonrpc": "2.0", "method": "server.info", "id": 0},
        {"jsonrpc": "2.0", "method": "server.info"},
        {"jsonrpc": "2.0", "method": "none", "id": "b"},
        7,
    ]);
    let answers = ws.raw(&batch.to_string()).await;
    let summary: Vec<_> = answers.as_array().unwrap().iter().map(|answer| (&answer["id"], &answer["error"]["code"])).collect();
    assert_eq!(summary, [(&json!(0), &Value::Null), (&json!("b"), &json!(-32601)), (&Value::Null, &json!(-32600))]);
    assert_eq!(server.http().rpc(&batch).await.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn requests_without_id_are_not_answered() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    for silent in [
        r#"{"jsonrpc":"2.0","method":"server.info"}"#,
        r#"{"jsonrpc":"2.0","method":"none"}"#,
        r#"{"jsonrpc":"2.0","method":"printer.print.start","params":{}}"#,
        r#"[{"jsonrpc":"2.0","method":"server.info"}]"#,
    ] {
        ws.channel.frame(Message::text(silent)).await.unwrap();
    }
    assert_eq!(ws.raw(MARKER).await["id"], "marker", "nothing came before it");
    let reply = server.http().post_json("/server/jsonrpc", &json!({"jsonrpc": "2.0", "method": "server.info"})).await;
    assert_eq!(reply.status, 204);
}

#[tokio::test]
async fn faulty_documents_get_the_standard_errors() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    for (text, code, id) in [
        ("nonsense", -32700, json!(null)),
        ("{\"jsonrpc\":\"2.0\",", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        ("5", -32600, json!(null)),
        (r#"{"method":"server.info","id":3}"#, -32600, json!(3)),
        (r#"{"jsonrpc":"2.0","id":4}"#, -32600, json!(4)),
        (r#"{"jsonrpc":"2.0","method":"server.info","params":[1],"id":5}"#, -32602, json!(5)),
        (r#"{"jsonrpc":"2.0","method":"no.such","id":6}"#, -32601, json!(6)),
        (r#"{"jsonrpc":"2.0","method":"printer.gcode.script","id":7}"#, -32602, json!(7)),
    ] {
        let answer = ws.raw(text).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{text}: {answer}");
    }
    assert_eq!(ws.call("no.such", json!({})).await, Err(RpcError::new(-32601, "Method not found")));
}

#[tokio::test]
async fn binary_frames_and_pings_are_understood() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    ws.send_binary(MARKER).await;
    assert_eq!(ws.next().await["id"], "marker");
    ws.channel.frame(Message::Ping(Bytes::from_static(b"hello"))).await.unwrap();
    assert_eq!(ws.channel.next_frame().await, Some(Message::Pong(Bytes::from_static(b"hello"))));
}

#[tokio::test]
async fn a_goodbye_is_answered() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    ws.channel.frame(goodbye()).await.unwrap();
    assert_eq!(ws.closed().await, Some(1000));
}

#[tokio::test]
async fn a_connection_is_identified_once() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    let params = json!({"client_name": "test", "version": "1", "type": "web", "url": "http://x"});
    let id = ws.ok("server.connection.identify", params.clone()).await["connection_id"].clone();
    assert!(id.is_u64());
    assert_eq!(ws.ok("server.websocket.id", json!({})).await["websocket_id"], id);
    assert_eq!(ws.call("server.connection.identify", params).await, Err(RpcError::new(400, "Connection already identified")));
    assert_eq!(server.http().rpc(&json!({"jsonrpc": "2.0", "method": "server.websocket.id", "id": 1})).await["error"]["code"], -32601);
    let error = server.ws().await.call("server.connection.identify", json!({"client_name": "x"})).await.unwrap_err();
    assert!(error.code == -32602 && error.message.starts_with("No data for argument"), "{error:?}");
}

#[tokio::test]
async fn every_connection_has_its_own_subscription() {
    let server = TestServer::start().await;
    let (mut heater, mut fan) = (server.ws().await, server.unix().await);
    heater.ok("printer.objects.subscribe", json!({"objects": {"extruder": ["target"]}})).await;
    fan.ok("printer.objects.subscribe", json!({"objects": {"fan": ["speed"]}})).await;
    server.http().post("/printer/gcode/script?script=M104%20S200%0AM106%20S255").await.result();
    let update = heater.notified("notify_status_update").await;
    assert_eq!(update[0], json!({"extruder": {"target": 200.0}}));
    assert!(update[1].is_number());
    let update = fan.notified_where("notify_status_update", |params| params[0]["fan"]["speed"] == 1.0).await;
    assert_eq!(update[0].as_object().unwrap().len(), 1, "{update}");
}

#[tokio::test]
async fn a_subscription_is_replaced_and_cancelled() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    ws.ok("printer.objects.subscribe", json!({"objects": {"extruder": null}})).await;
    ws.ok("printer.objects.subscribe", json!({"objects": {"fan": ["speed"]}})).await;
    ws.forget();
    ws.ok("printer.gcode.script", json!({"script": "M104 S200\nM106 S255"})).await;
    assert_eq!(ws.notified("notify_status_update").await[0], json!({"fan": {"speed": 1.0}}));
    let answer = ws.ok("printer.objects.subscribe", json!({"objects": {}})).await;
    assert_eq!(answer["status"], json!({}));
    ws.forget();
    ws.ok("printer.gcode.script", json!({"script": "M106 S0\nG4 P50000"})).await;
    assert!(!ws.saw("notify_status_update").await, "a second of the printer's life without updates");
}

#[tokio::test]
async fn a_cancel_wins_over_a_subscription_that_still_waits_for_the_printer() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    // An unknown object cannot be answered from the cache, so the first request waits for the host.
    let first = ws.begin("printer.objects.subscribe", json!({"objects": {"fan": null, "toolhead": null, "nope": null}})).await;
    let second = ws.begin("printer.objects.subscribe", json!({"objects": {}})).await;
    ws.answer(second).await.unwrap();
    ws.answer(first).await.unwrap();
    ws.forget();
    ws.ok("printer.gcode.script", json!({"script": "M106 S255\nG4 P50000"})).await;
    assert!(!ws.saw("notify_status_update").await, "a second of the printer's life without updates");
}

#[tokio::test]
async fn in_a_batch_updates_follow_the_answer_too() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    let subscribe = json!({"jsonrpc": "2.0", "method": "printer.objects.subscribe", "params": {"objects": {"toolhead": null}}, "id": 1});
    let wait = json!({"jsonrpc": "2.0", "method": "printer.gcode.script", "params": {"script": "G4 P50000"}, "id": 2});
    let answer = ws.raw(&json!([subscribe, wait]).to_string()).await;
    assert_eq!(answer.as_array().map(Vec::len), Some(2), "{answer}");
    assert!(!ws.came_before("notify_status_update"), "updates build upon the answer");
    ws.notified("notify_status_update").await;
}

#[tokio::test]
async fn updates_follow_the_answer_to_the_subscription() {
    let server = TestServer::start().await;
    for round in 1..=4 {
        let mut ws = server.ws().await;
        ws.begin("printer.gcode.script", json!({"script": format!("M140 S{round}")})).await;
        let id = ws.begin("printer.objects.subscribe", json!({"objects": {"toolhead": null, "heater_bed": null}})).await;
        let first = loop {
            let message = ws.next().await;
            if message["id"] == id || message["method"] == "notify_status_update" {
                break message;
            }
        };
        assert!(first["result"]["status"]["toolhead"].is_object(), "{first}");
        ws.notified("notify_status_update").await;
    }
}

#[tokio::test]
async fn http_can_subscribe_for_a_websocket() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    let id = ws.ok("server.websocket.id", json!({})).await["websocket_id"].clone();
    let answer = server.http().post(&format!("/printer/objects/subscribe?connection_id={id}&fan=speed")).await.result();
    assert_eq!(answer["status"], json!({"fan": {"speed": 0.0}}));
    ws.ok("printer.gcode.script", json!({"script": "M106 S255"})).await;
    ws.notified_where("notify_status_update", |params| params[0]["fan"]["speed"] == 1.0).await;
    let (status, _) = server.http().post("/printer/objects/subscribe?connection_id=999999&fan=speed").await.error();
    assert!((400..500).contains(&status), "{status}");
}

#[tokio::test]
async fn endpoints_of_the_firmware_host_pass_through() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    let mesh = ws.ok("printer.bed_mesh.dump_mesh", json!({})).await;
    assert!(mesh.is_object(), "{mesh}");
    assert_eq!(ws.call("printer.no.such_endpoint", json!({})).await.unwrap_err().code, -32601);
    assert_eq!(ws.call("printer.list_endpoints", json!({})).await.unwrap_err().code, -32601);
    let endstops = server.http().get("/printer/query_endstops/status").await.result();
    assert!(endstops.as_object().is_some_and(|ends| ends.len() == 3 && ends.values().all(|state| state == "open")), "{endstops}");
    assert!(server.http().get("/printer/gcode/help").await.result().as_object().unwrap().len() > 3);
    assert!(server.http().get("/printer/objects/list").await.result()["objects"].as_array().unwrap().contains(&json!("toolhead")));
}
