//! Bad days: a firmware host that hangs, dies or talks rubbish; broken configurations and databases.

use serde_json::{Value, json};
use simulator::Fault;

use crate::harness::wait::until;
use crate::harness::{Builder, RpcError, TestServer, within};

/// A printer in real time, whose scripts wait as long as they say.
fn slow_printer() -> Builder {
    TestServer::builder().speed(1.0)
}

fn warns(info: &Value, text: &str) -> bool {
    info["warnings"].as_array().unwrap().iter().any(|warning| warning.as_str().unwrap().contains(text))
}

#[tokio::test]
async fn a_host_that_dies_fails_what_is_pending_and_is_rejoined() {
    let server = slow_printer().start().await;
    let mut ws = server.ws().await;
    let script = ws.begin("printer.gcode.script", json!({"script": "G4 P60000"})).await;
    ws.ok("printer.info", json!({})).await;
    server.printer().inject(Fault::Die).await.unwrap();
    assert_eq!(ws.answer(script).await, Err(RpcError::new(503, "Klippy Disconnected")));
    ws.notified("notify_klippy_disconnected").await;
    ws.notified("notify_fwhost_disconnected").await;
    assert_eq!(server.wait_for_state("disconnected").await["fwhost_connected"], false);
    assert_eq!(server.http().get("/printer/info").await.error(), (503, "Klippy Host not connected".to_owned()));
    server.printer().revive().await.unwrap();
    ws.notified("notify_klippy_ready").await;
    assert_eq!(ws.ok("printer.info", json!({})).await["state"], "ready");
}

#[tokio::test]
async fn a_pending_http_request_ends_with_503() {
    let server = slow_printer().start().await;
    let (http, control) = (server.http(), server.printer());
    let pending = tokio::spawn(async move { http.post("/printer/gcode/script?script=G4%20P60000").await });
    let mut ws = server.ws().await;
    ws.ok("printer.objects.subscribe", json!({"objects": {"idle_timeout": ["state"]}})).await;
    ws.status("idle_timeout/state", "Printing").await;
    control.inject(Fault::Die).await.unwrap();
    assert_eq!(within("the pending request", pending).await.unwrap().error(), (503, "Klippy Disconnected".to_owned()));
}

#[tokio::test]
async fn subscriptions_are_renewed_after_a_death() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    ws.ok("printer.objects.subscribe", json!({"objects": {"fan": ["speed"]}})).await;
    server.printer().inject(Fault::Die).await.unwrap();
    ws.notified("notify_klippy_disconnected").await;
    server.printer().revive().await.unwrap();
    ws.notified("notify_klippy_ready").await;
    // The printer forgets subscriptions with the connection, as clients know; they ask again.
    ws.ok("printer.objects.subscribe", json!({"objects": {"fan": ["speed"]}})).await;
    ws.ok("printer.gcode.script", json!({"script": "M106 S255"})).await;
    ws.notified_where("notify_status_update", |params| params[0]["fan"]["speed"] == 1.0).await;
}

#[tokio::test]
async fn a_hanging_host_does_not_hang_the_server() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    server.printer().inject(Fault::Hang { seconds: 0.0 }).await.unwrap();
    let stuck = ws.begin("printer.info", json!({})).await;
    assert_eq!(server.http().get("/server/info").await.status, 200);
    assert_eq!(ws.ok("server.info", json!({})).await["klippy_state"], "ready", "nobody knows yet");
    server.printer().clear_all().await.unwrap();
    assert_eq!(ws.answer(stuck).await.unwrap()["state"], "ready");
}

/// The link waits 12 seconds before it gives a silent host up: less would cut off one that is only busy.
#[tokio::test]
async fn a_host_that_stays_silent_is_given_up_and_rejoined() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    server.printer().inject(Fault::Hang { seconds: 0.0 }).await.unwrap();
    let stuck = ws.begin("printer.gcode.script", json!({"script": "M115"})).await;
    let look = || server.info();
    until("the host is given up", look, |info| info["klippy_state"] == "disconnected").await;
    assert_eq!(ws.answer(stuck).await, Err(RpcError::new(503, "Klippy Disconnected")));
    server.printer().clear_all().await.unwrap();
    ws.notified("notify_klippy_ready").await;
}

/// Faults that pass: the server answers meanwhile and is ready again afterwards.
async fn recovers_from(fault: Fault) {
    let server = TestServer::start().await;
    server.printer().inject(fault).await.unwrap();
    assert_eq!(server.http().get("/server/info").await.status, 200);
    let _ = server.http().get("/printer/info").await;
    assert_eq!(server.http().get("/server/info").await.status, 200);
    server.printer().clear_all().await.unwrap();
    server.wait_for_state("ready").await;
    let info = until("printer info", || async { server.http().get("/printer/info").await }, |reply| reply.status == 200);
    assert_eq!(info.await.result()["state"], "ready");
}

#[tokio::test]
async fn half_a_message_is_survived() {
    recovers_from(Fault::HalfMessage).await;
}

#[tokio::test]
async fn invalid_json_is_survived() {
    recovers_from(Fault::InvalidJson).await;
}

#[tokio::test]
async fn readings_that_are_no_numbers_are_survived() {
    recovers_from(Fault::NonFinite).await;
}

#[tokio::test]
async fn slow_answers_are_waited_for() {
    let server = TestServer::start().await;
    server.printer().inject(Fault::SlowReplies { ms: 500 }).await.unwrap();
    let mut ws = server.ws().await;
    let slow = ws.begin("printer.info", json!({})).await;
    ws.ok("server.info", json!({})).await;
    assert_eq!(ws.answer(slow).await.unwrap()["state"], "ready");
}

#[tokio::test]
async fn huge_answers_pass() {
    let server = TestServer::start().await;
    server.printer().inject(Fault::HugeReplies { bytes: 8 * 1024 * 1024 }).await.unwrap();
    let reply = server.http().get("/printer/gcode/help").await;
    assert!(reply.result().as_object().unwrap().len() > 3);
    assert_eq!(server.ws().await.ok("printer.info", json!({})).await["state"], "ready");
}

#[tokio::test]
async fn a_silent_old_connection_is_noticed() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    server.printer().inject(Fault::Zombie).await.unwrap();
    server.printer().restart(false).await.unwrap();
    ws.notified("notify_klippy_disconnected").await;
    ws.notified("notify_klippy_ready").await;
    assert_eq!(ws.ok("printer.info", json!({})).await["state"], "ready");
}

#[tokio::test]
async fn a_faulty_printer_configuration_is_told() {
    let server = TestServer::builder().fault(Fault::ConfigError).start().await;
    let info = server.wait_for_state("error").await;
    assert_eq!(info["klippy_connected"], true);
    let printer = server.http().get("/printer/info").await.result();
    assert!(printer["state"] == "error" && printer["state_message"].as_str().unwrap().contains("bogus"), "{printer}");
    server.printer().clear_all().await.unwrap();
    let mut ws = server.ws().await;
    let _ = ws.begin("printer.restart", json!({})).await;
    ws.notified("notify_klippy_ready").await;
}

#[tokio::test]
async fn a_shutdown_during_a_print_is_told() {
    let server = TestServer::start().await;
    server.upload("long.gcode", &crate::harness::printer::long_job()).await;
    let mut ws = server.ws().await;
    ws.ok("printer.print.start", json!({"filename": "long.gcode"})).await;
    server.printer().shutdown("Heater extruder not heating at expected rate").await.unwrap();
    ws.notified("notify_klippy_shutdown").await;
    let printer = ws.ok("printer.info", json!({})).await;
    assert!(printer["state_message"].as_str().unwrap().contains("not heating"), "{printer}");
    let _ = ws.begin("printer.firmware_restart", json!({})).await;
    ws.notified("notify_klippy_ready").await;
}

#[tokio::test]
async fn a_printer_that_lacks_objects_is_told() {
    let server = TestServer::builder().fault(Fault::Without { object: "virtual_sdcard".to_owned() }).start().await;
    let info = server.wait_for_state("ready").await;
    assert_eq!(info["missing_klippy_requirements"], json!(["virtual_sdcard"]));
}

#[tokio::test]
async fn a_broken_configuration_gives_way_to_the_last_good_one() {
    let mut server = TestServer::start().await;
    assert_eq!(server.info().await["warnings"], json!([]));
    assert_eq!(server.stop().await, Some(0));
    server.write_config(|good| good.replace("[server]", "[server"));
    server.start_again().await;
    let info = server.wait_for_state("ready").await;
    assert!(warns(&info, "has errors") && warns(&info, "bowsprit.conf:1:"), "{}", info["warnings"]);
    assert_eq!(server.http().get("/server/info").await.status, 200, "the trusted address is still trusted");
}

#[tokio::test]
async fn options_and_sections_that_nobody_knows_are_warned_of() {
    let server = TestServer::builder().without_printer().config("nonsense: 1\n[spoolman]\nserver: http://127.0.0.1:1").start().await;
    let info = server.info().await;
    assert!(
        warns(&info, "Unparsed config section [spoolman]") && warns(&info, "It may stay") && warns(&info, "nonsense"),
        "{}",
        info["warnings"]
    );
}

#[tokio::test]
async fn a_damaged_database_is_set_aside() {
    let server = TestServer::builder().without_printer().prepare(|folder| {
        std::fs::create_dir(folder.join("database")).unwrap();
        std::fs::write(folder.join("database/bowsprit.db"), "this is no database, ".repeat(500)).unwrap();
    });
    let server = server.start().await;
    let info = server.info().await;
    assert!(warns(&info, "damaged"), "{}", info["warnings"]);
    let item = json!({"namespace": "n", "key": "k", "value": 1});
    server.ws().await.ok("server.database.post_item", item).await;
    let names: Vec<_> = std::fs::read_dir(server.path("database")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().any(|name| name.to_string_lossy().starts_with("bowsprit.db.damaged-")), "{names:?}");
}

#[tokio::test]
async fn a_database_that_cannot_be_opened_does_not_keep_the_server_down() {
    let server =
        TestServer::builder().prepare(|folder| std::fs::create_dir_all(folder.join("database/bowsprit.db/x")).unwrap()).start().await;
    let info = server.info().await;
    assert_eq!(info["failed_components"], json!(["database"]));
    assert!(warns(&info, "bowsprit.db"), "{}", info["warnings"]);
    assert_eq!(server.http().get("/printer/info").await.result()["state"], "ready");
}

#[tokio::test]
async fn an_address_that_is_none_leaves_loopback() {
    let mut server = TestServer::without_printer().await;
    assert_eq!(server.stop().await, Some(0));
    server.write_config(|text| text.replace("host: 127.0.0.1", "host: 300.1.2.3"));
    server.start_again().await;
    let info = server.info().await;
    assert!(warns(&info, "300.1.2.3"), "{}", info["warnings"]);
}
