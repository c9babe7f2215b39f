//! The main job: a file is uploaded, printed, watched, paused, resumed, completed or cancelled, on every transport.

use serde_json::{Value, json};
use simulator::PrintState;

use crate::harness::printer::{failing_job, job, long_job};
use crate::harness::wait::until;
use crate::harness::{Channel, Form, Rpc, TestServer, within};

/// Subscribes to what a front end shows of a job.
async fn watch<C: Channel>(client: &mut Rpc<C>) -> Value {
    let objects = json!({"print_stats": null, "virtual_sdcard": ["progress"], "webhooks": null});
    client.ok("printer.objects.subscribe", json!({ "objects": objects })).await
}

async fn wait_for_print(server: &TestServer, state: PrintState) {
    let control = server.printer();
    within("a print state", control.wait_until(|snapshot| snapshot.print_state == state)).await.unwrap();
}

#[tokio::test]
async fn an_uploaded_file_is_printed_paused_resumed_and_completed() {
    let server = TestServer::builder().speed(100.0).start().await;
    server.upload("part.gcode", &job(40)).await;
    let mut ws = server.ws().await;
    let answer = watch(&mut ws).await;
    assert_eq!(answer["status"]["print_stats"]["state"], "standby");

    assert_eq!(ws.ok("printer.print.start", json!({"filename": "part.gcode"})).await, "ok");
    ws.status("print_stats/state", "printing").await;
    ws.ok("printer.print.pause", json!({})).await;
    ws.status("print_stats/state", "paused").await;
    ws.ok("printer.print.resume", json!({})).await;
    ws.status("print_stats/state", "printing").await;
    ws.status("print_stats/state", "complete").await;

    let query = server.http().get("/printer/objects/query?print_stats=filename,info").await.result();
    assert_eq!(query["status"]["print_stats"], json!({"filename": "part.gcode", "info": {"total_layer": 40, "current_layer": 40}}));
}

#[tokio::test]
async fn an_upload_can_start_the_print() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    watch(&mut ws).await;
    let reply = server.http().upload(Form::default().file("now.gcode", job(5).as_bytes()).field("print", "true")).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    assert_eq!((&reply.json()["print_started"], &reply.json()["item"]["path"]), (&json!(true), &json!("now.gcode")));
    ws.status("print_stats/state", "complete").await;
}

#[tokio::test]
async fn an_upload_without_print_only_lies_there() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    let reply = server.http().upload(Form::default().file("later.gcode", job(5).as_bytes()).field("path", "sub")).await;
    assert_eq!(reply.json()["print_started"], false);
    assert!(reply.header("location").is_some_and(|location| location.ends_with("/server/files/gcodes/sub/later.gcode")));
    for expected in [("create_dir", "sub"), ("create_file", "sub/later.gcode")] {
        let change = ws.file_change().await;
        assert_eq!((&change[0]["action"], &change[0]["item"]["path"]), (&json!(expected.0), &json!(expected.1)));
    }
    let list = server.http().get("/server/files/list").await.result();
    assert_eq!(list[0]["path"], "sub/later.gcode");
    let state = server.http().get("/printer/objects/query?print_stats=state").await.result();
    assert_eq!(state["status"]["print_stats"]["state"], "standby");
}

/// Starts, pauses, resumes and cancels with one client.
async fn start_pause_cancel<C: Channel>(server: &TestServer, client: &mut Rpc<C>) {
    server.upload("long.gcode", &long_job()).await;
    watch(client).await;
    client.ok("printer.print.start", json!({"filename": "long.gcode"})).await;
    client.status("print_stats/state", "printing").await;
    client.ok("printer.print.pause", json!({})).await;
    client.status("print_stats/state", "paused").await;
    client.ok("printer.print.cancel", json!({})).await;
    client.status("print_stats/state", "cancelled").await;
}

#[tokio::test]
async fn a_print_is_cancelled_over_websocket() {
    let server = TestServer::start().await;
    start_pause_cancel(&server, &mut server.ws().await).await;
}

#[tokio::test]
async fn a_print_is_cancelled_over_the_unix_socket() {
    let server = TestServer::start().await;
    start_pause_cancel(&server, &mut server.unix().await).await;
}

#[tokio::test]
async fn a_print_is_cancelled_over_http() {
    let server = TestServer::start().await;
    server.upload("a b.gcode", &long_job()).await;
    let http = server.http();
    assert_eq!(http.post("/printer/print/start?filename=a%20b.gcode").await.result(), "ok");
    wait_for_print(&server, PrintState::Printing).await;
    assert_eq!(http.post("/printer/print/pause").await.result(), "ok");
    wait_for_print(&server, PrintState::Paused).await;
    assert_eq!(http.post("/printer/print/cancel").await.result(), "ok");
    wait_for_print(&server, PrintState::Cancelled).await;
}

#[tokio::test]
async fn a_print_is_cancelled_over_json_rpc_in_http() {
    let server = TestServer::start().await;
    server.upload("long.gcode", &long_job()).await;
    let http = server.http();
    let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 7});
    let ok = json!({"jsonrpc": "2.0", "result": "ok", "id": 7});
    assert_eq!(http.rpc(&call("printer.print.start", json!({"filename": "long.gcode"}))).await, ok);
    wait_for_print(&server, PrintState::Printing).await;
    assert_eq!(http.rpc(&call("printer.print.pause", json!({}))).await, ok);
    assert_eq!(http.rpc(&call("printer.print.cancel", json!({}))).await, ok);
    wait_for_print(&server, PrintState::Cancelled).await;
}

#[tokio::test]
async fn an_error_in_the_gcode_ends_the_print_with_its_message() {
    let server = TestServer::start().await;
    server.upload("bad.gcode", &failing_job()).await;
    let mut ws = server.ws().await;
    watch(&mut ws).await;
    ws.ok("printer.print.start", json!({"filename": "bad.gcode"})).await;
    ws.status("print_stats/state", "error").await;
    let lines = ws.notified_where("notify_gcode_response", |params| params[0].as_str().unwrap().starts_with("!!")).await;
    assert!(lines[0].as_str().unwrap().contains("Must home axis first"), "{lines}");
    let stats = server.http().get("/printer/objects/query?print_stats=message").await.result();
    assert!(stats["status"]["print_stats"]["message"].as_str().unwrap().contains("Must home axis first"), "{stats}");
}

#[tokio::test]
async fn a_print_of_a_missing_file_is_refused() {
    let server = TestServer::start().await;
    let (status, message) = server.http().post("/printer/print/start?filename=none.gcode").await.error();
    assert_eq!((status, message.as_str()), (400, "Unable to open file"));
}

#[tokio::test]
async fn a_script_answers_when_it_is_done_and_is_remembered() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    assert_eq!(ws.ok("printer.gcode.script", json!({"script": "M115"})).await, "ok");
    ws.notified("notify_gcode_response").await;
    let error = ws.call("printer.gcode.script", json!({"script": "G1 X10"})).await.unwrap_err();
    assert!(error.code == 400 && error.message.contains("Must home axis first"), "{error:?}");
    let store = ws.ok("server.gcode_store", json!({"count": 100})).await;
    let commands: Vec<_> = store["gcode_store"].as_array().unwrap().iter().filter(|line| line["type"] == "command").collect();
    assert_eq!((commands.len(), &commands[0]["message"]), (2, &json!("M115")));
}

#[tokio::test]
async fn an_emergency_stop_overtakes_a_running_script() {
    let server = TestServer::builder().speed(1.0).start().await;
    let mut ws = server.ws().await;
    let script = ws.begin("printer.gcode.script", json!({"script": "G4 P60000"})).await;
    assert_eq!(server.http().post("/printer/emergency_stop").await.result(), "ok");
    ws.notified("notify_klippy_shutdown").await;
    ws.notified("notify_fwhost_shutdown").await;
    let info = server.wait_for_state("shutdown").await;
    assert_eq!(info["fwhost_state"], "shutdown");
    let error = ws.answer(script).await.unwrap_err();
    assert_eq!(error.code, 400, "{error:?}");
}

#[tokio::test]
async fn restarts_are_told_under_both_names() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    for restart in ["printer.restart", "printer.firmware_restart"] {
        let _ = ws.begin(restart, json!({})).await;
        for name in ["disconnected", "ready"] {
            ws.notified(&format!("notify_fwhost_{name}")).await;
            ws.notified(&format!("notify_klippy_{name}")).await;
        }
        assert_eq!(server.wait_for_state("ready").await["fwhost_connected"], true);
    }
}

#[tokio::test]
async fn a_busy_printer_starts_no_second_job_and_keeps_its_logs() {
    let server = TestServer::start().await;
    server.upload("long.gcode", &long_job()).await;
    let mut ws = server.ws().await;
    watch(&mut ws).await;
    ws.ok("printer.print.start", json!({"filename": "long.gcode"})).await;
    ws.status("print_stats/state", "printing").await;
    let reply = server.http().upload(Form::default().file("next.gcode", b"G28").field("print", "true")).await;
    assert_eq!((reply.status, &reply.json()["print_started"]), (201, &json!(false)));
    assert_eq!(ws.call("printer.print.start", json!({"filename": "next.gcode"})).await.unwrap_err().message, "SD busy");
    let rollover = ws.ok("server.logs.rollover", json!({})).await;
    assert_eq!((&rollover["rolled_over"], rollover["failed"].as_object().unwrap().len()), (&json!([]), 2), "{rollover}");
}

#[tokio::test]
async fn an_upload_starts_nothing_on_a_printer_that_is_not_ready() {
    let server = TestServer::without_printer().await;
    let reply = server.http().upload(Form::default().file("a.gcode", b"G28").field("print", "true")).await;
    assert_eq!((reply.status, &reply.json()["print_started"]), (201, &json!(false)));
}

#[tokio::test]
async fn temperatures_are_remembered() {
    let server = TestServer::start().await;
    let read = || async { server.http().get("/server/temperature_store").await.result() };
    let store = until("a sample", read, |store| store["extruder"]["temperatures"].as_array().is_some_and(|all| !all.is_empty())).await;
    let extruder = &store["extruder"];
    let length = extruder["temperatures"].as_array().unwrap().len();
    for series in ["targets", "powers"] {
        assert_eq!(extruder[series].as_array().unwrap().len(), length, "{series}: {store}");
    }
    assert!(store["heater_bed"]["temperatures"].is_array());
}
