//! A client library that others wrote, as it is, against the real server: `moonraker-api` of Python's package index.

use std::path::Path;

use serde_json::{Map, Value, json};
use tokio::process::Command;

use crate::harness::{TestServer, within};

/// True when Python has the library. Where tests must not be left out, its absence is a failure.
async fn has_library() -> bool {
    let found = Command::new("python3").args(["-c", "import moonraker_api"]).output().await;
    let has_library = found.is_ok_and(|output| output.status.success());
    assert!(has_library || std::env::var_os("REQUIRE_CLIENT_LIBRARY").is_none(), "python3 has no package moonraker-api");
    if !has_library {
        println!("skipped: needs python3 with the package moonraker-api");
    }
    has_library
}

#[tokio::test]
async fn the_library_connects_watches_and_leaves() {
    if !has_library().await {
        return;
    }
    let server = TestServer::builder().authorization("").start().await;
    let key = server.unix().await.ok("access.get_api_key", json!({})).await.as_str().unwrap().to_owned();
    std::fs::write(server.path("gcodes/part.gcode"), "G28\n").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/moonraker_api_client.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(server.port.to_string()).arg(&key).kill_on_drop(true);
    let output = within("the library is done", python.output()).await.unwrap();
    let (said, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{failed}");
    let steps: Map<String, Value> = said.lines().flat_map(|line| serde_json::from_str::<Map<String, Value>>(line).unwrap()).collect();
    let expected = json!({
        "connected": true,
        "identified": true,
        "state": "ready",
        "software": "ready",
        "toolhead": true,
        "subscribed": {"heater_bed": {"target": 0.0}},
        "update": {"heater_bed": {"target": 41.0}},
        "notified": true,
        "statistics": true,
        "files": ["part.gcode"],
        "unknown": -32601,
        "ended": ["ws_stopped", []],
    });
    assert_eq!(Value::Object(steps), expected);
}
