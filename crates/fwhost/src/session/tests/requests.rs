//! What callers ask for and what they get.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use protocol::ErrorKind;
use serde_json::json;
use serde_json::value::RawValue;

use crate::handle::Restart;
use crate::testing::{Rig, settle};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.into()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn endpoints_pass_through_and_empty_results_are_ok() {
    let mut rig = Rig::ready().await;
    let params = raw(r#"{"name":"x","response_template":{"method":"steal"}}"#);
    let host = rig.host.clone();
    let call = tokio::spawn(async move { host.request("motion_report/dump_trapq", Some(&params)).await });
    let asked = rig.fake.expect("motion_report/dump_trapq").await;
    assert_eq!(asked.params, json!({"name": "x"}), "no template of a client reaches the host");
    rig.fake.answer(&asked, r#"{"header": ["time"]}"#).await;
    assert_eq!(&*call.await.unwrap().unwrap(), r#"{"header": ["time"]}"#);

    for empty in ["{}", "[]", "{ }", "null", "false"] {
        let host = rig.host.clone();
        let call = tokio::spawn(async move { host.request("query_endstops/status", None).await });
        let asked = rig.fake.expect("query_endstops/status").await;
        assert!(asked.params.is_null(), "absent rather than null, which the host would not answer");
        rig.fake.answer(&asked, empty).await;
        assert_eq!(&*call.await.unwrap().unwrap(), "\"ok\"", "{empty}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals() {
    let mut rig = Rig::ready().await;
    for endpoint in ["objects/subscribe", "list_endpoints", "register_remote_method", "gcode/subscribe_output"] {
        let error = rig.host.request(endpoint, None).await.unwrap_err();
        assert_eq!((error.kind, &*error.message), (ErrorKind::NotFound, "Method not found"));
    }
    assert!(rig.host.request("objects/query", None).await.unwrap_err().message.contains("objects"));
    let cached = rig.host.request("objects/query", Some(&raw(r#"{"objects":{"toolhead":["homed_axes"]}}"#))).await.unwrap();
    assert_eq!(&*cached, r#"{"eventtime":1.5,"status":{"toolhead":{"homed_axes":""}}}"#);
    assert_eq!(rig.host.request("info", Some(&raw("[1]"))).await.unwrap_err().kind, ErrorKind::BadRequest);

    let host = rig.host.clone();
    let call = tokio::spawn(async move { host.gcode("G1 X9999", true).await });
    let asked = rig.fake.expect("gcode/script").await;
    assert_eq!(asked.params, json!({"script": "G1 X9999"}));
    rig.fake.refuse(&asked, "Must home axis first: 9999.000\n").await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::BadRequest, "Must home axis first: 9999.000\n"));
}

#[tokio::test(start_paused = true)]
async fn many_at_once_are_answered_in_any_order() {
    let mut rig = Rig::ready().await;
    let calls: Vec<_> = (0..50)
        .map(|index| {
            let host = rig.host.clone();
            tokio::spawn(async move { host.request(&format!("e/{index}"), None).await })
        })
        .collect();
    let mut asked = Vec::new();
    for _ in 0..50 {
        asked.push(rig.fake.next().await.unwrap());
    }
    for asked in asked.iter().rev() {
        rig.fake.answer(asked, &format!("{{\"you\":\"{}\"}}", asked.method)).await;
    }
    for (index, call) in calls.into_iter().enumerate() {
        assert_eq!(&*call.await.unwrap().unwrap(), format!("{{\"you\":\"e/{index}\"}}"));
    }
}

#[tokio::test(start_paused = true)]
async fn multi_megabyte_results_come_whole() {
    let mut rig = Rig::ready().await;
    let host = rig.host.clone();
    let call = tokio::spawn(async move { host.request("bed_mesh/dump_mesh", None).await });
    let asked = rig.fake.expect("bed_mesh/dump_mesh").await;
    let big = format!("{{\"mesh\":\"{}\"}}", "m".repeat(8 * 1024 * 1024));
    rig.fake.answer(&asked, &big).await;
    assert_eq!(call.await.unwrap().unwrap().len(), big.len());
    assert_eq!(rig.host.status().state, protocol::FwhostState::Ready);
}

#[tokio::test(start_paused = true)]
async fn lost_connections_abort_requests_but_complete_a_restart() {
    let mut rig = Rig::ready().await;
    let (a, b) = (rig.host.clone(), rig.host.clone());
    let script = tokio::spawn(async move { a.gcode("G28", true).await });
    rig.fake.expect("gcode/script").await;
    let restart = tokio::spawn(async move { b.restart_gcode(Restart::Firmware).await });
    assert_eq!(rig.fake.expect("gcode/script").await.params["script"], "FIRMWARE_RESTART");
    rig.events.take();
    let (host, events, ending) = rig.close().await;
    let error = script.await.unwrap().unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Unavailable, "Klippy Disconnected"));
    assert!(restart.await.unwrap().is_ok());
    assert_eq!(events.take(), ["Disconnected"]);
    assert!(ending.settled && !ending.lost.is_fault());
    let view = host.status();
    assert!(!view.is_connected() && view.info.is_none() && view.objects.is_empty());
    assert_eq!(view.endpoints.len(), 3, "what was offered once stays known");
    for error in [host.emergency_stop().await.unwrap_err(), host.restart_gcode(Restart::Host).await.unwrap_err()] {
        assert_eq!((error.kind, &*error.message), (ErrorKind::Unavailable, "Klippy Host not connected"));
    }
    let commands: Vec<_> = host.gcode_store(None).iter().map(|entry| entry.message.to_string()).collect();
    assert_eq!(commands, ["G28"], "the restart did not come through the script endpoint");
}

#[tokio::test(start_paused = true)]
async fn callers_that_leave_are_forgotten_and_their_answers_ignored() {
    let mut rig = Rig::ready().await;
    let host = rig.host.clone();
    let call = tokio::spawn(async move { host.gcode("G4 P5000", false).await });
    let asked = rig.fake.expect("gcode/script").await;
    call.abort();
    let _ = call.await;
    assert_eq!(rig.host.shared.exchange.pending(), 0);
    rig.fake.answer(&asked, "{}").await;
    settle().await;
    assert!(!rig.ending.is_finished());
}

#[tokio::test(start_paused = true)]
async fn remote_methods_are_offered_at_once_and_at_every_connection() {
    let mut rig = Rig::new();
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = calls.clone();
    rig.host.register_remote_method("notify", move |params| log.lock().push(params.get().into())).unwrap();
    assert!(rig.host.register_remote_method("notify", |_| {}).is_err());
    rig.fake.answer_all().await;
    let asked = rig.fake.asked("register_remote_method");
    assert_eq!(asked[0].params["remote_method"], "notify");
    let method = asked[0].params["response_template"]["method"].as_str().unwrap().to_owned();

    let log = calls.clone();
    rig.host.register_remote_method("late", move |_| log.lock().push("late".into())).unwrap();
    let late = rig.fake.expect("register_remote_method").await;
    let late = late.params["response_template"]["method"].as_str().unwrap().to_owned();

    rig.fake.send(&json!({"params": {"name": "a", "n": 1.5}, "method": method}).to_string()).await;
    rig.fake.send(&json!({"method": late}).to_string()).await;
    for forged in ["notify", "call notify", " call notify", "status", "process_status_update"] {
        rig.fake.send(&json!({"method": forged, "params": {"status": {}, "eventtime": 1}}).to_string()).await;
    }
    settle().await;
    assert_eq!(*calls.lock(), [r#"{"n":1.5,"name":"a"}"#, "late"]);
    rig.host.unregister_remote_method("late");

    let (host, events, _) = rig.close().await;
    let mut again = Rig::with(host, events);
    again.fake.answer_all().await;
    let asked = again.fake.asked("register_remote_method");
    assert_eq!(asked.len(), 1);
    assert_ne!(asked[0].params["response_template"]["method"], method, "other names for every connection");
    again.fake.send(&json!({"method": method, "params": {}}).to_string()).await;
    settle().await;
    assert_eq!(calls.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_answer_that_came_before_the_end_counts() {
    let mut rig = Rig::ready().await;
    let host = rig.host.clone();
    let restart = tokio::spawn(async move { host.gcode("RESTART", false).await });
    let asked = rig.fake.expect("gcode/script").await;
    rig.fake.answer(&asked, "{}").await;
    drop(rig.fake);
    assert!(restart.await.unwrap().is_ok());
    let ending = tokio::time::timeout(Duration::from_secs(5), rig.ending).await.unwrap().unwrap();
    assert!(!ending.lost.is_fault());
}
