//! The bridge websocket: raw passage to the firmware host.

use serde_json::json;
use simulator::Fault;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::harness::TestServer;
use crate::harness::ws::goodbye;

#[tokio::test]
async fn both_routes_pass_requests_through() {
    let server = TestServer::start().await;
    for path in ["/fwhostsocket", "/klippysocket"] {
        let mut bridge = server.bridge_at(path).await.unwrap();
        let answer = bridge.ask(&json!({"id": "x", "method": "info", "params": {}}), |answer| answer["id"] == "x").await;
        assert_eq!(answer["result"]["state"], "ready", "{path}");
        let error = bridge.ask(&json!({"id": 2, "method": "none"}), |answer| answer["id"] == 2).await;
        assert!(error["error"].is_object(), "{error}");
    }
}

#[tokio::test]
async fn binary_frames_pass_too() {
    let server = TestServer::start().await;
    let mut bridge = server.bridge().await.unwrap();
    let request = json!({"id": 5, "method": "info", "params": {}}).to_string();
    bridge.0.frame(Message::Binary(Bytes::from(request))).await.unwrap();
    assert_eq!(bridge.wait_for(|answer| answer["id"] == 5).await["result"]["state"], "ready");
}

#[tokio::test]
async fn motion_is_dumped_while_moving() {
    let server = TestServer::builder().speed(5.0).start().await;
    let mut bridge = server.bridge().await.unwrap();
    let template = json!({"key": "motion"});
    let request = json!({"id": 1, "method": "motion_report/dump_trapq", "params": {"name": "toolhead", "response_template": template}});
    let header = bridge.ask(&request, |answer| answer["id"] == 1).await;
    assert_eq!(header["result"]["header"][0], "time");
    server.http().post_json("/printer/gcode/script", &json!({"script": "G28\nG1 X50 Y50 F6000\nG1 X100 Y20"})).await.result();
    let dump = bridge.wait_for(|document| document["key"] == "motion").await;
    assert!(!dump["params"]["data"].as_array().unwrap().is_empty(), "{dump}");
}

#[tokio::test]
async fn the_bridge_ends_with_the_firmware_host() {
    let server = TestServer::start().await;
    let mut bridge = server.bridge().await.unwrap();
    server.printer().inject(Fault::Die).await.unwrap();
    assert_eq!(bridge.0.closed().await, Some(1001));
    server.wait_for_state("disconnected").await;
    assert_eq!(server.bridge().await.err(), Some(503));
}

#[tokio::test]
async fn a_goodbye_is_answered() {
    let server = TestServer::start().await;
    let mut bridge = server.bridge().await.unwrap();
    bridge.0.frame(goodbye()).await.unwrap();
    assert_eq!(bridge.0.closed().await, Some(1000));
}

#[tokio::test]
async fn strangers_and_foreign_pages_get_no_bridge() {
    let server = TestServer::builder().authorization("").start().await;
    assert_eq!(server.bridge().await.err(), Some(401));
}

#[tokio::test]
async fn without_a_printer_there_is_no_bridge() {
    let server = TestServer::without_printer().await;
    assert_eq!(server.bridge().await.err(), Some(503));
}

#[tokio::test]
async fn a_bridge_does_not_outlive_the_rights_of_its_opener() {
    let server = TestServer::start().await;
    let unix = &mut server.unix().await;
    for (change, params) in
        [("access.users.role", json!({"username": "anna", "role": "viewer"})), ("access.delete_user", json!({"username": "anna"}))]
    {
        let anna = json!({"username": "anna", "password": "p", "role": "operator"});
        let token = unix.ok("access.post_user", anna).await["token"].as_str().unwrap().to_owned();
        let mut bridge = server.bridge_with(&[("X-Access-Token", &token)]).await.unwrap();
        let info = |id: u32| json!({"id": id, "method": "info", "params": {}});
        assert_eq!(bridge.ask(&info(1), |answer| answer["id"] == 1).await["result"]["state"], "ready");
        unix.ok(change, params).await;
        bridge.0.frame(Message::text(info(2).to_string())).await.unwrap();
        assert_eq!(bridge.0.closed().await, Some(1001), "{change}");
        let _ = unix.call("access.delete_user", json!({"username": "anna"})).await;
    }
}
