//! A scripted firmware host for tests, over any stream, and a session that talks to it in memory.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use protocol::Frame;
use protocol::status::{Selection, StatusDiff};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::event::HostEvent;
use crate::frame::{END, MAX_FRAME_BYTES, Splitter};
use crate::handle::FwHost;
use crate::options::Options;
use crate::quirks::Quirks;
use crate::session::{Ending, Session};
use crate::sink::StatusSink;
use crate::socket::Change;

/// A request that the host got.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl Asked {
    fn template(&self) -> String {
        self.params["response_template"]["method"].as_str().unwrap().to_owned()
    }
}

/// The host's end of a connection.
pub(crate) struct FakeHost<S> {
    stream: S,
    splitter: Splitter,
    pub(crate) state: &'static str,
    /// Objects with their fields.
    pub(crate) objects: Value,
    /// Template methods that the client gave.
    pub(crate) status_method: String,
    pub(crate) output_method: String,
    /// Everything that was asked.
    pub(crate) log: Vec<Asked>,
}

/// What the fake printer has unless a test says otherwise.
pub(crate) fn printer() -> Value {
    json!({
        "webhooks": {"state": "ready", "state_message": "Printer is ready"},
        "print_stats": {"state": "standby", "filename": "", "message": "", "total_duration": 0.0, "print_duration": 0.0, "filament_used": 0.0},
        "heaters": {"available_sensors": ["extruder"], "available_monitors": ["tmc x"]},
        "extruder": {"temperature": 21.5, "target": 0.0, "power": 0.0},
        "tmc x": {"temperature": null},
        "toolhead": {"position": [0.0, 0.0, 0.0, 0.0], "homed_axes": ""},
        "virtual_sdcard": {"progress": 0.0},
        "pause_resume": {"is_paused": false},
    })
}

impl<S: AsyncRead + AsyncWrite + Unpin> FakeHost<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            splitter: Splitter::new(MAX_FRAME_BYTES),
            state: "ready",
            objects: printer(),
            status_method: String::new(),
            output_method: String::new(),
            log: Vec::new(),
        }
    }

    /// The next request; none at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Asked> {
        loop {
            if let Some(frame) = self.splitter.next_frame().unwrap() {
                let message: Value = serde_json::from_slice(frame).unwrap();
                let asked = Asked {
                    id: message["id"].as_u64().unwrap(),
                    method: message["method"].as_str().unwrap().into(),
                    params: message["params"].clone(),
                };
                match asked.method.as_str() {
                    "objects/subscribe" => self.status_method = asked.template(),
                    "gcode/subscribe_output" => self.output_method = asked.template(),
                    _ => {}
                }
                self.log.push(asked.clone());
                return Some(asked);
            }
            if self.stream.read_buf(self.splitter.buffer()).await.ok()? == 0 {
                return None;
            }
        }
    }

    pub(crate) async fn expect(&mut self, method: &str) -> Asked {
        let asked = self.next().await.unwrap();
        assert_eq!(asked.method, method);
        asked
    }

    pub(crate) async fn send(&mut self, text: &str) {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(END);
        let _ = self.stream.write_all(&bytes).await;
    }

    pub(crate) async fn send_unfinished(&mut self, text: &str) {
        let _ = self.stream.write_all(text.as_bytes()).await;
    }

    pub(crate) async fn answer(&mut self, asked: &Asked, result: &str) {
        self.send(&format!(r#"{{"id":{},"result":{result}}}"#, asked.id)).await;
    }

    pub(crate) async fn refuse(&mut self, asked: &Asked, text: &str) {
        self.send(&json!({"id": asked.id, "error": {"error": "WebRequestError", "message": text}}).to_string()).await;
    }

    /// Changes fields of the printer and sends them as a status update.
    pub(crate) async fn push(&mut self, status: Value) {
        for (object, fields) in status.as_object().unwrap() {
            for (field, value) in fields.as_object().unwrap() {
                self.objects[object][field] = value.clone();
            }
        }
        let method = self.status_method.clone();
        self.send(&json!({"params": {"eventtime": 2.5, "status": status}, "method": method}).to_string()).await;
    }

    pub(crate) async fn output(&mut self, line: &str) {
        let method = self.output_method.clone();
        self.send(&json!({"method": method, "params": {"response": line}}).to_string()).await;
    }

    /// What a normal host answers.
    pub(crate) fn result(&self, asked: &Asked) -> Value {
        match asked.method.as_str() {
            "info" => json!({"state": self.state, "state_message": format!("it is {}", self.state), "klipper_path": "/k"}),
            "list_endpoints" => json!({"endpoints": ["info", "gcode/script", "emergency_stop"]}),
            "objects/list" => json!({"objects": self.objects.as_object().unwrap().keys().collect::<Vec<_>>()}),
            "objects/query" | "objects/subscribe" => json!({"eventtime": 1.5, "status": self.status(&asked.params["objects"])}),
            _ => json!({}),
        }
    }

    fn status(&self, wanted: &Value) -> Value {
        let mut status = Map::new();
        for (object, fields) in wanted.as_object().unwrap() {
            let fields = match (self.objects.get(object), fields.as_array()) {
                (None, _) => json!({}),
                (Some(known), None) => known.clone(),
                (Some(known), Some(names)) => {
                    names.iter().map(|name| (name.as_str().unwrap().to_owned(), known[name.as_str().unwrap()].clone())).collect()
                }
            };
            status.insert(object.clone(), fields);
        }
        status.into()
    }

    pub(crate) async fn answer_normally(&mut self, asked: &Asked) {
        let result = self.result(asked).to_string();
        self.answer(asked, &result).await;
    }

    /// Answers everything until this is asked.
    pub(crate) async fn answer_until(&mut self, method: &str) -> Asked {
        loop {
            let asked = self.next().await.unwrap();
            if asked.method == method {
                return asked;
            }
            self.answer_normally(&asked).await;
        }
    }

    /// Plays the whole start sequence of a ready host.
    pub(crate) async fn bring_up(&mut self) {
        let last = self.answer_until("objects/subscribe").await;
        self.answer_normally(&last).await;
    }

    /// Answers everything until nothing more comes. For virtual time: a busy machine may be slower than this waits.
    pub(crate) async fn answer_all(&mut self) {
        while let Ok(Some(asked)) = timeout(Duration::from_millis(20), self.next()).await {
            self.answer_normally(&asked).await;
        }
    }

    /// Answers everything until the other side closes.
    pub(crate) async fn serve(&mut self) {
        while let Some(asked) = self.next().await {
            self.answer_normally(&asked).await;
        }
    }

    pub(crate) fn asked(&self, method: &str) -> Vec<Asked> {
        self.log.iter().filter(|asked| asked.method == method).cloned().collect()
    }
}

/// A session over memory.
pub(crate) struct Rig {
    pub(crate) host: FwHost,
    pub(crate) fake: FakeHost<DuplexStream>,
    pub(crate) events: Events,
    pub(crate) changes: mpsc::Sender<Change>,
    pub(crate) ending: JoinHandle<Ending>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let host = FwHost::new(Options::new("/nowhere", "Bowsprit", "v1.0"));
        let events = Events::of(&host);
        Self::with(host, events)
    }

    /// Another connection of the same host.
    pub(crate) fn with(host: FwHost, events: Events) -> Self {
        let (ours, theirs) = duplex(1024 * 1024);
        let (changes, mut changed) = mpsc::channel(1);
        let shared = host.shared.clone();
        let ending = tokio::spawn(async move {
            let (reader, writer) = split(ours);
            Session::new(&shared, &mut Quirks::default()).serve(reader, writer, &mut changed).await
        });
        Self { host, fake: FakeHost::new(theirs), events, changes, ending }
    }

    /// A session that went through the start sequence with a ready host.
    pub(crate) async fn ready() -> Self {
        let mut rig = Self::new();
        rig.fake.answer_all().await;
        assert_eq!(rig.host.status().state, protocol::FwhostState::Ready);
        rig
    }

    /// Queries while the host answers everything.
    pub(crate) async fn query(&mut self, json: &str) -> String {
        let wanted = selection(json);
        let (answer, ()) = tokio::join!(self.host.query(&wanted), self.fake.answer_all());
        String::from_utf8(answer.unwrap()).unwrap()
    }

    /// Ends the connection from the host's side.
    pub(crate) async fn close(self) -> (FwHost, Events, Ending) {
        drop(self.fake);
        (self.host, self.events, self.ending.await.unwrap())
    }
}

/// What listeners were told, as text.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    pub(crate) fn of(host: &FwHost) -> Self {
        let events = Self::default();
        let log = events.0.clone();
        host.on_event(move |event| {
            log.lock().push(match event {
                HostEvent::PrintStats(change) => format!("Print({} {})", change.now.state.as_str(), change.now.filename),
                HostEvent::GcodeResponse(line) => format!("Gcode({line})"),
                other => format!("{other:?}"),
            });
        });
        events
    }

    /// Takes what came since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.0.lock().iter().filter(|event| *event == name).count()
    }
}

/// Remembers frames and resets.
#[derive(Default)]
pub(crate) struct Probe {
    pub(crate) frames: Mutex<Vec<Frame>>,
    pub(crate) resets: Mutex<usize>,
}

impl Probe {
    pub(crate) fn texts(&self) -> Vec<String> {
        self.frames.lock().iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
    }
}

impl StatusSink for Probe {
    fn push(&self, frame: &Frame, _: &Arc<StatusDiff>, _: &Arc<Selection>) {
        self.frames.lock().push(frame.clone());
    }
    fn reset(&self) {
        *self.resets.lock() += 1;
    }
}

pub(crate) fn selection(json: &str) -> Selection {
    Selection::from_json(json).unwrap()
}

/// Lets everything happen that is due without time passing.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Waits for a condition; fails after ten seconds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(timeout(Duration::from_secs(10), wait).await.is_ok(), "never: {what}");
}
