//! The link against the simulated firmware host, over a real unix socket: start, jobs, restarts, and everything that goes wrong.

// Helpers of tests are tests, too.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use fwhost::{FwHost, HostEvent, Options, Restart, StatusSink, SubscriberId, Timing};
use parking_lot::Mutex;
use protocol::status::{Selection, StatusDiff};
use protocol::{Frame, FwhostState};
use serde_json::{Value, json};
use simulator::{Control, Fault, Simulator};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A simulated printer with a running link to it.
struct Printer {
    folder: TempDir,
    host: FwHost,
    events: Arc<Mutex<Vec<String>>>,
    control: Control,
    _simulator: Simulator,
    _stop: tokio_util::sync::DropGuard,
}

/// Short enough for tests, long enough for a busy machine.
fn timing() -> Timing {
    let ms = Duration::from_millis;
    Timing { poll: ms(10), backoff_max: ms(50), heartbeat: ms(100), info_timeout: ms(400), probe_timeout: ms(200), ..Timing::default() }
}

impl Printer {
    async fn start(faults: Vec<Fault>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("comms")).unwrap();
        std::fs::create_dir_all(folder.path().join("gcodes")).unwrap();
        let socket = folder.path().join("comms/fwhost.sock");
        let quick = Duration::from_millis(20);
        let options = simulator::Options { speed: 2000.0, startup: quick, restart_gap: quick, faults, ..simulator::Options::new(&socket) };
        let simulator = Simulator::start(options).await.unwrap();
        let host = FwHost::new(Options { timing: timing(), ..Options::new(&socket, "Bowsprit", "v1") });
        let events: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = events.clone();
        host.on_event(move |event| {
            log.lock().push(match event {
                HostEvent::PrintStats(change) => format!("{} {}", change.now.state.as_str(), change.now.filename),
                HostEvent::GcodeResponse(line) => format!("> {line}"),
                other => format!("{other:?}"),
            });
        });
        let stop = CancellationToken::new();
        let (runner, token) = (host.clone(), stop.clone());
        tokio::spawn(async move { runner.run(token).await });
        Self { folder, host, events, control: simulator.control(), _simulator: simulator, _stop: stop.drop_guard() }
    }

    async fn ready() -> Self {
        let printer = Self::start(vec![]).await;
        printer.reaches(FwhostState::Ready).await;
        printer
    }

    fn file(&self, name: &str, gcode: &str) {
        std::fs::write(self.folder.path().join("gcodes").join(name), gcode).unwrap();
    }

    fn count(&self, event: &str) -> usize {
        self.events.lock().iter().filter(|seen| *seen == event).count()
    }

    /// Events without output lines.
    fn story(&self) -> Vec<String> {
        self.events.lock().iter().filter(|event| !event.starts_with('>')).cloned().collect()
    }

    async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        for _ in 0..2000 {
            if condition(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("never: {what}; state {}; {:?}", self.host.status().state, self.events.lock());
    }

    async fn reaches(&self, state: FwhostState) {
        self.until(state.as_str(), |printer| printer.host.status().state == state).await;
    }

    async fn comes_back(&self) {
        self.until("gone", |printer| printer.count("Disconnected") == 1).await;
        let _ = self.control.clear_all().await;
        self.until("ready again", |printer| printer.host.status().state == FwhostState::Ready && printer.count("Ready") >= 2).await;
    }
}

/// Keeps the status that it was told.
#[derive(Default)]
struct Client(Mutex<Value>);

impl Client {
    fn apply(&self, status: &Value) {
        let mut image = self.0.lock();
        for (object, fields) in status.as_object().unwrap() {
            for (field, value) in fields.as_object().unwrap() {
                image[object][field] = value.clone();
            }
        }
    }
}

impl StatusSink for Client {
    fn push(&self, frame: &Frame, _: &Arc<StatusDiff>, _: &Arc<Selection>) {
        let message: Value = serde_json::from_slice(frame).unwrap();
        self.apply(&message["params"][0]);
    }
}

fn selection(json: &str) -> Selection {
    Selection::from_json(json).unwrap()
}

fn status(answer: &[u8]) -> Value {
    serde_json::from_slice::<Value>(answer).unwrap()["status"].take()
}

#[tokio::test]
async fn a_job_from_start_to_end() {
    let printer = Printer::ready().await;
    let view = printer.host.status();
    assert!(view.missing_requirements.is_empty(), "{:?}", view.missing_requirements);
    assert!(view.endpoints.iter().any(|name| &**name == "gcode/script"));
    assert!(view.info.as_deref().unwrap().contains("software_version"));
    assert!(printer.host.temperature_store(false).contains("\"extruder\":{\"temperatures\":["));

    let client = Arc::new(Client::default());
    let wanted = selection(r#"{"print_stats":null,"toolhead":["homed_axes","position"],"virtual_sdcard":["progress"]}"#);
    let answer = printer.host.subscribe(SubscriberId(1), client.clone(), wanted.clone()).await.unwrap();
    client.apply(&status(&answer));

    printer.file("a.gcode", "G28\nG1 X50 Y50 Z5 F6000\nG4 P1000000\nG1 X60\nM117 done\n");
    printer.host.gcode("SDCARD_PRINT_FILE FILENAME=\"a.gcode\"", true).await.unwrap();
    printer.until("complete", |printer| printer.count("complete a.gcode") == 1).await;
    assert_eq!(printer.story(), ["Connected", "standby ", "Started(Ready)", "Ready", "printing a.gcode", "complete a.gcode"]);
    assert_eq!(printer.count("> Done printing file"), 1);
    assert!(printer.host.gcode_store(None).iter().any(|entry| entry.message.starts_with("SDCARD_PRINT_FILE")));
    // Read your own writes: the query shows what the script did, and nobody was told anything else.
    printer.host.gcode("G28 X", false).await.unwrap();
    let truth = status(&printer.host.query(&wanted).await.unwrap());
    assert_eq!(truth["toolhead"]["homed_axes"], "xyz");
    let seen = client.0.lock().clone();
    assert_eq!(seen, truth);

    let error = printer.host.gcode("G1 X99999", false).await.unwrap_err();
    assert!(error.message.contains("out of range"), "{}", error.message);
    assert_eq!(&*printer.host.request("gcode/script", Some(&raw(r#"{"script":"M400"}"#))).await.unwrap(), "\"ok\"");
    let list = printer.host.request("objects/list", None).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap()["objects"].as_array().unwrap().len(), view.objects.len());
}

fn raw(json: &str) -> Box<serde_json::value::RawValue> {
    serde_json::value::RawValue::from_string(json.into()).unwrap()
}

#[tokio::test]
async fn restarts_and_remote_methods() {
    let printer = Printer::ready().await;
    let calls: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = calls.clone();
    printer.host.register_remote_method("notify", move |params| log.lock().push(serde_json::from_str(params.get()).unwrap())).unwrap();
    printer.host.restart_gcode(Restart::Firmware).await.unwrap();
    printer.until("ready again", |printer| printer.count("Ready") == 2).await;
    assert_eq!(printer.count("Disconnected"), 1);
    printer.host.gcode("CALL_REMOTE METHOD=notify NAME=bell", false).await.unwrap();
    printer.until("called", |_| !calls.lock().is_empty()).await;
    assert_eq!(calls.lock()[0]["name"], "bell");
}

#[tokio::test]
async fn emergency_stop_and_recovery() {
    let printer = Printer::ready().await;
    printer.host.emergency_stop().await.unwrap();
    printer.until("told", |printer| printer.count("Shutdown") == 1).await;
    assert_eq!(printer.host.status().state, FwhostState::Shutdown);
    assert!(printer.host.status().state_message.contains("Shutdown due to"));
    printer.host.restart_gcode(Restart::Firmware).await.unwrap();
    printer.until("ready again", |printer| printer.count("Ready") == 2).await;
    assert_eq!(printer.count("Shutdown"), 1);
}

#[tokio::test]
async fn a_configuration_error_and_its_repair() {
    let printer = Printer::start(vec![Fault::ConfigError]).await;
    printer.reaches(FwhostState::Error).await;
    assert_eq!(printer.story(), ["Connected", "Started(Error)"]);
    let webhooks = status(&printer.host.query(&selection(r#"{"webhooks":["state"]}"#)).await.unwrap());
    assert_eq!(webhooks, json!({"webhooks": {"state": "error"}}));
    printer.control.clear_all().await.unwrap();
    printer.host.restart_gcode(Restart::Host).await.unwrap();
    printer.reaches(FwhostState::Ready).await;
}

#[tokio::test]
async fn a_slow_start_is_startup() {
    let printer = Printer::start(vec![Fault::Startup { seconds: 0.3 }]).await;
    printer.reaches(FwhostState::Startup).await;
    assert_eq!(printer.story(), ["Connected"]);
    printer.reaches(FwhostState::Ready).await;
}

#[tokio::test]
async fn a_host_that_dies_and_lives_again() {
    let printer = Printer::ready().await;
    printer.control.inject(Fault::Die).await.unwrap();
    printer.reaches(FwhostState::Disconnected).await;
    let error = printer.host.gcode("M117", false).await.unwrap_err();
    assert_eq!(&*error.message, "Klippy Host not connected");
    printer.control.revive().await.unwrap();
    printer.comes_back().await;
}

#[tokio::test]
async fn a_host_that_hangs() {
    let printer = Printer::ready().await;
    printer.control.inject(Fault::Hang { seconds: 0.0 }).await.unwrap();
    printer.comes_back().await;
}

#[tokio::test]
async fn a_host_that_sends_rubbish() {
    let printer = Printer::ready().await;
    printer.control.inject(Fault::InvalidJson).await.unwrap();
    printer.comes_back().await;
}

#[tokio::test]
async fn a_host_that_stops_in_the_middle_of_a_message() {
    let printer = Printer::ready().await;
    printer.control.inject(Fault::HalfMessage).await.unwrap();
    printer.comes_back().await;
}

#[tokio::test]
async fn a_zombie() {
    let printer = Printer::ready().await;
    printer.control.inject(Fault::Zombie).await.unwrap();
    let waiting = printer.host.clone();
    let restart = tokio::spawn(async move { waiting.restart_gcode(Restart::Firmware).await });
    printer.comes_back().await;
    restart.await.unwrap().unwrap();
}

#[tokio::test]
async fn odd_but_honest_hosts() {
    let printer = Printer::ready().await;
    printer.control.inject(Fault::NonFinite).await.unwrap();
    printer.control.inject(Fault::HugeReplies { bytes: 1024 * 1024 }).await.unwrap();
    for _ in 0..3 {
        let answer = printer.host.request("objects/query", Some(&raw(r#"{"objects":{"extruder":null,"heater_bed":null}}"#))).await.unwrap();
        assert!(serde_json::from_str::<Value>(&answer).unwrap()["status"]["extruder"].is_object());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(printer.count("Disconnected"), 0);
}
