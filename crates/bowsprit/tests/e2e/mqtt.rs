//! MQTT against a real broker: JSON-RPC and status over topics, messages of clients and macros, and days without a broker.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::broker::{Broker, Listener};
use crate::harness::{TestServer, wait};

async fn server(broker: &Broker, options: &str) -> TestServer {
    TestServer::builder().config(&broker.section(options)).start().await
}

async fn without_printer(broker: &Broker, options: &str) -> TestServer {
    TestServer::builder().config(&broker.section(options)).without_printer().start().await
}

/// Waits until the server says that it is there; gives a client of the broker.
async fn there(broker: &Broker, service: &str) -> Listener {
    let client = broker.client().await;
    client.listen(&format!("printer/{service}/status")).json(|state| *state == json!({"server": "online"})).await;
    client
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params, "id": method})
}

#[tokio::test]
async fn requests_are_answered_in_the_vocabulary_of_their_topic() {
    let Some(broker) = Broker::start().await else { return };
    let _server = without_printer(&broker, "").await;
    let client = there(&broker, "core").await;
    for service in ["core", "moonraker"] {
        let answer = client.call(service, &request("server.info", &json!({}))).await;
        assert_eq!(answer["result"]["klippy_connected"], false, "{answer}");
        let answer = client.call(service, &request("server.connection.identify", &json!({}))).await;
        assert_eq!(answer["error"]["message"], "Method not found for transport MQTT");
        let answer = client.call(service, &request("access.get_user", &json!({}))).await;
        assert_eq!(answer["error"]["message"], "Method not found for transport MQTT");
    }
    let mut answers = client.listen("printer/core/api/response");
    client.publish("printer/core/api/request", "{nonsense").await;
    assert_eq!(answers.next().await.1["error"]["code"], -32700);
    client.publish("printer/core/api/request", r#"{"jsonrpc":"2.0","method":"server.info"}"#).await;
    let batch = json!([request("server.info", &json!({})), request("no.such.method", &json!({}))]);
    client.publish("printer/core/api/request", &batch.to_string()).await;
    let (_, answer) = answers.next().await;
    assert_eq!(answer[1]["error"]["code"], -32601, "the request without an id has no answer: {answer}");
}

#[tokio::test]
async fn a_repeated_request_is_refused() {
    let Some(broker) = Broker::start().await else { return };
    let _server = without_printer(&broker, "").await;
    let client = there(&broker, "core").await;
    let marked = request("server.info", &json!({"mqtt_timestamp": 1_700_000_000_000_000_u64}));
    assert!(client.call("core", &marked).await["result"].is_object());
    let error = json!({"code": -10000, "message": "Duplicate MQTT Request"});
    assert_eq!(client.call("core", &marked).await["error"], error);
    assert_eq!(client.call("moonraker", &marked).await["error"], error);
}

#[tokio::test]
async fn callers_have_the_configured_role() {
    let Some(broker) = Broker::start().await else { return };
    let viewer = without_printer(&broker, "api_role: viewer\n").await;
    let client = there(&broker, "core").await;
    let item = json!({"namespace": "x", "key": "y", "value": 1});
    let refused = client.call("core", &request("server.database.post_item", &item)).await;
    assert_eq!(refused["error"]["message"], "This needs the role operator; your role is viewer");
    let mut presence = client.listen("printer/core/status");
    drop(viewer);
    presence.json(|state| state["server"] == "offline").await;
    let operator = without_printer(&broker, "").await;
    presence.json(|state| state["server"] == "online").await;
    assert!(client.call("core", &request("server.database.post_item", &item)).await["result"].is_object());
    let refused = client.call("core", &request("server.restart", &json!({}))).await;
    assert_eq!(refused["error"]["message"], "This needs the role admin; your role is operator");
    let noted = operator.unix().await.ok("access.audit.list", json!({})).await["entries"].clone();
    let of_interest = |entry: &Value| [&entry["method"], &entry["transport"], &entry["user"], &entry["status"]].map(Clone::clone);
    let refused = ["server.restart", "mqtt", "mqtt"].map(Value::from);
    assert_eq!(of_interest(&noted[0])[..3], refused, "{noted}");
}

#[tokio::test]
async fn a_configuration_of_the_incumbent_keeps_its_topics_and_rights() {
    let Some(broker) = Broker::start().await else { return };
    let server = TestServer::builder().config_name("moonraker.conf").config(&broker.section("")).without_printer().start().await;
    let client = there(&broker, "moonraker").await;
    assert_eq!(client.call("moonraker", &request("server.restart", &json!({}))).await["result"], "ok");
    let mut presence = client.listen("printer/moonraker/status");
    presence.json(|state| *state == json!({"server": "online"})).await;
    drop(server);
    presence.json(|state| *state == json!({"server": "offline"})).await;
}

#[tokio::test]
async fn status_becomes_topics() {
    let Some(broker) = Broker::start().await else { return };
    let client = broker.client().await;
    let mut status = client.listen("printer/firmware/status");
    let server = server(&broker, "status_objects:\n  heater_bed=target\n  print_stats\n").await;
    let full = status.json(|message| message["status"]["heater_bed"]["target"] == 0.0).await;
    assert_eq!(full["status"]["print_stats"]["state"], "standby");
    assert!(full["eventtime"].is_number());
    server.http().post("/printer/gcode/script?script=M140%20S50").await.result();
    let change = status.json(|message| message["status"]["heater_bed"]["target"] == 50.0).await;
    assert_eq!(change["status"]["heater_bed"], json!({"target": 50.0}), "nothing that was not asked for");
    let only = json!({"objects": {"extruder": ["target"]}});
    let answer = client.call("core", &request("printer.objects.subscribe", &only)).await;
    assert_eq!(answer["result"]["status"], json!({"extruder": {"target": 0.0}}));
    server.http().post("/printer/gcode/script?script=M140%20S40%0AM104%20S150").await.result();
    let change = status.json(|message| message["status"]["extruder"]["target"] == 150.0).await;
    assert_eq!(change["status"], json!({"extruder": {"target": 150.0}}), "the configured subscription was replaced");
}

#[tokio::test]
async fn split_status_is_kept_field_by_field() {
    let Some(broker) = Broker::start().await else { return };
    let options = "status_objects:\n  heater_bed=target,power\npublish_split_status: true\nstatus_interval: 0.3\n";
    let server = server(&broker, options).await;
    server.http().post("/printer/gcode/script?script=M140%20S50").await.result();
    let client = broker.client().await;
    let target = || async { client.listen("printer/firmware/state/heater_bed/target").next().await.1 };
    wait::until("the target is kept", target, |message| message["value"] == 50.0 && message["eventtime"].is_number()).await;
}

#[tokio::test]
async fn clients_publish_and_wait_for_messages() {
    let Some(broker) = Broker::start().await else { return };
    let server = without_printer(&broker, "default_qos: 1\n").await;
    let client = there(&broker, "core").await;
    let (http, mut ws) = (server.http(), server.ws().await);
    let mut lamp = client.listen("lamp/#");
    let message = json!({"topic": "lamp/set", "payload": {"on": true}, "retain": true});
    assert_eq!(http.post_json("/server/mqtt/publish", &message).await.result(), json!({"topic": "lamp/set"}));
    assert_eq!(lamp.next().await, ("lamp/set".to_owned(), json!({"on": true})));
    let kept = ws.ok("server.mqtt.subscribe", json!({"topic": "lamp/set", "timeout": 5})).await;
    assert_eq!(kept, json!({"topic": "lamp/set", "payload": {"on": true}}));
    let waiting = ws.begin("server.mqtt.subscribe", json!({"topic": "lamp/state"})).await;
    let answer = async {
        loop {
            client.publish("lamp/state", "ON").await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let result = tokio::select! { result = ws.answer(waiting) => result, () = answer => unreachable!() };
    assert_eq!(result.unwrap()["payload"], "ON");
    let late = http.post_json("/server/mqtt/subscribe", &json!({"topic": "silence", "timeout": 0.2})).await.error();
    assert_eq!(late, (504, "No message on silence within 0.2 s".to_owned()));
    for (arguments, argument) in [(json!({"topic": "a/+"}), "[topic]"), (json!({"topic": "a", "qos": 3}), "[qos]"), (json!({}), "topic")] {
        let (status, text) = http.post_json("/server/mqtt/publish", &arguments).await.error();
        assert!(status == 400 && text.contains(argument), "{text}");
    }
}

#[tokio::test]
async fn macros_publish() {
    let Some(broker) = Broker::start().await else { return };
    let server = server(&broker, "").await;
    let client = there(&broker, "core").await;
    let mut messages = client.listen("+/from/macro");
    let script = "/printer/gcode/script?script=CALL_REMOTE%20METHOD=publish_mqtt_topic%20TOPIC=from/macro%20PAYLOAD=hi%20USE_PREFIX=1";
    server.http().post(script).await.result();
    let (topic, payload) = messages.next().await;
    assert_eq!((topic.as_str(), payload), ("printer/from/macro", json!("hi")));
}

#[tokio::test]
async fn a_broker_that_goes_and_comes_back_is_used_again() {
    let Some(mut broker) = Broker::start().await else { return };
    let server = without_printer(&broker, "").await;
    there(&broker, "core").await;
    broker.kill();
    let publish = || async { server.http().post_json("/server/mqtt/publish", &json!({"topic": "a"})).await.status };
    wait::until("the loss is seen", publish, |status| *status == 503).await;
    broker.start_again().await;
    let client = there(&broker, "core").await;
    assert!(client.call("core", &request("server.info", &json!({}))).await["result"].is_object());
    assert_eq!(publish().await, 200);
}

#[tokio::test]
async fn a_wrong_password_keeps_nothing_else_from_working() {
    let Some(broker) = Broker::with_login("anna", "secret").await else { return };
    let server = without_printer(&broker, "username: anna\npassword: guess\n").await;
    let reason = || async { server.stderr() };
    wait::until("the reason is in the log", reason, |log| log.contains("not authorised")).await;
    assert!(!server.stderr().contains("guess"));
    assert_eq!(server.http().post_json("/server/mqtt/publish", &json!({"topic": "a"})).await.error().0, 503);
    let secrets = |folder: &std::path::Path| {
        std::fs::write(folder.join("core.secrets"), r#"{"mqtt": {"password": "secret"}}"#).unwrap();
    };
    let section = broker.section("username: anna\npassword: {secrets.mqtt.password}\n");
    let right = TestServer::builder().config(&section).prepare(secrets).without_printer().start().await;
    let publish = || async { right.http().post_json("/server/mqtt/publish", &json!({"topic": "a", "qos": 2})).await.status };
    wait::until("the login works", publish, |status| *status == 200).await;
}

#[tokio::test]
async fn tls_checks_who_the_broker_is() {
    let made = std::cell::Cell::new(false);
    let certificates = |folder: &std::path::Path| {
        let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -subj /CN=ca -days 2 \
            && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout leaf.key -out leaf.csr -subj /CN=broker \
            && echo subjectAltName=IP:127.0.0.1 > leaf.ext \
            && openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out leaf.pem -days 2 -extfile leaf.ext \
            && chmod a+r leaf.key && chmod a+rx .";
        made.set(
            Command::new("sh").arg("-c").arg(script).current_dir(folder).stderr(std::process::Stdio::null()).status().unwrap().success(),
        );
        let line = |option: &str, name: &str| format!("{option} {}\n", folder.join(name).display());
        if made.get() {
            format!("allow_anonymous true\n{}{}", line("certfile", "leaf.pem"), line("keyfile", "leaf.key"))
        } else {
            String::new()
        }
    };
    let Some(broker) = Broker::start_with(certificates).await else { return };
    if !made.get() {
        println!("skipped: needs openssl");
        return;
    }
    let section = broker.section("enable_tls: true\n");
    let stranger = TestServer::builder().config(&section).without_printer().start().await;
    wait::until("the certificate is refused", || async { stranger.stderr() }, |log| log.contains("TLS:")).await;
    let ca = broker.path("ca.pem");
    let trusting =
        TestServer::builder().config(&section).under(move |_| vec!["/usr/bin/env".into(), format!("SSL_CERT_FILE={}", ca.display())]);
    let trusting = trusting.without_printer().start().await;
    let publish = || async { trusting.http().post_json("/server/mqtt/publish", &json!({"topic": "a", "qos": 1})).await.status };
    wait::until("TLS works", publish, |status| *status == 200).await;
}
