//! The history: what the printer does is on record, whoever watches.

use serde_json::{Value, json};
use simulator::{Fault, PrintState};

use crate::harness::printer::{failing_job, job, long_job};
use crate::harness::wait::until;
use crate::harness::{Form, TestServer, within};

/// All records, oldest first.
pub(crate) async fn records(server: &TestServer) -> Vec<Value> {
    let list = server.http().get("/server/history/list?order=asc&limit=0").await.result();
    assert_eq!(list["count"], list["jobs"].as_array().unwrap().len());
    list["jobs"].as_array().unwrap().clone()
}

/// Waits until there are `count` records and none is in progress.
pub(crate) async fn finished(server: &TestServer, count: usize) -> Vec<Value> {
    let over = |jobs: &Vec<Value>| jobs.len() == count && jobs.iter().all(|job| job["status"] != "in_progress");
    until("finished records", || records(server), over).await
}

pub(crate) async fn in_progress(server: &TestServer) -> Value {
    let open = |jobs: &Vec<Value>| jobs.last().is_some_and(|job| job["status"] == "in_progress");
    until("a record in progress", || records(server), open).await.pop().unwrap()
}

pub(crate) async fn print(server: &TestServer, name: &str) {
    assert_eq!(server.http().post(&format!("/printer/print/start?filename={name}")).await.result(), "ok");
}

async fn printing(server: &TestServer, state: PrintState) {
    let control = server.printer();
    within("a print state", control.wait_until(|snapshot| snapshot.print_state == state)).await.unwrap();
}

#[tokio::test]
async fn a_job_is_on_record_from_its_start_to_its_end() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    let form = Form::default().file("part.gcode", job(40).as_bytes()).field("path", "sub");
    assert_eq!(server.http().upload(form).await.status, 201);
    print(&server, "sub/part.gcode").await;
    let added = ws.notified("notify_history_changed").await[0].take();
    let (entry, id) = (&added["job"], added["job"]["job_id"].as_str().unwrap());
    assert_eq!((&added["action"], &entry["status"], id), (&json!("added"), &json!("in_progress"), "000001"));
    assert_eq!((&entry["end_time"], &entry["exists"], &entry["filename"]), (&Value::Null, &json!(true), &json!("sub/part.gcode")));
    assert_eq!((&entry["user"], &entry["auxiliary_data"]), (&json!("_TRUSTED_USER_"), &json!([])));
    let finished = ws.notified("notify_history_changed").await[0].take();
    let done = &finished["job"];
    assert_eq!((&finished["action"], &done["status"], &done["job_id"]), (&json!("finished"), &json!("completed"), &json!(id)));
    assert!(done["total_duration"].as_f64().unwrap() > 1.0 && done["end_time"].as_f64() >= done["start_time"].as_f64(), "{done}");
    assert!(done["metadata"]["size"].is_u64() && done["metadata"].get("job_id").is_none(), "{done}");
    assert_eq!(server.http().get("/server/history/job?uid=1").await.result()["job"], *done);
    let metadata = server.http().get("/server/files/metadata?filename=sub/part.gcode").await.result();
    assert_eq!((&metadata["job_id"], &metadata["print_start_time"]), (&json!(id), &done["start_time"]));
    let totals = server.http().get("/server/history/totals").await.result();
    assert_eq!((&totals["job_totals"]["total_jobs"], &totals["job_totals"]["total_time"]), (&json!(1), &done["total_duration"]));
}

#[tokio::test]
async fn every_end_has_its_status() {
    let server = TestServer::start().await;
    for (name, text) in [("good", job(3)), ("bad", failing_job()), ("long", long_job())] {
        server.upload(&format!("{name}.gcode"), &text).await;
    }
    print(&server, "good.gcode").await;
    finished(&server, 1).await;
    let _ = server.http().post("/printer/print/start?filename=bad.gcode").await;
    finished(&server, 2).await;
    print(&server, "long.gcode").await;
    in_progress(&server).await;
    server.http().post("/printer/print/cancel").await.result();
    let jobs = finished(&server, 3).await;
    let statuses: Vec<_> = jobs.iter().map(|job| job["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["completed", "error", "cancelled"]);
    assert!(jobs[2]["total_duration"].as_f64().unwrap() > 0.0, "counters from before the printer reset them: {}", jobs[2]);
    print(&server, "long.gcode").await;
    in_progress(&server).await;
    server.http().post("/printer/emergency_stop").await.result();
    assert_eq!(finished(&server, 4).await[3]["status"], "klippy_shutdown");
}

#[tokio::test]
async fn a_job_that_a_shutdown_ended_keeps_its_record_over_a_restart_of_ours() {
    let mut server = TestServer::start().await;
    server.upload("long.gcode", &long_job()).await;
    print(&server, "long.gcode").await;
    in_progress(&server).await;
    server.http().post("/printer/emergency_stop").await.result();
    let before = finished(&server, 1).await;
    printing(&server, PrintState::Error).await;
    server.restart().await;
    server.wait_for_state("shutdown").await;
    server.http().post("/printer/firmware_restart").await.result();
    server.wait_for_state("ready").await;
    assert_eq!(records(&server).await, before);
}

#[tokio::test]
async fn a_host_that_goes_away_ends_the_job() {
    let server = TestServer::start().await;
    server.upload("long.gcode", &long_job()).await;
    print(&server, "long.gcode").await;
    in_progress(&server).await;
    server.printer().inject(Fault::Die).await.unwrap();
    let jobs = finished(&server, 1).await;
    assert_eq!(jobs[0]["status"], "klippy_disconnect");
    assert!(jobs[0]["total_duration"].as_f64().unwrap() > 0.0, "{}", jobs[0]);
    server.printer().revive().await.unwrap();
    server.wait_for_state("ready").await;
    assert_eq!(records(&server).await.len(), 1);
}

#[tokio::test]
async fn a_restart_of_ours_does_not_touch_a_running_job() {
    let mut server = TestServer::start().await;
    server.upload("long.gcode", &long_job()).await;
    print(&server, "long.gcode").await;
    let before = in_progress(&server).await;
    server.restart().await;
    server.wait_for_state("ready").await;
    server.kill9().await;
    server.start_again().await;
    server.wait_for_state("ready").await;
    let after = in_progress(&server).await;
    assert_eq!((&before["job_id"], &before["start_time"], &before["user"]), (&after["job_id"], &after["start_time"], &after["user"]));
    server.http().post("/printer/print/cancel").await.result();
    let jobs = finished(&server, 1).await;
    assert_eq!(jobs[0]["status"], "cancelled");
    assert_eq!(server.http().get("/server/history/totals").await.result()["job_totals"]["total_jobs"], 1);
}

#[tokio::test]
async fn what_happens_while_we_are_away_is_taken_down_afterwards() {
    for orderly in [true, false] {
        let mut server = TestServer::start().await;
        server.upload("first.gcode", &long_job()).await;
        server.upload("second.gcode", &job(3)).await;
        print(&server, "first.gcode").await;
        in_progress(&server).await;
        if orderly {
            assert_eq!(server.stop().await, Some(0));
        } else {
            server.kill9().await;
        }
        server.printer().run_gcode("CANCEL_PRINT\nSDCARD_RESET_FILE").await.unwrap();
        server.printer().run_gcode("SDCARD_PRINT_FILE FILENAME=second.gcode").await.unwrap();
        printing(&server, PrintState::Complete).await;
        server.start_again().await;
        let jobs = finished(&server, 2).await;
        let expected = if orderly { "server_exit" } else { "interrupted" };
        assert_eq!((&jobs[0]["status"], &jobs[0]["filename"]), (&json!(expected), &json!("first.gcode")));
        assert_eq!((&jobs[1]["status"], &jobs[1]["filename"]), (&json!("completed"), &json!("second.gcode")));
        assert_eq!(jobs[0]["end_time"].is_null(), !orderly);
        server.restart().await;
        server.wait_for_state("ready").await;
        assert_eq!(records(&server).await.len(), 2, "nothing is recorded twice");
    }
}

#[tokio::test]
async fn records_are_deleted_and_totals_reset_but_not_under_a_running_job() {
    let server = TestServer::start().await;
    server.upload("short.gcode", &job(2)).await;
    for count in 1..=2 {
        print(&server, "short.gcode").await;
        finished(&server, count).await;
    }
    server.upload("long.gcode", &long_job()).await;
    print(&server, "long.gcode").await;
    in_progress(&server).await;
    let http = server.http();
    assert_eq!(http.delete("/server/history/job?uid=3").await.error().0, 400);
    assert_eq!(http.post("/server/history/reset_totals").await.error(), (400, "Job in progress, cannot reset totals".to_owned()));
    assert_eq!(http.delete("/server/history/job?uid=1").await.result(), json!({"deleted_jobs": ["000001"]}));
    assert_eq!(http.delete("/server/history/job?uid=1").await.error(), (404, "Invalid job uid: 1".to_owned()));
    assert_eq!(http.delete("/server/history/job?all=true").await.result(), json!({"deleted_jobs": ["000002"]}));
    http.post("/printer/print/cancel").await.result();
    assert_eq!(finished(&server, 1).await[0]["job_id"], "000003");
    let last = http.post("/server/history/reset_totals").await.result();
    assert_eq!((&last["last_totals"]["total_jobs"], &last["last_auxiliary_totals"]), (&json!(3), &json!([])));
    assert_eq!(http.get("/server/history/totals").await.result()["job_totals"]["longest_job"], 0.0);
}

#[tokio::test]
async fn lists_can_be_filtered_and_exported() {
    let server = TestServer::start().await;
    for (index, name) in ["cube.gcode", "=cmd.gcode"].iter().enumerate() {
        server.upload(name, &job(2)).await;
        server.printer().run_gcode(&format!("SDCARD_PRINT_FILE FILENAME=\"{name}\"")).await.unwrap();
        let job = finished(&server, index + 1).await.pop().unwrap();
        assert_eq!(job["user"], Value::Null, "started at the printer");
    }
    let http = server.http();
    let count = |query: &str| {
        let target = format!("/server/history/list?{query}");
        async move { http.get(&target).await.result()["count"].as_u64().unwrap() }
    };
    for (query, expected) in [
        ("search=CUBE", 1),
        ("status=error,completed", 2),
        ("status=error", 0),
        ("filename=cube.gcode", 1),
        ("limit=1", 1),
        ("limit=-5&start=1", 2),
        ("limit=9223372036854775807&start=1", 1),
        ("since=99999999999&before=1", 0),
        ("before=-1&since=-1", 2),
    ] {
        assert_eq!(count(query).await, expected, "{query}");
    }
    for (query, named) in [("order=up", "order"), ("status=done", "status"), ("start=-1", "start"), ("limit=many", "limit")] {
        let (status, message) = http.get(&format!("/server/history/list?{query}")).await.error();
        assert!(status == 400 && message.contains(named), "{query}: {message}");
    }
    assert_eq!(http.get("/server/history/job?uid=None").await.error().0, 404);
    let csv = http.get("/server/history/export?order=asc").await.result();
    let lines: Vec<_> = csv["content"].as_str().unwrap().lines().collect();
    assert!(lines.len() == 3 && lines[2].starts_with("000002,completed,'=cmd.gcode,,"), "{lines:?}");
    let json = http.get("/server/history/export?format=json").await.result();
    assert_eq!(serde_json::from_str::<Value>(json["content"].as_str().unwrap()).unwrap()[0]["filename"], "=cmd.gcode");
}

#[tokio::test]
async fn a_file_that_changed_since_is_not_the_one_that_was_printed() {
    let server = TestServer::start().await;
    let reply = server.http().upload(Form::default().file("a.gcode", job(2).as_bytes()).field("print", "true")).await;
    assert_eq!(reply.status, 201);
    assert_eq!(finished(&server, 1).await[0]["exists"], true);
    server.upload("a.gcode", &job(3)).await;
    assert_eq!(records(&server).await[0]["exists"], false);
    let metadata = server.http().get("/server/files/metadata?filename=a.gcode").await.result();
    assert_eq!((&metadata["job_id"], &metadata["print_start_time"]), (&Value::Null, &Value::Null));
    server.http().delete("/server/files/gcodes/a.gcode").await.result();
    assert_eq!(records(&server).await[0]["exists"], false);
}
