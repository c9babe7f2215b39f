//! Recorded traffic of a real host, when it is at hand beside the workspace: every update ends in the cache, every transition in an event.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::testing::{Rig, settle};

const RECORDING: &str = "../../../shared/traffic/transcript-klippy-socket.jsonl";

/// What the host sent on one recorded connection.
fn recorded(connection: u64) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDING)).ok()?;
    let from_host = |line: &Value| line["dir"] == "fwhost->core" && line["conn"] == connection;
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    Some(lines.filter(from_host).map(|mut line| line["msg"].take()).filter(Value::is_object).collect())
}

fn merge(into: &mut Value, status: &Value) {
    for (object, fields) in status.as_object().unwrap() {
        for (field, value) in fields.as_object().unwrap() {
            into[object][field] = value.clone();
        }
    }
}

/// Plays the connection back; the events that it caused.
async fn replay(messages: &[Value]) -> Vec<String> {
    let mut rig = Rig::new();
    // All that was ever told in answers is there from the start; updates then change it.
    let mut truth = json!({});
    for status in messages.iter().map(|message| &message["result"]["status"]).filter(|status| status.is_object()) {
        let mut first = status.clone();
        merge(&mut first, &truth);
        truth = first;
    }
    truth["webhooks"] = json!({"state": "ready", "state_message": "Printer is ready"});
    rig.fake.objects = truth.clone();
    rig.fake.answer_all().await;
    let mut updates = 0;
    for message in messages {
        let params = &message["params"];
        if params["status"].is_object() {
            updates += 1;
            merge(&mut truth, &params["status"]);
            rig.fake.push(params["status"].clone()).await;
        } else if let Some(line) = params["response"].as_str() {
            rig.fake.output(line).await;
        }
        settle().await;
    }
    sleep(Duration::from_millis(10)).await;
    assert!(updates > 10 && !rig.ending.is_finished());
    for (object, fields) in truth.as_object().unwrap() {
        for (field, value) in fields.as_object().unwrap() {
            let cached = rig.host.field(object, field).map(|text| serde_json::from_str::<Value>(&text).unwrap());
            assert_eq!(cached.as_ref(), Some(value), "{object}.{field}");
        }
    }
    rig.events.take().into_iter().filter(|event| !event.starts_with("Gcode(")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_recorded_session_of_two_jobs_and_a_shutdown() {
    let Some(messages) = recorded(1) else { return };
    assert_eq!(
        replay(&messages).await,
        [
            "Connected",
            "Print(standby )",
            "Started(Ready)",
            "Ready",
            "Print(printing small.gcode)",
            "Print(paused small.gcode)",
            "Print(printing small.gcode)",
            "Print(cancelled small.gcode)",
            "Print(printing sub/dir/small.gcode)",
            "Print(complete sub/dir/small.gcode)",
            "Shutdown",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_recorded_shutdown_during_a_job() {
    let Some(messages) = recorded(6) else { return };
    let events = replay(&messages).await;
    assert_eq!(events[4..], ["Print(printing long.gcode)", "Shutdown", "Print(error long.gcode)"]);
}
