//! Requests, answers, errors, silence.

use serde_json::{Value, json};

use crate::Bench;

#[tokio::test]
async fn info_says_that_it_is_simulated() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    let info = client.call("info", json!({ "client_info": { "program": "test", "version": "1" } })).await.unwrap();
    assert_eq!(info["state"], "ready");
    assert_eq!(info["state_message"], "Printer is ready");
    assert_eq!(info["hostname"], "simulated-printer");
    assert_eq!(info["software_version"], "v0.13.0-0-gsimulated");
    assert_eq!(info["cpu_info"], "simulated");
    assert_eq!(info["process_id"], json!(std::process::id()));
    assert_eq!(info["log_file"], Value::Null);
    assert!(info["config_file"].as_str().unwrap().ends_with("config/printer.cfg"));
    assert_eq!(client.call("info", json!({ "client_info": "x" })).await.unwrap_err(), "Invalid Argument Type [client_info]");
}

#[tokio::test]
async fn malformed_requests_are_never_answered() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    let bad = "\u{3} \n\u{3}not json\u{3}[1]\u{3}5\u{3}{\"id\":5}\u{3}{\"id\":6,\"method\":7}\u{3}{\"id\":7,\"method\":\"info\",\"params\":[]}\u{3}{\"id\":8,\"method\":\"info\",\"params\":null}\u{3}{\"method\":\"info\"}\u{3}{\"id\":null,\"method\":\"nope\"}\u{3}";
    client.send_raw(bad.as_bytes()).await;
    client.send_raw(b"{\"id\":9,\"method\":\"\xff\xfe\"}\x03").await;
    client.send_raw(b"{\"id\":{\"a\":[1]},\"met").await;
    assert!(client.is_silent(30).await);
    client.send_raw(b"hod\":\"list_endpoints\"}\x03").await;
    let answer = client.message().await.unwrap();
    assert_eq!(answer["id"], json!({ "a": [1] }));
    assert!(answer["result"]["endpoints"].as_array().unwrap().contains(&json!("motion_report/dump_trapq")));
}

#[tokio::test]
async fn error_texts() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    for (method, params, message) in [
        ("nope/nope", json!({}), "webhooks: No registered callback for path 'nope/nope'"),
        ("objects/query", json!({}), "Missing Argument [objects]"),
        ("objects/query", json!({ "objects": ["toolhead"] }), "Invalid Argument Type [objects]"),
        ("objects/query", json!({ "objects": { "toolhead": "position" } }), "Invalid argument"),
        ("gcode/script", json!({ "script": 5 }), "Invalid Argument Type [script]"),
        ("gcode/script", json!({}), "Missing Argument [script]"),
        ("register_remote_method", json!({ "remote_method": "m" }), "Missing Argument [response_template]"),
        ("gcode/subscribe_output", json!({ "response_template": 5 }), "Invalid Argument Type [response_template]"),
        ("motion_report/dump_trapq", json!({ "name": "nope" }), "The value 'nope' is not valid for name"),
        ("motion_report/dump_trapq", json!({}), "Missing Argument [name]"),
        ("gcode/script", json!({ "script": "G1 X10" }), "Must home axis first: 10.000 0.000 0.000 [0.000]"),
    ] {
        assert_eq!(client.call(method, params).await.unwrap_err(), message);
    }
}

#[tokio::test]
async fn console_lines_reach_every_subscriber_before_the_answer() {
    let bench = Bench::ready().await;
    let (mut one, mut two) = (bench.connect().await, bench.connect().await);
    one.call("gcode/subscribe_output", json!({ "response_template": { "method": "process_gcode_response" } })).await.unwrap();
    two.call("gcode/subscribe_output", json!({})).await.unwrap();
    two.call("gcode/subscribe_output", json!({ "response_template": { "tag": 2 } })).await.unwrap();
    assert_eq!(one.gcode("RESPOND MSG=\"é€😀\"\nBADCMD\nSAY").await, Ok(json!({})));
    let lines: Vec<&str> = one.pushed.iter().map(|m| m["params"]["response"].as_str().unwrap()).collect();
    assert_eq!(lines, ["echo: é€😀", "// Unknown command:\"BADCMD\"", "// line one\n// line two"]);
    assert_eq!(one.pushed[0]["method"], "process_gcode_response");
    assert_eq!(two.message().await.unwrap(), json!({ "tag": 2, "params": { "response": "echo: é€😀" } }));
}

#[tokio::test]
async fn scripts_queue_while_other_requests_do_not() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    let long = client.send("gcode/script", json!({ "script": "G28\nG4 P3000\nM400" })).await;
    let second = client.send("gcode/script", json!({ "script": "M110" })).await;
    let pause = client.send("pause_resume/pause", json!({})).await;
    let endstops = client.send("query_endstops/status", json!({})).await;
    let info = client.send("info", json!({})).await;
    let help = client.send("gcode/help", json!({})).await;
    let mut order = Vec::new();
    for _ in 0..6 {
        let message = client.message().await.unwrap();
        let id = message["id"].as_u64().unwrap();
        if id == endstops {
            assert_eq!(message["result"]["stepper_x"], "TRIGGERED");
        }
        order.push(id);
    }
    assert_eq!(order, [info, help, long, second, pause, endstops]);
}

#[tokio::test]
async fn remote_methods() {
    let bench = Bench::ready().await;
    let (mut one, mut two, mut caller) = (bench.connect().await, bench.connect().await, bench.connect().await);
    for (client, template) in [(&mut one, json!({ "method": "first" })), (&mut two, json!({ "method": "other" }))] {
        let params = json!({ "response_template": template, "remote_method": "do_it" });
        client.call("register_remote_method", params).await.unwrap();
    }
    one.call("register_remote_method", json!({ "response_template": { "method": "again", "id": 5 }, "remote_method": "do_it" }))
        .await
        .unwrap();
    caller.gcode("CALL_REMOTE METHOD=do_it MESSAGE=one NUM=3").await.unwrap();
    let params = json!({ "message": "one", "num": 3 });
    assert_eq!(one.message().await.unwrap(), json!({ "method": "again", "id": 5, "params": params }));
    assert_eq!(two.message().await.unwrap(), json!({ "method": "other", "params": params }));
    assert_eq!(caller.gcode("CALL_REMOTE METHOD=nobody").await, Ok(json!({})));
}

#[tokio::test]
async fn movements_can_be_dumped() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    let header = client.call("motion_report/dump_trapq", json!({ "name": "toolhead", "response_template": { "k": "t" } })).await.unwrap();
    assert_eq!(header["header"].as_array().unwrap().len(), 6);
    client.gcode("G28 X\nG1 X5 F3000\nM400").await.unwrap();
    let batch = client.wait_for(|m| m["k"] == "t").await;
    let row = batch["params"]["data"][0].as_array().unwrap();
    assert_eq!((row.len(), row[4].as_array().unwrap().len(), row[5].as_array().unwrap().len()), (6, 3, 3));
    let mesh = client.call("bed_mesh/dump_mesh", json!({})).await.unwrap();
    assert_eq!(mesh["calibration"]["points"].as_array().unwrap().len(), 9);
}
