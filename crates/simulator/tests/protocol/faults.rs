//! Faults at run time.

use std::time::{Duration, Instant};

use serde_json::json;
use simulator::{Fault, HostState, PrintState};

use crate::Bench;
use crate::client::Client;

const LONG_PRINT: &str = "M109 S200\nG28\nG4 P3600000\nG4 P1\nM400\n";

#[tokio::test]
async fn dying_leaves_the_file_and_reviving_helps() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    client.call("gcode/subscribe_output", json!({})).await.unwrap();
    bench.control.inject(Fault::Die).await.unwrap();
    assert!(client.drain().await.is_empty(), "a killed process says nothing");
    assert!(bench.socket.exists());
    let refused = Client::try_connect(&bench.socket).await.err().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert!(!bench.control.snapshot().listening);
    bench.control.revive().await.unwrap();
    bench.wait_state(HostState::Ready).await;
    assert!(bench.connect().await.call("info", json!({})).await.is_ok());
    assert!(bench.control.revive().await.is_err());
}

#[tokio::test]
async fn a_hanging_host_answers_later() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    client.call("info", json!({})).await.unwrap();
    bench.control.inject(Fault::Hang { seconds: 0.0 }).await.unwrap();
    let id = client.send("info", json!({})).await;
    assert!(client.is_silent(100).await);
    bench.control.clear(Fault::Hang { seconds: 0.0 }).await.unwrap();
    assert_eq!(client.answer(id).await["result"]["state"], "ready");
}

#[tokio::test]
async fn zombies_stay_open_and_silent() {
    let bench = Bench::ready().await;
    let mut old = bench.connect().await;
    old.call("info", json!({})).await.unwrap();
    bench.control.inject(Fault::Zombie).await.unwrap();
    bench.control.restart(true).await.unwrap();
    bench.wait(|s| s.starts == 2 && s.state == HostState::Ready).await;
    old.send("info", json!({})).await;
    assert!(old.is_silent(100).await);
    assert!(bench.connect().await.call("info", json!({})).await.is_ok());
}

#[tokio::test]
async fn slow_huge_and_broken_answers() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    bench.control.inject(Fault::SlowReplies { ms: 120 }).await.unwrap();
    let begin = Instant::now();
    client.call("info", json!({})).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(110));
    bench.control.clear_all().await.unwrap();

    bench.control.inject(Fault::HugeReplies { bytes: 3_000_000 }).await.unwrap();
    client.send("info", json!({})).await;
    let frame = client.frame().await.unwrap();
    assert!(frame.len() >= 3_000_000);
    assert!(serde_json::from_slice::<serde_json::Value>(&frame).is_ok());
    bench.control.clear_all().await.unwrap();

    bench.control.inject(Fault::InvalidJson).await.unwrap();
    let id = client.send("info", json!({})).await;
    assert!(serde_json::from_slice::<serde_json::Value>(&client.frame().await.unwrap()).is_err());
    assert_eq!(client.answer(id).await["result"]["state"], "ready");
    bench.control.clear_all().await.unwrap();

    bench.control.inject(Fault::NonFinite).await.unwrap();
    client.send("objects/query", json!({ "objects": { "temperature_sensor chamber": null } })).await;
    let text = String::from_utf8(client.frame().await.unwrap()).unwrap();
    assert!(text.contains("\"temperature\":NaN"), "{text}");

    bench.control.inject(Fault::HalfMessage).await.unwrap();
    client.send("info", json!({})).await;
    assert_eq!(client.frame().await, None);
    assert!(client.rest().starts_with(b"{\"id\":"), "{:?}", client.rest());
    assert!(bench.connect().await.call("info", json!({})).await.is_ok(), "it strikes once");
}

#[tokio::test]
async fn a_print_is_interrupted_by_a_shutdown() {
    let bench = Bench::start(|o| o.faults = vec![Fault::ShutdownAfter { seconds: 5.0 }]).await;
    bench.wait_state(HostState::Ready).await;
    bench.write_gcode("long.gcode", LONG_PRINT);
    bench.control.run_gcode("SDCARD_PRINT_FILE FILENAME=long.gcode").await.unwrap();
    bench.wait(|s| s.state == HostState::Shutdown).await;
    assert!(bench.control.snapshot().message.starts_with("MCU 'mcu' shutdown: "));
    bench.wait(|s| s.print_state == PrintState::Error).await;
}

#[tokio::test]
async fn a_print_is_interrupted_by_death() {
    let bench = Bench::start(|o| o.faults = vec![Fault::DieAfter { seconds: 5.0 }]).await;
    bench.wait_state(HostState::Ready).await;
    bench.write_gcode("long.gcode", LONG_PRINT);
    let mut client = bench.connect().await;
    client.gcode("SDCARD_PRINT_FILE FILENAME=long.gcode").await.unwrap();
    bench.wait(|s| !s.listening).await;
    client.drain().await;
}

#[tokio::test]
async fn a_missing_section_takes_its_endpoints_along() {
    let bench = Bench::start(|o| o.faults = vec!["without=pause_resume".parse().unwrap()]).await;
    bench.wait_state(HostState::Ready).await;
    let mut client = bench.connect().await;
    let error = client.call("pause_resume/pause", json!({})).await.unwrap_err();
    assert_eq!(error, "webhooks: No registered callback for path 'pause_resume/pause'");
    let objects = client.call("objects/list", json!({})).await.unwrap();
    assert!(!objects["objects"].as_array().unwrap().contains(&json!("pause_resume")));
}

#[tokio::test]
async fn a_fast_printer_prints_minutes_in_a_moment() {
    let bench = Bench::start(|o| o.speed = 1000.0).await;
    bench.wait_state(HostState::Ready).await;
    bench.write_gcode("minutes.gcode", "M109 S210\nG28\nG4 P240000\nG1 X100 Y100 Z1 F6000\nG1 X120 E5 F600\n");
    let begin = Instant::now();
    bench.control.run_gcode("SDCARD_PRINT_FILE FILENAME=minutes.gcode").await.unwrap();
    bench.wait(|s| s.print_state == PrintState::Complete).await;
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    bench.control.advance(100.0).await.unwrap();
    assert!(bench.control.snapshot().model_seconds > 340.0);
}
