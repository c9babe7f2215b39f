//! Power devices on the real server: switching, locks, what follows from the printer and the queue.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use simulator::Fault;

use crate::harness::broker::{Broker, Listener};
use crate::harness::printer::long_job;
use crate::harness::wait::until;
use crate::harness::web::{Page, Web};
use crate::harness::{Form, TestServer};

/// A relay that is in this state and does as it is told.
fn relay(web: &Web, on: bool) {
    web.set("/relay/0", Page::body(format!("{{\"ison\":{on}}}")));
    for (turn, state) in [("on", true), ("off", false)] {
        web.set(&format!("/relay/0?turn={turn}"), Page::body(format!("{{\"ison\":{state}}}")));
    }
}

fn config(web: &Web, more: &str) -> String {
    format!("[power psu]\ntype: shelly\naddress: 127.0.0.1:{}\n{more}\n", web.port)
}

async fn switched(web: &Web, turn: &str) {
    let path = format!("/relay/0?turn={turn}");
    until(&format!("the relay was turned {turn}"), || async { web.requests(&path).len() }, |requests| *requests > 0).await;
}

#[tokio::test]
async fn without_devices_the_group_is_absent() {
    let server = TestServer::without_printer().await;
    assert_eq!(server.http().get("/machine/device_power/devices").await.status, 404);
    let error = server.ws().await.call("machine.device_power.devices", json!({})).await.unwrap_err();
    assert_eq!(error.code, -32601);
    assert!(!server.info().await["components"].as_array().unwrap().contains(&json!("power")));
}

#[tokio::test]
async fn a_device_is_listed_asked_and_switched() {
    let web = Web::start().await;
    relay(&web, false);
    let config = config(&web, "[power nothing]\ntype: relay_a\naddress: 127.0.0.1:1\n[power bad]\ntype: toaster");
    let server = TestServer::builder().without_printer().config(&config).start().await;
    let (mut ws, http) = (server.ws().await, server.http());
    until(
        "the first answer",
        || async { http.get("/machine/device_power/devices").await.result() },
        |list| list["devices"][0]["status"] == "off",
    )
    .await;
    assert_eq!(http.post("/machine/device_power/device?device=psu&action=on").await.result(), json!({"psu": "on"}));
    let told = ws.notified_where("notify_power_changed", |params| params[0]["status"] == "on").await;
    assert_eq!(told[0], json!({"device": "psu", "status": "on", "locked_while_printing": false, "type": "relay_a"}));
    relay(&web, true);
    assert_eq!(
        ws.ok("machine.device_power.status", json!({"psu": null, "who": null})).await,
        json!({"psu": "on", "who": "device_not_found"})
    );
    assert_eq!(http.post("/machine/device_power/off?psu").await.result(), json!({"psu": "off"}));
    assert_eq!(ws.ok("machine.device_power.get_device", json!({"device": "psu"})).await, json!({"psu": "on"}), "the web page says so");
    let nothing = || async { http.get("/machine/device_power/devices").await.result()["devices"][1].take() };
    assert_eq!(until("tried several times", nothing, |nothing| nothing["error"].is_string()).await["status"], "init");
    assert!(server.info().await["warnings"].to_string().contains("[power bad] type: expected one of"));
    assert!(server.info().await["components"].to_string().contains("\"power\""));
}

#[tokio::test]
async fn devices_that_hang_delay_neither_others_nor_calls() {
    // For each answer; nothing that does not concern these devices may take as long.
    const TIMEOUT: Duration = Duration::from_secs(3);
    let (web, deaf) = (Web::start().await, Web::start().await);
    relay(&web, true);
    deaf.set("/relay/0", Page::Silence);
    let hanging =
        |number: usize| format!("[power deaf{number}]\ntype: shelly\naddress: 127.0.0.1:{}\ntimeout: 3\npoll_interval: 1\n", deaf.port);
    let config = config(&web, &(0..5).map(hanging).collect::<String>());
    let server = TestServer::builder().without_printer().config(&config).start().await;
    let http = server.http();
    let status = || async { http.get("/machine/device_power/device?device=psu").await.result() };
    until("the quick one answers", status, |status| status["psu"] == "on").await;
    let asking = async {
        let begun = Instant::now();
        let all = http.get("/machine/device_power/status?deaf0&deaf1&deaf2&deaf3&deaf4&psu").await.result();
        (all, begun.elapsed())
    };
    let others = async {
        let mut slowest = Duration::ZERO;
        for path in ["/server/info", "/machine/device_power/devices", "/machine/device_power/device?device=psu"].repeat(5) {
            let begun = Instant::now();
            assert_eq!(http.get(path).await.status, 200, "{path}");
            slowest = slowest.max(begun.elapsed());
        }
        slowest
    };
    let ((all, took), slowest) = tokio::join!(asking, others);
    assert_eq!(all["psu"], "on", "{all}");
    assert!((0..5).all(|number| all[format!("deaf{number}")] == "init"), "{all}");
    // Two answers and a second at most, side by side.
    assert!(took < TIMEOUT * 3 && slowest < TIMEOUT, "{took:?} {slowest:?}");
    let begun = Instant::now();
    let (status, message) = http.post("/machine/device_power/device?device=deaf0&action=on").await.error();
    assert!(begun.elapsed() < TIMEOUT * 3 && [400, 504].contains(&status) && message.contains("deaf0"), "{status} {message}");
}

#[tokio::test]
async fn wrong_requests_are_named_and_types_follow_the_reader() {
    let web = Web::start().await;
    relay(&web, true);
    let server = TestServer::builder().without_printer().config(&config(&web, "")).start().await;
    let (mut ws, http) = (server.ws().await, server.http());
    for (target, message) in [
        ("device?device=psu&action=dance", "Invalid value for argument [action]: dance, expected on, off or toggle"),
        ("device?device=psu", "No data for argument: action"),
        ("device?device=lamp&action=on", "No valid device named lamp"),
        ("on", "No arguments provided"),
    ] {
        assert_eq!(http.post(&format!("/machine/device_power/{target}")).await.error(), (400, message.to_owned()), "{target}");
    }
    assert_eq!(http.get("/machine/device_power/status").await.error(), (400, "No arguments provided".to_owned()));
    ws.ok("server.connection.identify", json!({"client_name": "mainsail", "version": "2", "type": "web", "url": "http://x"})).await;
    let list = ws.ok("machine.device_power.devices", json!({})).await;
    assert_eq!(list["devices"][0]["type"], "shelly");
    ws.ok("machine.device_power.off", json!({"psu": null})).await;
    assert_eq!(ws.notified_where("notify_power_changed", |params| params[0]["status"] == "off").await[0]["type"], "shelly");
}

async fn print(server: &TestServer) {
    server.http().upload(Form::default().file("long.gcode", long_job().as_bytes()).field("print", "true")).await;
    let state = || async { server.http().get("/printer/objects/query?print_stats=state").await.result() };
    until("printing", state, |result| result["status"]["print_stats"]["state"] == "printing").await;
}

#[tokio::test]
async fn a_locked_device_keeps_its_state_when_the_server_starts_during_a_print() {
    let web = Web::start().await;
    relay(&web, true);
    let mut server = TestServer::builder().config(&config(&web, "locked_while_printing: true\ninitial_state: off")).start().await;
    switched(&web, "off").await;
    relay(&web, true);
    print(&server).await;
    server.restart().await;
    let status = || async { server.http().get("/machine/device_power/devices").await.result()["devices"][0].take() };
    until("known", status, |psu| psu["status"] == "on").await;
    assert!(server.stderr().contains("the initial state is not set: the printer prints"));
    assert_eq!(web.requests("/relay/0?turn=off").len(), 1, "only at the first start");
}

#[tokio::test]
async fn a_locked_device_is_not_switched_while_printing_but_by_a_macro_that_insists() {
    let web = Web::start().await;
    relay(&web, true);
    let server = TestServer::builder().config(&config(&web, "locked_while_printing: true")).start().await;
    print(&server).await;
    let refused = server.http().post("/machine/device_power/device?device=psu&action=off").await.error();
    assert_eq!(refused, (400, "Unable to change power for psu while printing".to_owned()));
    assert_eq!(server.http().post("/machine/device_power/off?psu").await.result(), json!({"psu": "on"}));
    assert_eq!(web.requests("/relay/0?turn=off").len(), 0);
    let script = |force: u8| json!({"script": format!("CALL_REMOTE METHOD=set_device_power DEVICE=psu STATE=off FORCE={force}")});
    server.http().post_json("/printer/gcode/script", &script(0)).await.result();
    server.http().post_json("/printer/gcode/script", &script(1)).await.result();
    switched(&web, "off").await;
}

#[tokio::test]
async fn a_shutdown_switches_off_and_power_brings_the_firmware_back() {
    let web = Web::start().await;
    relay(&web, true);
    let other = Web::start().await;
    relay(&other, false);
    let more = "off_when_shutdown: true\nrestart_klipper_when_powered: true\nrestart_delay: 0.3";
    let other_one = format!("{}restart_klipper_when_powered: true\n", config(&other, "").replace("psu", "other"));
    let server = TestServer::builder().config(&format!("{}\n{other_one}", config(&web, more))).start().await;
    server.http().get("/machine/device_power/status?psu").await.result();
    server.http().post("/printer/emergency_stop").await.result();
    switched(&web, "off").await;
    assert_eq!(server.wait_for_state("shutdown").await["fwhost_state"], "shutdown");
    relay(&web, false);
    server.http().post("/machine/device_power/on?psu").await.result();
    assert_eq!(server.http().get("/machine/device_power/status?other").await.result(), json!({"other": "off"}), "which changes nothing");
    server.wait_for_state("ready").await;
}

#[tokio::test]
async fn power_that_came_while_the_firmware_was_ready_restarts_nothing_later() {
    let web = Web::start().await;
    relay(&web, false);
    let server = TestServer::builder().config(&config(&web, "restart_klipper_when_powered: true\nrestart_delay: 0.3")).start().await;
    server.wait_for_state("ready").await;
    assert_eq!(server.http().post("/machine/device_power/on?psu").await.result(), json!({"psu": "on"}));
    server.http().post("/printer/emergency_stop").await.result();
    server.wait_for_state("shutdown").await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(!server.stderr().contains("restarting the firmware"), "{}", server.stderr());
    assert_eq!(server.info().await["fwhost_state"], "shutdown");
}

#[tokio::test]
async fn a_queued_job_switches_on() {
    let web = Web::start().await;
    relay(&web, false);
    let server = TestServer::builder().config(&config(&web, "on_when_upload_queued: true")).start().await;
    server.upload("a.gcode", &long_job()).await;
    server.http().post("/server/job_queue/job?filenames=a.gcode").await.result();
    switched(&web, "on").await;
}

#[tokio::test]
async fn an_output_of_the_firmware_follows_the_printer() {
    let server = TestServer::builder().config("[power light]\ntype: klipper_device\nobject_name: output_pin caselight\n").start().await;
    let mut ws = server.ws().await;
    let status = |server: &TestServer| {
        let http = server.http();
        async move { http.get("/machine/device_power/devices").await.result()["devices"][0].take() }
    };
    until("known", || status(&server), |light: &Value| light["status"] == "off").await;
    assert_eq!(ws.ok("machine.device_power.post_device", json!({"device": "light", "action": "toggle"})).await, json!({"light": "on"}));
    ws.notified_where("notify_power_changed", |params| params[0]["status"] == "on").await;
    server.http().post("/printer/gcode/script?script=SET_PIN%20PIN=caselight%20VALUE=0").await.result();
    ws.notified_where("notify_power_changed", |params| params[0]["status"] == "off").await;
    server.printer().inject(Fault::Die).await.unwrap();
    ws.notified_where("notify_power_changed", |params| params[0]["status"] == "init").await;
    server.printer().revive().await.unwrap();
    ws.notified_where("notify_power_changed", |params| params[0]["status"] == "off").await;
    server.http().post("/printer/emergency_stop").await.result();
    let told = ws.notified_where("notify_power_changed", |params| params[0]["status"] == "error").await;
    assert_eq!((&told[0]["is_shutdown"], &told[0]["type"]), (&json!(true), &json!("firmware_device")));
    let refused = server.http().post("/machine/device_power/device?device=light&action=on").await.error();
    assert_eq!(refused, (503, "Error setting the status of device light: the firmware host is shut down".to_owned()));
}

/// A lamp of Zigbee2MQTT: does what it is told, and says what it is.
async fn lamp(client: Listener) {
    let (mut set, mut get) = (client.listen("zigbee2mqtt/lamp/set"), client.listen("zigbee2mqtt/lamp/get"));
    let mut state = json!("OFF");
    loop {
        tokio::select! {
            (_, command) = set.next_ever() => state = command["state"].clone(),
            (_, question) = get.next_ever() => assert_eq!(question, json!({"state": ""})),
        }
        client.publish("zigbee2mqtt/lamp", &json!({"linkquality": 90}).to_string()).await;
        client.publish("zigbee2mqtt/lamp", &json!({"state": state, "linkquality": 90}).to_string()).await;
    }
}

/// The recipe of `docs/devices.md`.
fn recipe() -> String {
    let page = include_str!("../../../../docs/devices.md");
    let recipe = page.split("```text\n").find(|block| block.starts_with("[power lamp]")).unwrap();
    recipe.split("```").next().unwrap().to_owned()
}

#[tokio::test]
async fn a_lamp_behind_a_broker_is_asked_switched_and_watched() {
    let Some(mut broker) = Broker::start().await else { return };
    let device = tokio::spawn(lamp(broker.client().await));
    let server = TestServer::builder().without_printer().config(&(broker.section("") + &recipe())).start().await;
    let (http, mut ws) = (server.http(), server.ws().await);
    let status = || async { http.get("/machine/device_power/devices").await.result()["devices"][0].take() };
    until("known", status, |lamp| lamp["status"] == "off").await;
    assert_eq!(http.post("/machine/device_power/on?lamp").await.result(), json!({"lamp": "on"}));
    let someone = broker.client().await;
    someone.publish("zigbee2mqtt/lamp", r#"{"state":"OFF"}"#).await;
    ws.notified_where("notify_power_changed", |params| params[0]["status"] == "off").await;
    someone.publish("zigbee2mqtt/lamp", "<html>").await;
    let told = ws.notified_where("notify_power_changed", |params| params[0]["status"] == "error").await;
    assert!(told[0]["error"].as_str().unwrap().contains("[power lamp] state_response_template"), "{told}");
    assert_eq!(http.get("/machine/device_power/status?lamp").await.result(), json!({"lamp": "on"}), "asked again, it recovers");
    broker.kill();
    until("offline", status, |lamp| lamp["error"] == "there is no connection to the broker").await;
    let refused = http.post("/machine/device_power/device?device=lamp&action=on").await.error();
    assert_eq!(refused, (503, "Error setting the status of device lamp: there is no connection to the broker".to_owned()));
    // It comes back, and wants a login that nobody has.
    broker.allow_anonymous(false);
    broker.start_again().await;
    until("refused", || async { server.stderr() }, |log| log.contains("not authorised")).await;
    assert_eq!(status().await["error"], "there is no connection to the broker");
    broker.kill();
    broker.allow_anonymous(true);
    broker.start_again().await;
    until("back", status, |lamp| lamp["status"] == "on").await;
    device.abort();
    until("deaf", || async { http.post("/machine/device_power/device?device=lamp&action=off").await.status }, |status| *status == 500)
        .await;
    assert_eq!(status().await["error"], "no state message within 2 s");
}

#[tokio::test]
async fn an_output_of_the_firmware_gets_its_initial_state_at_every_start_of_it() {
    let config = "[power light]\ntype: klipper_device\nobject_name: output_pin caselight\ninitial_state: on\n";
    let server = TestServer::builder().config(config).start().await;
    let status = || async { server.http().get("/machine/device_power/devices").await.result()["devices"][0]["status"].take() };
    until("on", status, |status| status == "on").await;
    let mut ws = server.ws().await;
    server.printer().inject(Fault::Die).await.unwrap();
    ws.notified_where("notify_power_changed", |params| params[0]["status"] == "init").await;
    server.printer().revive().await.unwrap();
    ws.notified_where("notify_power_changed", |params| params[0]["status"] == "on").await;
    let value = server.http().get("/printer/objects/query?output_pin%20caselight").await.result();
    assert_eq!(value["status"]["output_pin caselight"]["value"], 1.0, "the firmware has it, too");
}

#[tokio::test]
async fn a_device_that_tells_its_state_hours_later_is_left_as_it_is() {
    let Some(broker) = Broker::start().await else { return };
    let config = "[power lamp]\ntype: mqtt\ncommand_topic: lamp/set\ncommand_payload: {command}\nstate_topic: lamp\nstate_timeout: 0.2\ninitial_state: off\n";
    let server = TestServer::builder().without_printer().config(&(broker.section("") + config)).start().await;
    let status = || async { server.http().get("/machine/device_power/devices").await.result()["devices"][0].take() };
    let lamp = until("given up", status, |lamp| lamp["status"] == "error").await;
    assert_eq!(lamp["error"], "no state message within 0.2 s");
    let someone = broker.client().await;
    let mut commands = someone.listen("lamp/set");
    let mut ws = server.ws().await;
    someone.publish("lamp", "on").await;
    ws.notified_where("notify_power_changed", |params| params[0]["status"] == "on").await;
    let refused = server.http().post("/machine/device_power/device?device=lamp&action=off").await.error();
    assert_eq!((refused.0, commands.next().await.1), (500, json!("off")), "the first command is the one that somebody gave");
}

#[tokio::test]
async fn templates_of_devices_call_the_server() {
    let Some(broker) = Broker::start().await else { return };
    let web = Web::start().await;
    web.set("/state", Page::body("x"));
    let config = format!(
        "{}[power web]\ntype: http\non_url: {1}\noff_url: {1}\nstatus_url: {1}\nresponse_template:\n  {{'on' if call_method('server.info').fwhost_connected == false else 'off'}}\n\
         [power lamp]\ntype: mqtt\ncommand_topic: lamp/set\ncommand_payload: {{command}}\nstate_topic: lamp\nstate_response_template:\n  {{call_method('machine.device_power.get_device', device=payload)[payload]}}\n\
         [sensor s]\ntype: mqtt\nstate_topic: s\nstate_response_template:\n  {{set_result('roots', call_method('server.files.roots')|length + payload|int)}}\n",
        broker.section(""),
        web.url("/state")
    );
    let server = TestServer::builder().without_printer().config(&config).start().await;
    let http = server.http();
    let device = |index: usize| async move { http.get("/machine/device_power/devices").await.result()["devices"][index]["status"].take() };
    until("the one on the web", || device(0), |status| status == "on").await;
    let someone = broker.client().await;
    someone.publish("lamp", "web").await;
    until("the lamp is as the other one", || device(1), |status| status == "on").await;
    someone.publish("s", "100").await;
    let sensor = || async { http.get("/server/sensors/info?sensor=s").await.result()["values"]["roots"].as_f64() };
    let roots = http.get("/server/files/roots").await.result().as_array().unwrap().len();
    let roots = f64::from(u32::try_from(roots).unwrap()) + 100.0;
    until("the sensor", sensor, |value| *value == Some(roots)).await;
}
