//! The job queue: what waits is printed in order, survives restarts, and stops where somebody has to look.

use serde_json::{Value, json};
use simulator::PrintState;

use crate::harness::printer::{failing_job, job, long_job};
use crate::harness::wait::until;
use crate::harness::{Form, TestServer, within};
use crate::history::{finished, in_progress, print};

async fn status(server: &TestServer) -> Value {
    server.http().get("/server/job_queue/status").await.result()
}

async fn in_state(server: &TestServer, state: &str, jobs: usize) -> Value {
    let wanted = |status: &Value| status["queue_state"] == state && status["queued_jobs"].as_array().unwrap().len() == jobs;
    until(&format!("queue state {state} with {jobs} jobs"), || status(server), wanted).await
}

fn names(status: &Value) -> Vec<&str> {
    status["queued_jobs"].as_array().unwrap().iter().map(|job| job["filename"].as_str().unwrap()).collect()
}

async fn with_files(config: &str) -> TestServer {
    let server = TestServer::builder().config(config).start().await;
    for name in ["a", "b", "c"] {
        server.upload(&format!("{name}.gcode"), &job(2)).await;
    }
    server.upload("long.gcode", &long_job()).await;
    server
}

async fn add(server: &TestServer, files: &str) -> Value {
    server.http().post(&format!("/server/job_queue/job?filenames={files}")).await.result()
}

#[tokio::test]
async fn jobs_are_printed_one_after_the_other() {
    let server = with_files("[job_queue]\nautomatic_transition: true\njob_transition_gcode:\n  M117 next\n").await;
    let mut ws = server.ws().await;
    assert_eq!(names(&add(&server, "a.gcode,b.gcode,a.gcode").await), ["a.gcode", "b.gcode", "a.gcode"]);
    server.http().post("/server/job_queue/start").await.result();
    let jobs = finished(&server, 3).await;
    let printed: Vec<_> = jobs.iter().map(|job| (job["filename"].as_str().unwrap(), job["status"].as_str().unwrap())).collect();
    assert_eq!(printed, [("a.gcode", "completed"), ("b.gcode", "completed"), ("a.gcode", "completed")]);
    assert_eq!(jobs[2]["user"], "_TRUSTED_USER_", "the one who queued it");
    in_state(&server, "paused", 0).await;
    let mut told = Vec::new();
    for _ in 0..4 {
        let change = ws.notified("notify_job_queue_changed").await[0].take();
        told.push((
            change["action"].as_str().unwrap().to_owned(),
            change["queue_state"].as_str().unwrap().to_owned(),
            change["updated_queue"].is_array(),
        ));
    }
    let expected = [
        ("jobs_added", "paused", true),
        ("state_changed", "loading", false),
        ("state_changed", "starting", false),
        ("job_loaded", "ready", true),
    ];
    assert_eq!(told, expected.map(|(action, state, jobs)| (action.to_owned(), state.to_owned(), jobs)));
}

#[tokio::test]
async fn without_automatic_transition_every_job_waits_for_a_start() {
    let server = with_files("").await;
    add(&server, "a.gcode,b.gcode").await;
    let answer = server.http().post("/server/job_queue/start").await.result();
    assert_eq!(answer["queue_state"], "loading");
    finished(&server, 1).await;
    assert_eq!(names(&in_state(&server, "paused", 1).await), ["b.gcode"]);
    print(&server, "long.gcode").await;
    within("printing", server.printer().wait_until(|seen| seen.print_state == PrintState::Printing)).await.unwrap();
    assert_eq!(server.http().post("/server/job_queue/start").await.result()["queue_state"], "ready");
    server.http().post("/printer/print/cancel").await.result();
    in_state(&server, "paused", 1).await;
}

#[tokio::test]
async fn the_queue_survives_restarts_and_starts_paused() {
    let mut server = with_files("").await;
    add(&server, "a.gcode,b.gcode,c.gcode").await;
    let id = status(&server).await["queued_jobs"][2]["job_id"].as_str().unwrap().to_owned();
    let mut ws = server.ws().await;
    let jumped = server.http().post(&format!("/server/job_queue/jump?job_id={id}")).await.result();
    assert_eq!(names(&jumped), ["c.gcode", "a.gcode", "b.gcode"]);
    let moved = |params: &Value| params[0]["updated_queue"][0]["job_id"] == json!(id);
    let change = ws.notified_where("notify_job_queue_changed", moved).await[0].take();
    assert_eq!(change["action"], "state_changed");
    server.kill9().await;
    server.start_again().await;
    let kept = status(&server).await;
    assert_eq!((names(&kept), &kept["queue_state"]), (vec!["c.gcode", "a.gcode", "b.gcode"], &json!("paused")));
    let removed = server.http().delete(&format!("/server/job_queue/job?job_ids={id},unknown")).await.result();
    assert_eq!(names(&removed), ["a.gcode", "b.gcode"]);
    server.restart().await;
    assert_eq!(names(&status(&server).await), ["a.gcode", "b.gcode"]);
    server.http().delete("/server/job_queue/job?all=true").await.result();
    server.restart().await;
    assert!(names(&status(&server).await).is_empty());
}

#[tokio::test]
async fn load_on_startup_loads_the_first_job_of_a_kept_queue() {
    let mut server = with_files("[job_queue]\nload_on_startup: true\n").await;
    add(&server, "a.gcode").await;
    server.restart().await;
    assert_eq!(finished(&server, 1).await[0]["filename"], "a.gcode");
    in_state(&server, "paused", 0).await;
}

#[tokio::test]
async fn trouble_pauses_the_queue_and_keeps_the_job() {
    let server = with_files("[job_queue]\nautomatic_transition: true\njob_transition_gcode: G1 X1\n").await;
    add(&server, "a.gcode,b.gcode").await;
    server.http().delete("/server/files/gcodes/a.gcode").await.result();
    server.http().post("/server/job_queue/start").await.result();
    // The file vanished.
    let kept = in_state(&server, "paused", 2).await;
    let id = kept["queued_jobs"][0]["job_id"].as_str().unwrap();
    server.http().delete(&format!("/server/job_queue/job?job_ids={id}")).await.result();
    // A job that fails.
    server.upload("bad.gcode", &failing_job()).await;
    add(&server, "bad.gcode").await;
    server.http().post("/server/job_queue/start").await.result();
    finished(&server, 1).await;
    // The transition gcode fails: the printer is not homed after a restart.
    server.http().post("/printer/restart").await.result();
    server.wait_for_state("ready").await;
    in_state(&server, "paused", 1).await;
}

#[tokio::test]
async fn bad_requests_change_nothing() {
    let server = with_files("").await;
    add(&server, "a.gcode").await;
    let http = server.http();
    let cases = [
        ("POST", "job?filenames=b.gcode,none.gcode&reset=true", "G-Code File none.gcode does not exist"),
        ("POST", "job?filenames=../config/bowsprit.conf", "does not exist"),
        ("POST", "job", "filenames"),
        ("POST", "job?filenames=a.gcode&copies=0", "copies"),
        ("POST", "job?filenames=a.gcode,b.gcode,c.gcode,a.gcode,b.gcode,c.gcode&copies=1000", "5000"),
        ("POST", "jump?job_id=unknown", "Invalid job id: unknown"),
        ("DELETE", "job", "No data for argument: job_ids"),
    ];
    for (verb, target, text) in cases {
        let (status, message) = http.send(verb, &format!("/server/job_queue/{target}"), &[], b"").await.error();
        assert!(status == 400 && message.contains(text), "{target}: {status} {message}");
    }
    assert_eq!(names(&status(&server).await), ["a.gcode"]);
    let nothing = json!({"filenames": []});
    assert_eq!(names(&http.post_json("/server/job_queue/job", &nothing).await.result()), ["a.gcode"], "no fault, and no change");
    assert_eq!(names(&add(&server, "b.gcode&copies=2").await), ["a.gcode", "b.gcode", "b.gcode"]);
    assert_eq!(names(&add(&server, "c.gcode&reset=true").await), ["c.gcode"]);
}

#[tokio::test]
async fn an_upload_that_cannot_start_is_queued_when_that_is_wanted() {
    let server = with_files("[file_manager]\nqueue_gcode_uploads: true\n").await;
    print(&server, "long.gcode").await;
    within("printing", server.printer().wait_until(|seen| seen.print_state == PrintState::Printing)).await.unwrap();
    let reply = server.http().upload(Form::default().file("new.gcode", b"G28\n").field("print", "true")).await.json();
    assert_eq!((&reply["print_started"], &reply["print_queued"]), (&json!(false), &json!(true)));
    assert_eq!(names(&status(&server).await), ["new.gcode"]);
}

#[tokio::test]
async fn the_next_job_waits_for_a_clear_bed() {
    let server = with_files("[job_queue]\nautomatic_transition: true\nconfirm_bed_clear: true\n").await;
    add(&server, "a.gcode,b.gcode").await;
    server.http().post("/server/job_queue/start").await.result();
    let waits = |status: &Value| status["awaits_bed_clear"] == true;
    let waiting = until("the gate", || status(&server), waits).await;
    assert_eq!((names(&waiting), &waiting["queue_state"]), (vec!["b.gcode"], &json!("ready")));
    server.http().post("/server/job_queue/bed_clear").await.result();
    finished(&server, 2).await;
}

#[tokio::test]
async fn transition_gcode_that_fails_pauses_the_queue_and_starts_nothing() {
    let config = "[job_queue]\nautomatic_transition: true\njob_transition_gcode:\n  M117 sweeping\n  G1 X9999\n";
    let server = with_files(config).await;
    add(&server, "a.gcode,b.gcode").await;
    server.http().post("/server/job_queue/start").await.result();
    finished(&server, 1).await;
    let kept = in_state(&server, "paused", 1).await;
    assert_eq!(names(&kept), ["b.gcode"], "the job that could not follow stays first");
    assert_eq!(finished(&server, 1).await.len(), 1);
    // Somebody looked: a start by hand goes without the transition.
    server.http().post("/server/job_queue/start").await.result();
    assert_eq!(finished(&server, 2).await[1]["filename"], "b.gcode");
    in_state(&server, "paused", 0).await;
}

#[tokio::test]
async fn a_pause_during_the_delay_takes_the_load_back() {
    let server = with_files("[job_queue]\nautomatic_transition: true\njob_transition_delay: 600\n").await;
    add(&server, "a.gcode,b.gcode,c.gcode").await;
    server.http().post("/server/job_queue/start").await.result();
    finished(&server, 1).await;
    in_state(&server, "loading", 2).await;
    // What happens meanwhile changes the order, not the state; a start finds a load under way.
    let last = status(&server).await["queued_jobs"][1]["job_id"].as_str().unwrap().to_owned();
    let jumped = server.http().post(&format!("/server/job_queue/jump?job_id={last}")).await.result();
    assert_eq!((names(&jumped), &jumped["queue_state"]), (vec!["c.gcode", "b.gcode"], &json!("loading")));
    assert_eq!(server.http().post("/server/job_queue/start").await.result()["queue_state"], "loading");
    assert_eq!(server.http().post("/server/job_queue/pause").await.result()["queue_state"], "paused");
    // The pause is remembered: a print that somebody starts and jobs that are added do not wake the queue.
    print(&server, "a.gcode").await;
    add(&server, "a.gcode").await;
    finished(&server, 2).await;
    assert_eq!(names(&in_state(&server, "paused", 3).await), ["c.gcode", "b.gcode", "a.gcode"]);
    server.http().post("/server/job_queue/start").await.result();
    assert_eq!(finished(&server, 3).await[2]["filename"], "c.gcode");
}

#[tokio::test]
async fn a_cancelled_or_lost_job_pauses_the_queue() {
    let mut server = with_files("[job_queue]\nautomatic_transition: true\n").await;
    add(&server, "long.gcode,a.gcode,b.gcode").await;
    server.http().post("/server/job_queue/start").await.result();
    in_state(&server, "ready", 2).await;
    for verb in ["pause", "resume", "pause"] {
        server.http().post(&format!("/printer/print/{verb}")).await.result();
    }
    assert_eq!(status(&server).await["queue_state"], "ready", "a paused print is still a print");
    server.http().post("/printer/print/cancel").await.result();
    assert_eq!(names(&in_state(&server, "paused", 2).await), ["a.gcode", "b.gcode"]);
    assert_eq!(finished(&server, 1).await[0]["status"], "cancelled");
    // A shutdown pauses too, and the job that was lost does not come back.
    add(&server, "long.gcode").await;
    let long = status(&server).await["queued_jobs"][2]["job_id"].as_str().unwrap().to_owned();
    server.http().post(&format!("/server/job_queue/jump?job_id={long}")).await.result();
    server.http().post("/server/job_queue/start").await.result();
    in_state(&server, "ready", 2).await;
    in_progress(&server).await;
    server.http().post("/printer/emergency_stop").await.result();
    assert_eq!(names(&in_state(&server, "paused", 2).await), ["a.gcode", "b.gcode"]);
    assert_eq!(finished(&server, 2).await[1]["status"], "klippy_shutdown");
    server.restart().await;
    assert_eq!(names(&status(&server).await), ["a.gcode", "b.gcode"]);
}

#[tokio::test]
async fn a_file_replaced_while_it_waits_is_printed_as_it_is_now() {
    let server = with_files("").await;
    add(&server, "a.gcode").await;
    server.upload("a.gcode", &job(4)).await;
    server.http().post("/server/job_queue/start").await.result();
    let printed = finished(&server, 1).await;
    assert_eq!((&printed[0]["status"], &printed[0]["exists"]), (&json!("completed"), &json!(true)));
    let size = server.http().get("/server/files/metadata?filename=a.gcode").await.result()["size"].clone();
    assert_eq!(printed[0]["metadata"]["size"], size);
}
