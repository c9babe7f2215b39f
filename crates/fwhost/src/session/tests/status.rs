//! Queries, subscriptions, events and stores.

use std::sync::Arc;
use std::time::Duration;

use protocol::ErrorKind;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::sink::SubscriberId;
use crate::testing::{Probe, Rig, selection, settle};

#[tokio::test(start_paused = true)]
async fn fresh_answers_come_from_the_cache_and_stale_ones_from_the_host() {
    let mut rig = Rig::ready().await;
    let wanted = r#"{"toolhead":["homed_axes"],"nope":null,"extruder":["nope"]}"#;
    let known_text = r#"{"toolhead":["homed_axes"]}"#;
    let known = selection(known_text);
    assert_eq!(rig.host.query(&known).await.unwrap(), br#"{"eventtime":1.5,"status":{"toolhead":{"homed_axes":""}}}"#);
    assert!(rig.fake.asked("objects/query").is_empty());

    assert_eq!(rig.query(wanted).await, r#"{"eventtime":1.5,"status":{"extruder":{},"toolhead":{"homed_axes":""}}}"#);

    sleep(Duration::from_millis(600)).await;
    assert!(rig.host.query_cached(&known).is_none());
    rig.fake.objects["toolhead"]["homed_axes"] = "xy".into();
    assert!(rig.query(known_text).await.contains("\"xy\""));
    rig.fake.push(json!({"toolhead": {"homed_axes": "xyz"}})).await;
    settle().await;
    assert_eq!(rig.host.query_cached(&known).unwrap(), br#"{"eventtime":2.5,"status":{"toolhead":{"homed_axes":"xyz"}}}"#);
    assert_eq!(rig.host.field("toolhead", "homed_axes").as_deref(), Some("\"xyz\""));
}

#[tokio::test(start_paused = true)]
async fn you_read_your_own_writes() {
    let mut rig = Rig::ready().await;
    let known_text = r#"{"toolhead":["homed_axes"]}"#;
    let known = selection(known_text);
    rig.fake.push(json!({"toolhead": {"homed_axes": ""}})).await;
    let host = rig.host.clone();
    let call = tokio::spawn(async move { host.gcode("G28", false).await });
    let asked = rig.fake.expect("gcode/script").await;
    assert!(rig.host.query_cached(&known).is_some(), "not completed yet");
    rig.fake.objects["toolhead"]["homed_axes"] = "xyz".into();
    rig.fake.answer(&asked, "{}").await;
    call.await.unwrap().unwrap();
    assert!(rig.host.query_cached(&known).is_none());
    assert!(rig.query(known_text).await.contains("\"xyz\""));
    // Asking info or the like changes nothing.
    rig.fake.push(json!({"toolhead": {"position": [1.0]}})).await;
    let (info, ()) = tokio::join!(rig.host.request("info", None), rig.fake.answer_all());
    info.unwrap();
    assert!(rig.host.query_cached(&known).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_subscription_starts_with_everything_and_goes_on_with_changes() {
    let mut rig = Rig::ready().await;
    let probe = Arc::new(Probe::default());
    let wanted = selection(r#"{"toolhead":["homed_axes"],"print_stats":null,"nope":null}"#);
    let (answer, ()) = tokio::join!(rig.host.subscribe(SubscriberId(7), probe.clone(), wanted), rig.fake.answer_all());
    let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
    assert_eq!(answer["status"]["toolhead"], json!({"homed_axes": ""}));
    assert_eq!(answer["status"]["print_stats"].as_object().unwrap().len(), 6);
    assert!(answer["status"].get("nope").is_none());

    rig.fake.push(json!({"toolhead": {"homed_axes": "x", "position": [5]}, "extruder": {"target": 200.0}})).await;
    rig.fake.push(json!({"extruder": {"target": 210.0}})).await;
    settle().await;
    assert_eq!(probe.texts(), [r#"{"jsonrpc":"2.0","method":"notify_status_update","params":[{"toolhead":{"homed_axes":"x"}},2.5]}"#]);
    let cancelled = rig.host.subscribe(SubscriberId(7), probe.clone(), selection("{}")).await.unwrap();
    assert_eq!(cancelled, br#"{"eventtime":2.5,"status":{}}"#);
    rig.fake.push(json!({"toolhead": {"homed_axes": "xy"}})).await;
    settle().await;
    assert_eq!(probe.frames.lock().len(), 1);

    rig.host.subscribe(SubscriberId(7), probe.clone(), selection(r#"{"toolhead":null}"#)).await.unwrap();
    let (host, _, _) = rig.close().await;
    assert_eq!(*probe.resets.lock(), 1, "told that it is over");
    let error = host.subscribe(SubscriberId(7), probe, selection(r#"{"toolhead":null}"#)).await.unwrap_err();
    assert_eq!(&*error.message, "Klippy Host not connected");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_not_waited_for_for_ever() {
    let rig = Rig::ready().await;
    sleep(Duration::from_secs(1)).await;
    let error = rig.host.subscribe(SubscriberId(1), Arc::new(Probe::default()), selection(r#"{"toolhead":null}"#)).await.unwrap_err();
    // The host is found dead by its heart-beat before the subscription itself is given up.
    assert_eq!((error.kind, &*error.message), (ErrorKind::Unavailable, "Klippy Disconnected"));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_lives_but_does_not_answer_a_subscription() {
    let mut rig = Rig::ready().await;
    sleep(Duration::from_secs(1)).await;
    let host = rig.host.clone();
    let call =
        tokio::spawn(async move { host.subscribe(SubscriberId(1), Arc::new(Probe::default()), selection(r#"{"toolhead":null}"#)).await });
    while !call.is_finished() {
        if let Ok(Some(asked)) = tokio::time::timeout(Duration::from_millis(100), rig.fake.next()).await
            && asked.method != "objects/query"
        {
            rig.fake.answer_normally(&asked).await;
        }
    }
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Internal, "Klippy request timed out"));
    assert!(!rig.ending.is_finished());
}

#[tokio::test(start_paused = true)]
async fn an_answer_does_not_subscribe_to_the_next_connection() {
    let mut rig = Rig::ready().await;
    sleep(Duration::from_secs(1)).await;
    let (query, subscription) = (rig.host.clone(), rig.host.clone());
    let query = tokio::spawn(async move { query.query(&selection(r#"{"toolhead":null}"#)).await });
    let probe = Arc::new(Probe::default());
    let sink = probe.clone();
    let subscription = tokio::spawn(async move { subscription.subscribe(SubscriberId(1), sink, selection(r#"{"toolhead":null}"#)).await });
    // Answered, and gone before the callers could run.
    for asked in [rig.fake.expect("objects/query").await, rig.fake.expect("objects/query").await] {
        rig.fake.answer_normally(&asked).await;
    }
    let (host, events, _) = rig.close().await;
    for error in [query.await.unwrap().unwrap_err(), subscription.await.unwrap().unwrap_err()] {
        assert_eq!(&*error.message, "Klippy Disconnected");
    }
    let mut again = Rig::with(host, events);
    again.fake.answer_all().await;
    again.fake.push(json!({"toolhead": {"homed_axes": "x"}})).await;
    settle().await;
    assert!(probe.frames.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_starts_in_the_answer_of_a_query_is_noticed() {
    let mut rig = Rig::ready().await;
    rig.events.take();
    sleep(Duration::from_millis(600)).await;
    rig.fake.objects["print_stats"]["state"] = "printing".into();
    rig.fake.objects["print_stats"]["filename"] = "b \"q\".gcode".into();
    rig.query(r#"{"print_stats":["state","filename"]}"#).await;
    assert_eq!(rig.events.take(), ["Print(printing b \"q\".gcode)"]);
    rig.fake.push(json!({"print_stats": {"total_duration": 3.5, "print_duration": 2.0}})).await;
    settle().await;
    assert!(rig.events.take().is_empty(), "counters are no event");
    assert_eq!(rig.host.print_stats().unwrap().total_duration, 3.5);
}

#[tokio::test(start_paused = true)]
async fn fields_that_come_late_are_followed() {
    let mut rig = Rig::ready().await;
    rig.fake.objects["extruder"]["last_stats"] = json!({"a": 1});
    sleep(Duration::from_secs(4)).await;
    rig.fake.answer_all().await;
    assert_eq!(rig.fake.asked("objects/subscribe").len(), 2, "a second look some seconds after ready");
    assert_eq!(rig.host.field("extruder", "last_stats").as_deref(), Some(r#"{"a":1}"#));
    sleep(Duration::from_secs(4)).await;
    rig.fake.answer_all().await;
    assert_eq!(rig.fake.asked("objects/subscribe").len(), 2);

    rig.fake.objects["extruder"]["later"] = json!(5);
    rig.query(r#"{"extruder":["later"]}"#).await;
    sleep(Duration::from_millis(300)).await;
    rig.fake.answer_all().await;
    assert_eq!(rig.fake.asked("objects/subscribe").len(), 3, "and when a query finds one");
}

#[tokio::test(start_paused = true)]
async fn numbers_that_are_no_numbers_become_null() {
    let mut rig = Rig::ready().await;
    let text = format!(
        r#"{{"method":"{}","params":{{"eventtime":3.0,"status":{{"extruder":{{"target":NaN,"power":-Infinity}}}}}}}}"#,
        rig.fake.status_method
    );
    rig.fake.send(&text).await;
    settle().await;
    assert_eq!(rig.host.field("extruder", "target").as_deref(), Some("null"));
    assert_eq!(rig.host.field("extruder", "power").as_deref(), Some("null"));
    assert!(!rig.ending.is_finished());
}

#[tokio::test(start_paused = true)]
async fn stores_remember() {
    let mut rig = Rig::ready().await;
    let store = |rig: &Rig, monitors| rig.host.temperature_store(monitors);
    assert_eq!(store(&rig, false), r#"{"extruder":{"temperatures":[],"targets":[],"powers":[]}}"#);
    rig.host.shared.sample_temperatures();
    rig.fake.push(json!({"extruder": {"temperature": 99.999}})).await;
    settle().await;
    rig.host.shared.sample_temperatures();
    assert_eq!(
        store(&rig, true),
        r#"{"extruder":{"temperatures":[21.5,100.0],"targets":[0.0,0.0],"powers":[0.0,0.0]},"tmc x":{"temperatures":[null,null]}}"#
    );

    let host = rig.host.clone();
    let calls =
        tokio::spawn(async move { (host.gcode("M117 hi", true).await, host.gcode(" \n", true).await, host.gcode("M18", false).await) });
    rig.fake.output("// hello").await;
    rig.fake.answer_all().await;
    assert!(calls.await.is_ok_and(|(a, b, c)| a.is_ok() && b.is_ok() && c.is_ok()));
    let entries: Vec<Value> = rig.host.gcode_store(None).iter().map(|entry| serde_json::to_value(entry).unwrap()).collect();
    let mut shown: Vec<_> = entries.iter().map(|entry| (entry["type"].as_str().unwrap(), entry["message"].as_str().unwrap())).collect();
    shown.sort_unstable();
    assert_eq!(shown, [("command", "M117 hi"), ("response", "// hello")]);
    assert!(entries[0]["time"].as_f64().unwrap() > 1.6e9);

    let (host, events, _) = rig.close().await;
    host.shared.sample_temperatures();
    let mut again = Rig::with(host, events);
    again.fake.answer_all().await;
    assert!(store(&again, false).contains("[21.5,100.0,100.0]"), "kept over the reconnect, repeated meanwhile");
}
