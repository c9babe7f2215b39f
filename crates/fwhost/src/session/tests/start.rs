//! The start sequence in every state of the host.

use protocol::FwhostState;
use serde_json::json;

use crate::testing::{Rig, selection, settle};

#[tokio::test(start_paused = true)]
async fn a_ready_host_is_joined_in_one_go() {
    let mut rig = Rig::new();
    let info = rig.fake.expect("info").await;
    assert_eq!(info.params, json!({"client_info": {"program": "Bowsprit", "version": "v1.0"}}));
    assert_eq!(rig.host.status().state, FwhostState::Disconnected, "not before it answered");
    assert!(rig.host.gcode("M117", false).await.unwrap_err().message.contains("not connected"));
    rig.fake.answer_normally(&info).await;
    settle().await;
    assert_eq!(rig.host.status().state, FwhostState::Startup);
    assert_eq!(rig.host.status().info.as_deref(), Some(&*rig.fake.result(&info).to_string()));
    rig.fake.answer_all().await;

    let view = rig.host.status();
    assert_eq!((view.state, &*view.state_message), (FwhostState::Ready, "Printer is ready"));
    assert_eq!(view.endpoints.iter().map(|name| &**name).collect::<Vec<_>>(), ["emergency_stop", "gcode/script", "info"]);
    assert_eq!(view.missing_requirements, ["display_status"]);
    assert_eq!(view.objects.len(), 8);
    assert_eq!(rig.events.take(), ["Connected", "Print(standby )", "Started(Ready)", "Ready"]);

    let subscriptions = rig.fake.asked("objects/subscribe");
    assert_eq!(subscriptions.len(), 1, "one standing subscription");
    assert_eq!(subscriptions[0].params["objects"].as_object().unwrap().len(), 8);
    assert!(subscriptions[0].params["objects"].as_object().unwrap().values().all(serde_json::Value::is_null));
    assert!(rig.fake.status_method.len() > 32, "nobody can guess it: {}", rig.fake.status_method);
    assert!(rig.host.query_cached(&selection(r#"{"toolhead":null}"#)).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_starting_host_is_followed_until_it_is_ready() {
    let mut rig = Rig::new();
    rig.fake.state = "startup";
    rig.fake.objects = json!({"webhooks": {"state": "startup", "state_message": "starting"}});
    rig.fake.answer_all().await;
    assert_eq!(rig.host.status().state, FwhostState::Startup);
    assert_eq!(rig.fake.asked("objects/subscribe")[0].params["objects"], json!({"webhooks": null}));
    assert_eq!(rig.events.take(), ["Connected"]);
    // Truthful about the host's own state meanwhile.
    assert_eq!(rig.query(r#"{"webhooks":["state"]}"#).await, r#"{"eventtime":1.5,"status":{"webhooks":{"state":"startup"}}}"#);

    rig.fake.state = "ready";
    rig.fake.objects = crate::testing::printer();
    rig.fake.push(json!({"webhooks": {"state": "ready", "state_message": "Printer is ready"}})).await;
    rig.fake.answer_all().await;
    assert_eq!(rig.host.status().state, FwhostState::Ready);
    assert_eq!(rig.events.take(), ["Print(standby )", "Started(Ready)", "Ready"]);
}

#[tokio::test(start_paused = true)]
async fn the_output_line_is_faster_than_the_status_update() {
    let mut rig = Rig::new();
    rig.fake.state = "startup";
    rig.fake.objects["webhooks"]["state"] = "startup".into();
    rig.fake.answer_all().await;
    rig.fake.state = "ready";
    rig.fake.output("// Klipper state: Ready").await;
    rig.fake.answer_all().await;
    assert_eq!(rig.host.status().state, FwhostState::Ready);
    assert_eq!(rig.events.count("Gcode(// Klipper state: Ready)"), 1);
}

#[tokio::test(start_paused = true)]
async fn only_one_subscription_is_under_way_at_a_time() {
    let mut rig = Rig::new();
    rig.fake.state = "startup";
    let mut held = None;
    while held.is_none() {
        let asked = rig.fake.next().await.unwrap();
        match asked.method.as_str() {
            "objects/subscribe" => held = Some(asked),
            _ => rig.fake.answer_normally(&asked).await,
        }
    }
    // Ready before the first subscription was answered: the host would answer both at the same tick, in any order.
    rig.fake.state = "ready";
    rig.fake.output("// Klipper state: Ready").await;
    rig.fake.answer_all().await;
    assert_eq!(rig.fake.asked("objects/subscribe").len(), 1);
    assert_eq!(rig.host.status().state, FwhostState::Startup);
    rig.fake.answer_normally(&held.unwrap()).await;
    rig.fake.answer_all().await;
    assert_eq!(rig.fake.asked("objects/subscribe").len(), 2);
    assert_eq!(rig.host.status().state, FwhostState::Ready);
    assert!(rig.host.query_cached(&selection(r#"{"toolhead":null}"#)).is_some());
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_start_only_the_state_is_followed() {
    let mut rig = Rig::new();
    rig.fake.state = "error";
    rig.fake.objects["webhooks"]["state"] = "error".into();
    rig.fake.answer_all().await;
    assert_eq!(rig.host.status().state, FwhostState::Error);
    assert_eq!(rig.events.take(), ["Connected", "Started(Error)"]);
    assert_eq!(rig.fake.asked("objects/subscribe")[0].params["objects"], json!({"webhooks": null}));
    assert!(rig.host.status().missing_requirements.is_empty());
    assert_eq!(rig.query(r#"{"toolhead":["homed_axes"]}"#).await, r#"{"eventtime":1.5,"status":{"toolhead":{"homed_axes":""}}}"#);
    rig.fake.push(json!({"webhooks": {"state": "shutdown", "state_message": "stopped"}})).await;
    rig.fake.state = "shutdown";
    rig.fake.answer_all().await;
    assert_eq!(rig.events.take(), ["Shutdown"]);
    assert_eq!(rig.host.status().state, FwhostState::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn shutdown_comes_before_what_it_does_to_the_job() {
    let mut rig = Rig::ready().await;
    rig.fake.push(json!({"print_stats": {"state": "printing", "filename": "a.gcode"}})).await;
    settle().await;
    rig.events.take();
    rig.fake.state = "shutdown";
    rig.fake
        .push(json!({"print_stats": {"state": "error"}, "webhooks": {"state": "shutdown", "state_message": "MCU 'mcu' shutdown\nCause"}}))
        .await;
    settle().await;
    assert_eq!(rig.events.take(), ["Shutdown", "Print(error a.gcode)"]);
    assert_eq!(&*rig.host.status().state_message, "MCU 'mcu' shutdown\nCause");
    rig.fake.answer_all().await;
    assert!(rig.host.status().info.as_deref().unwrap().contains("shutdown"), "info was asked again");
    rig.fake.push(json!({"webhooks": {"state_message": "MCU 'mcu' shutdown\nMore"}})).await;
    settle().await;
    assert!(rig.events.take().is_empty(), "once");
    assert_eq!(&*rig.host.status().state_message, "MCU 'mcu' shutdown\nMore");
}

#[tokio::test(start_paused = true)]
async fn subscriptions_made_during_the_start_get_everything_when_it_is_done() {
    let mut rig = Rig::new();
    rig.fake.state = "startup";
    rig.fake.objects = json!({"webhooks": {"state": "startup", "state_message": ""}});
    rig.fake.answer_all().await;
    let probe = std::sync::Arc::new(crate::testing::Probe::default());
    let wanted = selection(r#"{"webhooks":["state"],"extruder":["temperature"]}"#);
    let (answer, ()) = tokio::join!(rig.host.subscribe(crate::SubscriberId(1), probe.clone(), wanted), rig.fake.answer_all());
    assert_eq!(answer.unwrap(), br#"{"eventtime":1.5,"status":{"webhooks":{"state":"startup"}}}"#);
    rig.fake.state = "ready";
    rig.fake.objects = crate::testing::printer();
    rig.fake.push(json!({"webhooks": {"state": "ready"}})).await;
    rig.fake.answer_all().await;
    let told = probe.texts();
    assert!(told[0].contains(r#""webhooks":{"state":"ready"}"#), "{told:?}");
    assert!(told[1].contains(r#""extruder":{"temperature":21.5}"#), "{told:?}");
}
