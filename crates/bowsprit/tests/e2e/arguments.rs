//! How arguments reach an operation over HTTP: query, body, type hints, and the errors that name them.

use serde_json::{Value, json};

use crate::harness::{Form, TestServer};

/// Posts a value and gives the item that the server understood.
async fn post_item(server: &TestServer, query: &str, content_type: &str, body: &[u8]) -> Value {
    let headers: Vec<(&str, &str)> = if content_type.is_empty() { vec![] } else { vec![("Content-Type", content_type)] };
    let reply = server.http().send("POST", &format!("/server/database/item{query}"), &headers, body).await;
    let item = reply.result();
    assert_eq!(item["namespace"], "test");
    item["value"].clone()
}

#[tokio::test]
async fn every_kind_of_body_is_understood() {
    let server = TestServer::without_printer().await;
    let json_body = br#"{"namespace":"test","key":"k","value":"v"}"#;
    let multipart = Form::default().field("namespace", "test").field("key", "k").field("value", "v").body();
    let cases: [(&str, &str, &[u8]); 6] = [
        ("", "application/json", json_body),
        ("", "", json_body),
        ("", "application/x-www-form-urlencoded", b"namespace=test&key=k&value=v"),
        ("", &Form::content_type(), &multipart),
        ("?namespace=test&key=k&value=v", "", b""),
        ("?namespace=test&key=k&value=v", "application/json", b""),
    ];
    for (query, content_type, body) in cases {
        assert_eq!(post_item(&server, query, content_type, body).await, "v", "{query} {content_type}");
    }
}

#[tokio::test]
async fn query_and_body_are_merged_and_the_body_wins() {
    let server = TestServer::without_printer().await;
    let value = post_item(&server, "?namespace=test&key=k&value=query", "application/json", br#"{"value":"body"}"#).await;
    assert_eq!(value, "body");
}

#[tokio::test]
async fn type_hints_make_values() {
    let server = TestServer::without_printer().await;
    let cases = [
        ("value:int=5", json!(5)),
        ("value:float=2.5", json!(2.5)),
        ("value:bool=true", json!(true)),
        ("value:json=%7B%22a%22%3A%5B1%5D%7D", json!({"a": [1]})),
        ("value=5", json!("5")),
        ("value:int=five", json!("five")),
    ];
    for (argument, expected) in cases {
        assert_eq!(post_item(&server, &format!("?namespace=test&key=k&{argument}"), "", b"").await, expected, "{argument}");
    }
}

#[tokio::test]
async fn null_means_not_given() {
    let server = TestServer::without_printer().await;
    let http = server.http();
    assert_eq!(http.post_json("/server/logs/rollover", &json!({"application": null})).await.status, 200);
    let (status, message) = http.post_json("/printer/gcode/script", &json!({"script": null})).await.error();
    assert_eq!((status, message.as_str()), (400, "No data for argument: script"));
}

#[tokio::test]
async fn errors_name_the_argument_and_what_was_expected() {
    let server = TestServer::without_printer().await;
    let http = server.http();
    let (status, message) = http.post("/printer/print/start").await.error();
    assert_eq!((status, message.as_str()), (400, "No data for argument: filename"));
    let (status, message) = http.get("/server/gcode_store?count=many").await.error();
    assert_eq!((status, message.as_str()), (400, "Unable to convert argument [count]: expected an integer, got \"many\""));
    let (status, message) = http.get("/server/temperature_store?include_monitors=perhaps").await.error();
    assert!(status == 400 && message.contains("[include_monitors]: expected true or false"), "{message}");
    let reply = http.send("POST", "/printer/gcode/script", &[("Content-Type", "application/json")], b"{\"script\":").await;
    assert_eq!(reply.error().0, 400);
}

#[tokio::test]
async fn printer_objects_are_named_in_the_query() {
    let server = TestServer::start().await;
    let http = server.http();
    let all = http.get("/printer/objects/query?webhooks&virtual_sdcard=").await.result();
    assert_eq!(all["status"]["webhooks"], json!({"state": "ready", "state_message": "Printer is ready"}));
    assert!(all["status"]["virtual_sdcard"].as_object().unwrap().len() > 3 && all["eventtime"].is_number(), "{all}");
    let some = http.get("/printer/objects/query?toolhead=position,homed_axes&extruder=target").await.result();
    assert_eq!(some["status"]["toolhead"].as_object().unwrap().len(), 2);
    assert_eq!(some["status"]["extruder"], json!({"target": 0.0}));
    let posted = http.post_json("/printer/objects/query", &json!({"objects": {"extruder": ["target"], "nothing": null}})).await.result();
    assert_eq!(posted["status"]["extruder"], some["status"]["extruder"]);
}
