//! Queries, subscriptions, ticks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Bench;

#[tokio::test]
async fn unknown_objects_and_fields() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    let objects = json!({ "nope": null, "toolhead": ["nope", "homed_axes"], "nope2": ["x"], "webhooks": null });
    let result = client.call("objects/query", json!({ "objects": objects })).await.unwrap();
    let status = json!({
        "nope": {}, "nope2": { "x": null }, "toolhead": { "nope": null, "homed_axes": "" },
        "webhooks": { "state": "ready", "state_message": "Printer is ready" },
    });
    assert_eq!(result["status"], status);
    assert!(result["eventtime"].as_f64().unwrap() > 0.0);
    let all = client.call("objects/list", json!({})).await.unwrap();
    assert!(all["objects"].as_array().unwrap().len() > 25);
}

#[tokio::test]
async fn deltas_hold_only_what_changed() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    let template = json!({ "method": "process_status_update", "extra": [1] });
    let params = json!({ "objects": { "display_status": null, "toolhead": ["position"] }, "response_template": template });
    let first = client.call("objects/subscribe", params).await.unwrap();
    assert_eq!(first["status"]["display_status"], json!({ "progress": 0.0, "message": null }));
    client.gcode("M117 hello").await.unwrap();
    let update = client.wait_for(|m| m["method"] == "process_status_update").await;
    assert_eq!(update["params"]["status"], json!({ "display_status": { "message": "hello" } }));
    assert_eq!(update["extra"], json!([1]));
    assert!(update["params"]["eventtime"].as_f64() > first["eventtime"].as_f64());
    // A second subscription replaces the first, template and all.
    client.call("objects/subscribe", json!({ "objects": { "pause_resume": null } })).await.unwrap();
    client.gcode("M117 bye\nPAUSE").await.unwrap();
    let update = client.message().await.unwrap();
    assert_eq!(update["params"]["status"], json!({ "pause_resume": { "is_paused": true } }));
    assert_eq!(update.as_object().unwrap().len(), 1);
    // An empty one cancels.
    assert_eq!(client.call("objects/subscribe", json!({ "objects": {} })).await.unwrap()["status"], json!({}));
    client.gcode("RESUME").await.unwrap();
    assert!(client.is_silent(300).await);
}

#[tokio::test]
async fn all_connections_share_a_tick() {
    let bench = Bench::ready().await;
    let (mut one, mut two) = (bench.connect().await, bench.connect().await);
    for client in [&mut one, &mut two] {
        client.call("objects/subscribe", json!({ "objects": { "display_status": null } })).await.unwrap();
    }
    one.gcode("M117 shared").await.unwrap();
    let changed = |m: &Value| m["params"]["status"]["display_status"]["message"] == "shared";
    let (a, b) = (one.wait_for(changed).await, two.wait_for(changed).await);
    assert_eq!(a["params"]["eventtime"], b["params"]["eventtime"]);
}

#[tokio::test]
async fn queries_wait_for_the_tick_unless_it_rests() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    let objects = json!({ "objects": { "webhooks": null } });
    client.call("objects/query", objects.clone()).await.unwrap();
    let begin = Instant::now();
    client.call("objects/query", objects.clone()).await.unwrap();
    assert!(begin.elapsed() > Duration::from_millis(150), "the second query waits: {:?}", begin.elapsed());
    // A busy machine is slow: far quicker than a tick on some try.
    let mut took = Vec::new();
    while took.last().is_none_or(|took| *took > Duration::from_millis(100)) {
        assert!(took.len() < 20, "the timer rests: {took:?}");
        tokio::time::sleep(Duration::from_millis(300)).await;
        let begin = Instant::now();
        client.call("objects/query", objects.clone()).await.unwrap();
        took.push(begin.elapsed());
    }
}

#[tokio::test]
async fn a_print_shows_its_life() {
    let bench = Bench::ready().await;
    let mut text = String::from("M140 S50\nM109 S200\nG28\nM190 S50\nG92 E0\nSET_PRINT_STATS_INFO TOTAL_LAYER=2\n");
    for i in 0..2000 {
        text += &format!("G1 X{} Y{} E{} F3000\n", 20 + i % 100, 20 + i % 37, f64::from(i) * 0.05);
    }
    bench.write_gcode("sub/part.gcode", &text);
    let mut client = bench.connect().await;
    client.call("gcode/subscribe_output", json!({ "response_template": { "out": 1 } })).await.unwrap();
    let objects = json!({ "print_stats": null, "virtual_sdcard": null, "motion_report": ["live_position"] });
    client.call("objects/subscribe", json!({ "objects": objects })).await.unwrap();
    client.gcode("SDCARD_PRINT_FILE FILENAME=\"sub/part.gcode\"").await.unwrap();
    let state = |s: &'static str| move |m: &Value| m["params"]["status"]["print_stats"]["state"] == s;
    let started = client.wait_for(state("printing")).await;
    assert_eq!(started["params"]["status"]["print_stats"]["filename"], "sub/part.gcode");
    let sd = &started["params"]["status"]["virtual_sdcard"];
    assert_eq!((sd["is_active"].clone(), sd["file_size"].clone()), (json!(true), json!(text.len())));
    client.call("pause_resume/pause", json!({})).await.unwrap();
    client.wait_for(state("paused")).await;
    client.call("pause_resume/resume", json!({})).await.unwrap();
    let done = client.wait_for(state("complete")).await;
    assert_eq!(done["params"]["status"]["virtual_sdcard"]["file_path"], Value::Null);
    assert_eq!(done["params"]["status"]["virtual_sdcard"]["progress"], json!(1.0));
    assert!(client.pushed.iter().any(|m| m["params"]["response"] == "Done printing file"));
    assert!(client.pushed.iter().any(|m| m["params"]["status"]["motion_report"].is_object()));
}
