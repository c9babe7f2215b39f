//! Sensors against a real broker. Skipped where there is none.

use serde_json::{Value, json};

use crate::harness::broker::{Broker, Listener};
use crate::harness::printer::long_job;
use crate::harness::{TestServer, wait};

const MAINS: &str = "
[sensor mains]
type: mqtt
name: Mains power
state_topic: tele/mains/SENSOR
state_response_template:
  {% set energy = (payload|fromjson)['ENERGY'] %}
  {set_result('energy', energy['Total'])}
  {% if 'Power' in energy %}{set_result('power', energy['Power'])}{% endif %}
parameter_power:
  units=W
history_field_used:
  parameter=energy
  strategy=delta
  units=kWh
  init_tracker=true
  report_total=true
history_field_peak:
  parameter=power
  strategy=maximum
[sensor other]
type: mqtt
state_topic: other
state_response_template: {set_result('x', payload)}
";

async fn start(broker: &Broker, with_printer: bool) -> (TestServer, Listener) {
    let builder = TestServer::builder().config(&(broker.section("") + MAINS));
    let server = if with_printer { builder } else { builder.without_printer() }.start().await;
    let client = broker.client().await;
    client.listen("printer/core/status").json(|state| state["server"] == "online").await;
    (server, client)
}

async fn sensor(server: &TestServer, id: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let look = || async { server.http().get("/server/sensors/list").await.result()["sensors"][id].take() };
    wait::until(&format!("sensor {id}"), look, fits).await
}

/// Publishes until the sensor has heard it: the subscription may still be on its way.
async fn heard(server: &TestServer, client: &Listener, payload: &str, values: &Value) {
    let look = || async {
        client.publish("tele/mains/SENSOR", payload).await;
        server.http().get("/server/sensors/info?sensor=mains").await.result()["values"].take()
    };
    wait::until("the numbers of the sensor", look, |seen| seen == values).await;
}

#[tokio::test]
async fn numbers_are_shown_kept_and_told() {
    let Some(broker) = Broker::start().await else { return };
    let (server, client) = start(&broker, false).await;
    let mut ws = server.ws().await;
    heard(&server, &client, r#"{"ENERGY":{"Total":1.5,"Power":"40"}}"#, &json!({"energy": 1.5, "power": 40.0})).await;
    let told = ws.notified_where("notify_sensor_update", |params| params[0]["mains"]["power"] == 40.0).await;
    assert_eq!(told, json!([{"mains": {"energy": 1.5, "power": 40.0}}]));
    heard(&server, &client, r#"{"ENERGY":{"Total":1.6}}"#, &json!({"energy": 1.6, "power": 40.0})).await;
    ws.notified_where("notify_sensor_update", |params| params[0]["mains"]["energy"] == 1.6).await;
    let list = ws.ok("server.sensors.list", json!({})).await;
    let expected = json!({"id": "mains", "friendly_name": "Mains power", "type": "mqtt", "values": {"energy": 1.6, "power": 40.0}});
    assert_eq!((&list["sensors"]["mains"], &list["sensors"]["other"]["values"]), (&expected, &json!({})));
    let extended = server.http().get("/server/sensors/sensor?sensor=mains&extended=true").await.result();
    assert_eq!(extended["parameter_info"], json!([{"units": "W", "name": "power"}]));
    assert_eq!((&extended["history_fields"][0]["strategy"], &extended["history_fields"][1]["field"]), (&json!("delta"), &json!("peak")));
    let kept = server.http().get("/server/sensors/measurements").await.result();
    let (energy, power) = (kept["mains"]["energy"].as_array().unwrap(), kept["mains"]["power"].as_array().unwrap());
    assert!(energy.len() >= 2 && energy.len() == power.len() && energy.last() == Some(&json!(1.6)), "{kept}");
    assert_eq!(server.http().get("/server/sensors/info?sensor=none").await.error(), (400, "No valid sensor named none".to_owned()));
    assert_eq!(server.http().get("/server/sensors/measurements?sensor=none").await.status, 400);
}

#[tokio::test]
async fn bad_messages_say_why_and_a_good_one_helps() {
    let Some(mut broker) = Broker::start().await else { return };
    let (server, client) = start(&broker, false).await;
    let good = json!({"energy": 1, "power": 5});
    heard(&server, &client, r#"{"ENERGY":{"Total":1,"Power":5}}"#, &good).await;
    for bad in ["<html>", r#"{"ENERGY":{"Tot"#, "{}", r#"{"ENERGY":{"Total":"many"}}"#] {
        client.publish("tele/mains/SENSOR", bad).await;
        let shown = sensor(&server, "mains", |sensor| sensor["error"].is_string()).await;
        assert!(shown["error"].as_str().unwrap().starts_with("[sensor mains] state_response_template"), "{shown}");
        assert_eq!(shown["values"], good, "the old numbers stay");
        client.publish("tele/mains/SENSOR", r#"{"ENERGY":{"Total":1,"Power":5}}"#).await;
        sensor(&server, "mains", |sensor| sensor["error"].is_null()).await;
    }
    client.publish("other", "7").await;
    sensor(&server, "other", |sensor| sensor["values"] == json!({"x": 7.0})).await;
    broker.kill();
    sensor(&server, "mains", |sensor| sensor["values"] == json!({})).await;
    broker.start_again().await;
    let client = broker.client().await;
    heard(&server, &client, r#"{"ENERGY":{"Total":2}}"#, &json!({"energy": 2})).await;
}

#[tokio::test]
async fn the_history_has_what_a_job_used() {
    let Some(broker) = Broker::start().await else { return };
    let (server, client) = start(&broker, true).await;
    let mut ws = server.ws().await;
    heard(&server, &client, r#"{"ENERGY":{"Total":10.0,"Power":90}}"#, &json!({"energy": 10.0, "power": 90})).await;
    server.upload("long.gcode", &long_job()).await;
    assert_eq!(server.http().post("/printer/print/start?filename=long.gcode").await.result(), "ok");
    ws.notified_where("notify_history_changed", |params| params[0]["action"] == "added").await;
    for (total, power) in [(10.5, 60), (12.0, 70), (12.5, 65)] {
        let payload = json!({"ENERGY": {"Total": total, "Power": power}}).to_string();
        heard(&server, &client, &payload, &json!({"energy": total, "power": power})).await;
    }
    server.http().post("/printer/print/cancel").await.result();
    let finished = ws.notified_where("notify_history_changed", |params| params[0]["action"] == "finished").await;
    let data = finished[0]["job"]["auxiliary_data"].as_array().unwrap();
    let of = |name: &str| data.iter().find(|entry| entry["name"] == name).unwrap();
    assert_eq!((&of("used")["value"], &of("used")["units"], &of("used")["provider"]), (&json!(2.5), &json!("kWh"), &json!("sensor mains")));
    assert_eq!((&of("peak")["value"], &of("peak")["description"]), (&json!(70.0), &json!("power tracker")));
    let totals = server.http().get("/server/history/totals").await.result();
    assert_eq!(totals["auxiliary_totals"][0]["total"], 2.5, "{totals}");
}

#[tokio::test]
async fn a_sensor_without_a_broker_is_named() {
    let server = TestServer::builder().without_printer().config(MAINS).start().await;
    let info = server.info().await;
    assert!(info["warnings"].to_string().contains("[sensor mains] needs a section [mqtt]"), "{info}");
    assert_eq!(server.http().get("/server/sensors/list").await.status, 404);
    assert_eq!(info["failed_components"], json!([]));
}

#[tokio::test]
async fn a_faulty_section_is_a_component_that_failed() {
    let config = format!("[mqtt]\naddress: 127.0.0.1\ninstance_name: a+b\n[zeroconf]\ninterfaces: nowhere\n{MAINS}");
    let info = TestServer::builder().without_printer().config(&config).start().await.info().await;
    assert_eq!(info["failed_components"], json!(["mqtt", "zeroconf"]));
    assert!(!info["components"].to_string().contains("\"mqtt\""), "{info}");
}
