//! Devices for tests, written from the protocol facts. They check what they are asked and keep a state.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Got {
    pub(crate) method: String,
    /// Path and query, as on the wire.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// The body as it came, when it is no text.
    pub(crate) bytes: Vec<u8>,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// 200 with JSON.
    Json(Value),
    /// Status, header lines, body.
    Raw(u16, String, String),
    /// 200 with header lines and octets.
    Octets(String, Vec<u8>),
    /// The bytes, and the connection is closed: no HTTP, or half of it.
    Bytes(&'static str),
    /// Nothing, for ever.
    Silence,
}

type Answers = Box<dyn FnMut(&Got) -> Reply + Send>;

/// A device that speaks HTTP.
pub(crate) struct WebEmulator {
    pub(crate) port: u16,
    got: Arc<Mutex<Vec<Got>>>,
    answers: Arc<Mutex<Answers>>,
    task: JoinHandle<()>,
}

impl WebEmulator {
    pub(crate) async fn start(answers: impl FnMut(&Got) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Arc::<Mutex<Vec<Got>>>::default();
        let answers: Arc<Mutex<Answers>> = Arc::new(Mutex::new(Box::new(answers)));
        let (seen, say) = (got.clone(), answers.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, seen.clone(), say.clone()));
            }
        });
        Self { port, got, answers, task }
    }

    /// What it is from now on.
    pub(crate) fn become_one_that(&self, answers: impl FnMut(&Got) -> Reply + Send + 'static) {
        *self.answers.lock() = Box::new(answers);
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().clone()
    }

    /// Method and target of all requests.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.got.lock().iter().map(Got::line).collect()
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for WebEmulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, got: Arc<Mutex<Vec<Got>>>, answers: Arc<Mutex<Answers>>) {
    let Some(request) = read(&mut stream).await else { return };
    let reply = (answers.lock())(&request);
    got.lock().push(request);
    let bytes = match reply {
        Reply::Json(value) => response(200, "Content-Type: application/json\r\n", value.to_string().as_bytes()),
        Reply::Raw(status, headers, body) => response(status, &headers, body.as_bytes()),
        Reply::Octets(headers, body) => response(200, &headers, &body),
        Reply::Bytes(bytes) => bytes.as_bytes().to_vec(),
        Reply::Silence => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            return;
        }
    };
    let _ = stream.write_all(&bytes).await;
    let _ = stream.shutdown().await;
}

fn response(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

async fn read(stream: &mut TcpStream) -> Option<Got> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut got = Got { method, target, headers, ..Got::default() };
    let length = got.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < end + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    got.bytes = bytes.split_off(end + 4);
    got.body = String::from_utf8_lossy(&got.bytes).into_owned();
    Some(got)
}

/// A plug, or a strip with some sockets, behind the chained XOR.
pub(crate) struct PlugEmulator {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl PlugEmulator {
    /// Without sockets it is a single plug.
    pub(crate) async fn start(sockets: usize) -> Self {
        let states = Arc::new(Mutex::new(vec![false; sockets.max(1)]));
        Self::serve(move |question| Some(plug_frame(plug_answer(&question, sockets, &mut states.lock()).to_string().as_bytes()))).await
    }

    /// One that always answers with these bytes and hangs up.
    pub(crate) async fn that_answers(bytes: Vec<u8>) -> Self {
        Self::serve(move |_| Some(bytes.clone())).await
    }

    async fn serve(answer: impl Fn(Value) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let (seen, answer) = (asked.clone(), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, answer) = (seen.clone(), answer.clone());
                tokio::spawn(async move {
                    // Clients of others keep the connection for several questions.
                    while let Ok(length) = stream.read_u32().await {
                        let mut question = vec![0; length as usize];
                        stream.read_exact(&mut question).await.unwrap();
                        let question: Value = serde_json::from_slice(&unchain(&question)).unwrap();
                        seen.lock().push(question.clone());
                        let Some(bytes) = answer(question) else { return };
                        let is_whole = bytes.len() > 4 && bytes.len() == 4 + u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
                        stream.write_all(&bytes).await.unwrap();
                        if !is_whole {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, asked, task }
    }

    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().clone()
    }
}

impl Drop for PlugEmulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers each module that is asked by itself.
pub(crate) fn plug_answer(question: &Value, sockets: usize, states: &mut [bool]) -> Value {
    let chosen = question["context"]["child_ids"][0].as_str().map_or(0, |id| id[2..].parse::<usize>().unwrap());
    let modules = question.as_object().unwrap().iter().filter(|(module, _)| *module != "context");
    let answers = modules.map(|(module, asked)| {
        let answer = match module.as_str() {
            "system" if asked.get("get_sysinfo").is_some() => json!({"get_sysinfo": plug_info(sockets, states)}),
            "system" if asked.get("set_relay_state").is_some() => {
                states[chosen] = asked["set_relay_state"]["state"] == 1;
                json!({"set_relay_state": {"err_code": 0}})
            }
            "count_down" if asked.get("delete_all_rules").is_some() => json!({"delete_all_rules": {"err_code": 0}}),
            "count_down" if asked["add_rule"]["enable"] == 1 => json!({"add_rule": {"id": "1", "err_code": 0}}),
            _ => json!({"err_code": -1, "err_msg": "module not support"}),
        };
        (module.clone(), answer)
    });
    answers.collect()
}

fn plug_info(sockets: usize, states: &[bool]) -> Value {
    let mut info = json!({"sw_ver": "1.0.0 Build 1", "hw_ver": "1.0", "model": "HS100(EU)", "type": "IOT.SMARTPLUGSWITCH", "deviceId": "00", "hwId": "00",
        "oemId": "00", "alias": "printer", "dev_name": "plug", "mac": "00:00:00:00:00:01", "feature": "TIM", "rssi": -50, "led_off": 0, "err_code": 0});
    if sockets == 0 {
        info["relay_state"] = u8::from(states[0]).into();
        info["on_time"] = 0.into();
    } else {
        let child = |(number, state): (usize, &bool)| json!({"id": format!("00{number}"), "state": u8::from(*state), "alias": format!("s{number}")});
        info["children"] = states.iter().enumerate().map(child).collect();
        info["child_num"] = sockets.into();
    }
    info
}

/// A frame as the vendor's devices send it; written apart from the driver's code.
pub(crate) fn plug_frame(plain: &[u8]) -> Vec<u8> {
    let mut frame = (plain.len() as u32).to_be_bytes().to_vec();
    let mut key = 171;
    for byte in plain {
        key ^= *byte;
        frame.push(key);
    }
    frame
}

fn unchain(bytes: &[u8]) -> Vec<u8> {
    let mut key = 171;
    let mut plain = Vec::new();
    for byte in bytes {
        plain.push(*byte ^ key);
        key = *byte;
    }
    plain
}

/// What a script says that uses the client of plugs that others wrote (python-kasa), and what it complains about. None, with a line that says
/// so, where that is not installed.
pub(crate) async fn said_by_python_kasa(script: &str, ports: &[u16]) -> Option<(String, String)> {
    let python = || tokio::process::Command::new("python3");
    let probe = python().args(["-c", "from kasa.transports import KlapTransportV2"]).output().await;
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: needs Python's package python-kasa");
        return None;
    }
    let output = python().args(["-c", script]).args(ports.iter().map(ToString::to_string)).output().await.unwrap();
    Some((String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr).into_owned()))
}
