//! Both vocabularies on one server at the same time; values in the caller's form.

use serde_json::{Value, json};

use crate::harness::{Channel, Rpc, TestServer, Unix, wait};

/// The application names that a rollover answers with.
async fn rollover_names<C: Channel>(client: &mut Rpc<C>) -> Vec<String> {
    names_of(&client.ok("server.logs.rollover", json!({})).await)
}

fn names_of(result: &Value) -> Vec<String> {
    let mut names: Vec<String> = result["rolled_over"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    names.extend(result["failed"].as_object().unwrap().keys().cloned());
    names.sort();
    names
}

const NEUTRAL: [&str; 2] = ["core", "firmware"];
const UPSTREAM: [&str; 2] = ["klipper", "moonraker"];

fn identity(name: &str) -> Value {
    json!({"client_name": name, "version": "1", "type": "web", "url": "http://x"})
}

#[tokio::test]
async fn server_info_speaks_both() {
    let server = TestServer::start().await;
    let info = server.http().get("/server/info").await.result();
    for name in ["fwhost_connected", "klippy_connected"] {
        assert_eq!(info[name], true, "{name}");
    }
    for name in ["fwhost_state", "klippy_state"] {
        assert_eq!(info[name], "ready", "{name}");
    }
    for name in ["missing_fwhost_requirements", "missing_klippy_requirements", "failed_components", "warnings"] {
        assert_eq!(info[name], json!([]), "{name}");
    }
    assert!(info["core_version"].is_string() && info["moonraker_version"].as_str().unwrap().starts_with('v'));
    assert_eq!((&info["api_version"], &info["api_version_string"]), (&json!([1, 5, 0]), &json!("1.5.0")));
}

#[tokio::test]
async fn printer_info_speaks_both() {
    let server = TestServer::start().await;
    let info = server.http().get("/printer/info").await.result();
    assert_eq!(info["firmware_path"], info["klipper_path"]);
    assert!(info["firmware_path"].is_string());
}

#[tokio::test]
async fn both_socket_names_lead_to_the_server() {
    let server = TestServer::without_printer().await;
    for name in ["comms/core.sock", "comms/moonraker.sock"] {
        let mut unix = Unix::connect(&server.path(name)).await;
        assert_eq!(unix.ok("server.info", json!({})).await["klippy_state"], "disconnected");
    }
}

#[tokio::test]
async fn logs_are_served_under_both_names() {
    let server = TestServer::builder().prepare(|folder| {
        std::fs::create_dir(folder.join("logs")).unwrap();
        std::fs::write(folder.join("logs/core.log"), "ours").unwrap();
        std::fs::write(folder.join("logs/klippy.log"), "theirs").unwrap();
    });
    let server = server.args(&[]).start().await;
    for (name, content) in [("core", "ours"), ("moonraker", "ours"), ("klippy", "theirs"), ("fwhost", "theirs")] {
        let reply = server.http().get(&format!("/server/files/{name}.log")).await;
        assert!(reply.status == 200 && reply.text().starts_with(content), "{name}: {} {}", reply.status, reply.text());
    }
}

#[tokio::test]
async fn a_log_file_after_another_says_what_wrote_it() {
    let server = TestServer::builder().without_printer().args(&[]).start().await;
    let rolled = || async {
        server.http().post("/server/logs/rollover?application=core").await.result();
        std::fs::read_to_string(server.path("logs/core.log")).unwrap()
    };
    let text = wait::until("a description of the system", rolled, |text| text.contains("System: {")).await;
    assert!(text.contains("Bowsprit ") && text.contains("Arguments: ") && text.contains("kernel_version"), "{text}");
}

#[tokio::test]
async fn values_are_neutral_unless_somebody_asks() {
    let server = TestServer::without_printer().await;
    assert_eq!(rollover_names(&mut server.ws().await).await, NEUTRAL);
    assert_eq!(names_of(&server.http().post("/server/logs/rollover").await.result()), NEUTRAL);
    let mut neutral = server.ws().await;
    neutral.ok("server.connection.identify", identity("my dashboard")).await;
    assert_eq!(rollover_names(&mut neutral).await, NEUTRAL);
}

#[tokio::test]
async fn a_known_client_reads_the_incumbents_values() {
    let server = TestServer::without_printer().await;
    let mut mainsail = server.ws().await;
    mainsail.ok("server.connection.identify", identity("mainsail")).await;
    assert_eq!(rollover_names(&mut mainsail).await, UPSTREAM);
    let mut asking = server.ws().await;
    let mut params = identity("my dashboard");
    params["vocabulary"] = json!("upstream");
    asking.ok("server.connection.identify", params).await;
    assert_eq!(rollover_names(&mut asking).await, UPSTREAM);
    assert_eq!(rollover_names(&mut server.ws().await).await, NEUTRAL, "others are not affected");
}

#[tokio::test]
async fn the_owner_chooses_the_form() {
    let server = TestServer::builder().without_printer().config("vocabulary: upstream").start().await;
    assert_eq!(names_of(&server.http().post("/server/logs/rollover").await.result()), UPSTREAM);
    assert_eq!(rollover_names(&mut server.unix().await).await, UPSTREAM);
}

#[tokio::test]
async fn the_incumbents_configuration_brings_its_form() {
    let server = TestServer::builder().without_printer().config_name("moonraker.conf").start().await;
    assert_eq!(names_of(&server.http().post("/server/logs/rollover").await.result()), UPSTREAM);
    let config = server.http().get("/server/config").await.result();
    assert_eq!(config["config"]["server"]["klippy_uds_address"], config["config"]["server"]["fwhost_uds_address"]);
    assert_eq!(config["files"][0]["filename"], "moonraker.conf");
}

#[tokio::test]
async fn parameter_values_are_accepted_in_both_forms() {
    let server = TestServer::without_printer().await;
    for (application, answer) in [("firmware", "firmware"), ("klipper", "firmware"), ("core", "core"), ("moonraker", "core")] {
        let result = server.http().post(&format!("/server/logs/rollover?application={application}")).await.result();
        assert_eq!(names_of(&result), [answer], "{application}");
    }
    let (status, message) = server.http().post("/server/logs/rollover?application=nonsense").await.error();
    assert!(status == 400 && message.contains("[application]"), "{message}");
}
