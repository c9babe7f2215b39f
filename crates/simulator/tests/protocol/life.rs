//! Start-up, restarts, shutdowns, coming back.

use serde_json::{Value, json};
use simulator::{Fault, HostState};

use crate::Bench;
use crate::client::Client;

#[tokio::test]
async fn subscriptions_of_startup_live_on_into_ready() {
    let bench = Bench::start(|o| o.faults = vec![Fault::Startup { seconds: 0.4 }]).await;
    let mut client = bench.connect().await;
    assert_eq!(client.call("info", json!({})).await.unwrap()["state"], "startup");
    let early = client.call("list_endpoints", json!({})).await.unwrap()["endpoints"].as_array().unwrap().len();
    client.call("gcode/subscribe_output", json!({ "response_template": { "out": 1 } })).await.unwrap();
    client.call("objects/subscribe", json!({ "objects": { "webhooks": null } })).await.unwrap();
    assert!(client.gcode("G28").await.unwrap_err().starts_with("\nPrinter is not ready\n"));
    client.wait_for(|m| m["params"]["response"] == "// Klipper state: Ready").await;
    let update = client.wait_for(|m| m["params"]["status"]["webhooks"]["state"] == "ready").await;
    assert_eq!(update["params"]["status"]["webhooks"]["state_message"], "Printer is ready");
    let late = client.call("list_endpoints", json!({})).await.unwrap()["endpoints"].as_array().unwrap().len();
    assert!(late > early);
}

#[tokio::test]
async fn a_restart_says_goodbye_and_comes_back() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    let mut other = bench.connect().await;
    client.call("gcode/subscribe_output", json!({})).await.unwrap();
    let id = client.send("gcode/restart", json!({})).await;
    let messages = client.drain().await;
    assert_eq!(messages[0], json!({ "id": id, "result": {} }));
    assert_eq!(messages[1]["params"]["response"], "// Klipper state: Disconnect");
    assert_eq!(other.drain().await, [] as [Value; 0]);
    let mut client = Client::reconnect(&bench.socket).await;
    assert!(client.call("info", json!({})).await.is_ok());
    bench.wait(|s| s.state == HostState::Ready && s.starts == 2).await;
}

#[tokio::test]
async fn an_emergency_stop_needs_a_firmware_restart() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    client.call("gcode/subscribe_output", json!({})).await.unwrap();
    client.call("objects/subscribe", json!({ "objects": { "webhooks": null } })).await.unwrap();
    let running = client.send("gcode/script", json!({ "script": "G4 P900000\nM400" })).await;
    assert_eq!(client.call("emergency_stop", json!({})).await, Ok(json!({})));
    client.wait_for(|m| m["params"]["response"] == "// Klipper state: Shutdown").await;
    client.wait_for(|m| m["params"]["status"]["webhooks"]["state"] == "shutdown").await;
    let error = client.answer(running).await["error"]["message"].as_str().unwrap().to_owned();
    assert!(error.starts_with("Shutdown due to webhooks request\n"), "{error}");
    assert_eq!(client.call("emergency_stop", json!({})).await, Ok(json!({})));

    client.send("gcode/restart", json!({})).await;
    client.drain().await;
    bench.wait_state(HostState::Error).await;
    let mut client = Client::reconnect(&bench.socket).await;
    let message = client.call("info", json!({})).await.unwrap()["state_message"].as_str().unwrap().to_owned();
    assert!(message.contains("as it is shutdown") && message.contains("\"FIRMWARE_RESTART\""), "{message}");

    client.send("gcode/firmware_restart", json!({})).await;
    client.drain().await;
    bench.wait_state(HostState::Ready).await;
}

#[tokio::test]
async fn a_config_error_is_cured_by_a_restart() {
    let bench = Bench::start(|o| o.faults = vec![Fault::ConfigError]).await;
    bench.wait_state(HostState::Error).await;
    let mut client = bench.connect().await;
    let info = client.call("info", json!({})).await.unwrap();
    assert_eq!(info["state"], "error");
    assert!(info["state_message"].as_str().unwrap().ends_with("Printer is halted\n"));
    bench.control.clear(Fault::ConfigError).await.unwrap();
    client.send("gcode/restart", json!({})).await;
    client.drain().await;
    bench.wait_state(HostState::Ready).await;
}

#[tokio::test]
async fn stopping_removes_the_socket_and_a_stale_one_is_replaced() {
    let bench = Bench::ready().await;
    let mut client = bench.connect().await;
    assert!(simulator::Simulator::start(simulator::Options::new("/nonexistent/folder/x.sock")).await.is_err());
    let Bench { simulator, control, socket, folder } = bench;
    simulator.stop().await;
    assert_eq!(client.drain().await, [] as [Value; 0]);
    assert!(!socket.exists());
    assert!(control.advance(1.0).await.is_err());
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists(), "a stale file");
    let simulator = simulator::Simulator::start(simulator::Options::new(&socket)).await.unwrap();
    assert!(Client::connect(&socket).await.call("info", json!({})).await.is_ok());
    simulator.stop().await;
    drop(folder);
}
