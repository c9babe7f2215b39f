//! LED strips against an emulated controller, which checks what it is sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::server::free_port;
use crate::harness::{TestServer, wait};

/// How the controller behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Fine,
    Silent,
    Redirects,
    Answers(u16, &'static str),
}

/// An emulated controller: takes `POST /json` with JSON and nothing else.
struct Controller {
    port: u16,
    mood: Arc<Mutex<Mood>>,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Controller {
    async fn start() -> Self {
        Self::start_at(free_port()).await
    }

    async fn start_at(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let (mood, bodies) = (Arc::new(Mutex::new(Mood::Fine)), Arc::<Mutex<Vec<String>>>::default());
        let shared = (mood.clone(), bodies.clone());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, shared.clone()));
            }
        });
        Self { port, mood, bodies }
    }

    fn be(&self, mood: Mood) {
        *self.mood.lock() = mood;
    }

    /// What was sent since the last look.
    fn sent(&self) -> Vec<String> {
        std::mem::take(&mut self.bodies.lock())
    }
}

async fn serve(socket: TcpStream, (mood, bodies): (Arc<Mutex<Mood>>, Arc<Mutex<Vec<String>>>)) -> Option<()> {
    let mut socket = BufReader::new(socket);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            if socket.read_line(&mut head).await.ok()? == 0 {
                return None;
            }
            if let Some(text) = head[start..].to_ascii_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await.ok()?;
        let body = String::from_utf8(body).unwrap();
        let is_right =
            head.starts_with("POST /json HTTP/1.1\r\n") && head.to_ascii_lowercase().contains("content-type: application/json\r\n");
        let is_json = serde_json::from_str::<Value>(&body).is_ok_and(|body| body.is_object());
        let mood = *mood.lock();
        let (status, answer) = match mood {
            Mood::Silent => return std::future::pending().await,
            Mood::Redirects => (302, String::new()),
            Mood::Answers(status, text) => (status, text.to_owned()),
            Mood::Fine if !is_right || !is_json => (400, r#"{"error":9}"#.to_owned()),
            Mood::Fine if body == r#"{"v":true}"# => (200, json!({"state": {"on": true, "bri": 128}, "info": {"ver": "0.14"}}).to_string()),
            Mood::Fine => (200, r#"{"success":true}"#.to_owned()),
        };
        bodies.lock().push(body);
        let place = if mood == Mood::Redirects { "Location: http://127.0.0.1:1/json\r\n" } else { "" };
        let length = answer.len();
        let answer = format!("HTTP/1.1 {status} X\r\n{place}Content-Length: {length}\r\nContent-Type: application/json\r\n\r\n{answer}");
        socket.get_mut().write_all(answer.as_bytes()).await.ok()?;
    }
}

fn section(name: &str, port: u16, more: &str) -> String {
    format!("[wled {name}]\naddress: 127.0.0.1\nport: {port}\ntimeout: 0.3\n{more}\n")
}

async fn lit(server: &TestServer, name: &str) -> Value {
    let look = || async { server.http().get("/machine/led/strips").await.result()["strips"][name].take() };
    wait::until("the strip is lit", look, |strip| strip["status"] == "on").await
}

#[tokio::test]
async fn a_strip_is_lit_changed_and_darkened() {
    let controller = Controller::start().await;
    let config = section("desk", controller.port, "chain_count: 3\ninitial_red: 1\ninitial_green: 0\ninitial_blue: 0\ninitial_white: 0");
    let server = TestServer::builder().without_printer().config(&config).start().await;
    let status = |status: &str, preset: i32, brightness: i32, intensity: i32, speed: i32| {
        json!({"desk": {"strip": "desk", "status": status, "chain_count": 3, "preset": preset, "brightness": brightness,
            "intensity": intensity, "speed": speed, "error": null}})
    };
    lit(&server, "desk").await;
    let colours = r#"{"on":true,"tt":0,"bri":255,"seg":{"bri":255,"i":[0,3,[255,0,0,0]]}}"#;
    assert_eq!(controller.sent(), [r#"{"v":true}"#, colours]);
    let mut ws = server.ws().await;
    let change = json!({"strip": "desk", "action": "on", "preset": 4, "brightness": 9, "intensity": 8, "speed": 0});
    assert_eq!(ws.ok("machine.led.post_strip", change).await, status("on", 4, 9, 8, 0));
    assert_eq!(ws.notified("notify_led_changed").await[0], status("on", 4, 9, 8, 0)["desk"]);
    assert_eq!(controller.sent(), [r#"{"on":true,"ps":4}"#, r#"{"tt":0,"bri":9,"seg":{"bri":9,"ix":8,"sx":0}}"#]);
    let http = server.http();
    let off = http.post("/machine/wled/strip?strip=desk&action=toggle").await.result();
    assert_eq!((off, controller.sent()), (status("off", 4, 9, 8, 0), vec![r#"{"on":false}"#.to_owned()]));
    let control = http.post("/machine/led/strip?strip=desk&action=control&speed=3").await.result();
    assert_eq!((control, controller.sent()), (status("off", 4, 9, 8, 3), vec![]), "kept, not sent");
    let on = http.post("/machine/led/on?desk&none").await.result();
    assert_eq!((&on["desk"], &on["none"]), (&status("on", -1, 255, -1, -1)["desk"], &json!({"error": "strip_not_found"})));
    assert_eq!(controller.sent(), [colours]);
    assert_eq!(ws.ok("machine.wled.get_strip", json!({"strip": "desk"})).await, status("on", -1, 255, -1, -1));
    assert!(server.info().await["components"].as_array().unwrap().contains(&json!("wled")));
}

#[tokio::test]
async fn wrong_requests_are_named_and_send_nothing() {
    let controller = Controller::start().await;
    let server = TestServer::builder().without_printer().config(&section("desk", controller.port, "initial_preset: 7")).start().await;
    lit(&server, "desk").await;
    assert_eq!(controller.sent(), [r#"{"v":true}"#, r#"{"on":true,"ps":7}"#]);
    for (target, expected) in [
        ("strip?strip=none&action=on", "No valid strip named none"),
        ("strip?strip=desk&action=blink", "Invalid value for 'action': blink, expected on, off, toggle or control"),
        ("strip?strip=desk&action=control", "Expected at least one of brightness, intensity and speed"),
        ("strip?strip=desk&action=on&brightness=0", "Invalid value for 'brightness': expected 1 to 255"),
        ("strip?strip=desk&action=control&brightness=256", "Invalid value for 'brightness': expected 1 to 255"),
        ("strip?strip=desk&action=control&speed=-1", "Invalid value for 'speed': expected 0 to 255"),
        ("strip?strip=desk&action=on&preset=-2", "Invalid value for 'preset'"),
        ("on", "No arguments provided"),
    ] {
        let (status, message) = server.http().post(&format!("/machine/led/{target}")).await.error();
        assert!(status == 400 && message.starts_with(expected), "{target}: {status} {message}");
    }
    assert_eq!(server.http().get("/machine/led/status").await.status, 400);
    assert_eq!(controller.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn a_bad_strip_says_why_delays_nobody_and_comes_back() {
    let (good, bad) = (Controller::start().await, Controller::start().await);
    bad.be(Mood::Silent);
    let config = section("good", good.port, "") + &section("bad", bad.port, "");
    let server = TestServer::builder().without_printer().config(&config).start().await;
    lit(&server, "good").await;
    let started = Instant::now();
    let both = server.http().post("/machine/led/toggle?bad&good").await.result();
    assert_eq!((&both["good"]["status"], &both["bad"]["status"]), (&json!("off"), &json!("off")));
    assert!(!both["bad"]["error"].as_str().unwrap().is_empty(), "{both}");
    assert!(started.elapsed() < Duration::from_secs(6));
    for (mood, expected) in [
        (Mood::Answers(200, "<html>login</html>"), "not the JSON"),
        (Mood::Answers(200, r#"{"success":tr"#), "not the JSON"),
        (Mood::Answers(200, r#"{"error":3}"#), "refused the command (error 3)"),
        (Mood::Answers(500, ""), "status 500"),
        (Mood::Answers(200, ""), "not the JSON"),
        (Mood::Redirects, "it redirects to another address"),
    ] {
        bad.be(mood);
        let (status, message) = server.http().post("/machine/led/strip?strip=bad&action=on").await.error();
        assert!(status == 400 && message.starts_with("LED strip 'bad': ") && message.contains(expected), "{mood:?}: {message}");
        let shown = server.http().get("/machine/led/strip?strip=bad").await.result();
        assert!(shown["bad"]["error"].as_str().unwrap().contains(expected) && shown["bad"]["status"] == "off", "{shown}");
    }
    bad.be(Mood::Fine);
    let on = server.http().post("/machine/led/strip?strip=bad&action=on").await.result();
    assert_eq!((&on["bad"]["status"], &on["bad"]["error"]), (&json!("on"), &Value::Null));
}

#[tokio::test]
async fn a_strip_that_is_plugged_in_later_gets_its_initial_state() {
    let port = free_port();
    let server = TestServer::builder().without_printer().config(&section("late", port, "initial_preset: 1")).start().await;
    let look = || async { server.http().get("/machine/led/strip?strip=late").await.result()["late"]["error"].take() };
    wait::until("the strip cannot be reached", look, Value::is_string).await;
    // What sends nothing neither mends it nor ends the attempts.
    let kept = server.http().post("/machine/led/strip?strip=late&action=control&brightness=3").await.result();
    assert!(kept["late"]["error"].is_string() && kept["late"]["brightness"] == 3, "{kept}");
    let controller = Controller::start_at(port).await;
    lit(&server, "late").await;
    assert_eq!(controller.sent(), [r#"{"v":true}"#, r#"{"on":true,"ps":1}"#]);
}

#[tokio::test]
async fn macros_change_strips_under_both_names() {
    let controller = Controller::start().await;
    let server = TestServer::builder().config(&section("desk", controller.port, "chain_count: 2")).start().await;
    lit(&server, "desk").await;
    controller.sent();
    let mut ws = server.ws().await;
    for (call, expected) in [
        ("set_wled_state STRIP=desk PRESET=5 BRIGHTNESS=-1", Some(r#"{"on":true,"ps":5}"#)),
        ("set_led_state STRIP=desk STATE=off", Some(r#"{"on":false}"#)),
        ("set_led_state STRIP=desk STATE=true PRESET=-1", Some(r#""i":[0,2,[128,128,128,128]]"#)),
        ("set_wled STRIP=desk RED=1.0 INDEX=2", Some(r#""i":[1,[255,0,0,0]]"#)),
        ("set_led STRIP=desk BLUE=1.0 INDEX=0", None),
        ("set_led STRIP=desk BLUE=2.0", None),
        ("set_led STRIP=none", None),
        ("set_led STRIP=desk GREEN=1 TRANSMIT=0", None),
        ("set_led STRIP=desk WHITE=1", Some(r#""i":[0,2,[0,0,0,255]]"#)),
        ("set_led_state STRIP=desk STATE=on PRESET=4", Some(r#"{"on":true,"ps":4}"#)),
        ("set_led STRIP=desk RED=1 INDEX=2", Some(r#""bri":255"#)),
    ] {
        ws.ok("printer.gcode.script", json!({"script": format!("CALL_REMOTE METHOD={call}")})).await;
        if let Some(expected) = expected {
            let bodies = controller.bodies.clone();
            let look = || async { bodies.lock().clone() };
            let sent = wait::until("a command", look, |sent: &Vec<String>| !sent.is_empty()).await;
            assert!(sent.len() == 1 && sent[0].contains(expected), "{call}: {sent:?}");
            controller.sent();
        }
    }
    let shown = lit(&server, "desk").await;
    assert_eq!((&shown["preset"], &shown["brightness"]), (&json!(-1), &json!(255)), "the colour has ended the preset");
}
