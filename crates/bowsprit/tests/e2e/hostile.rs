//! Hostile and broken input: clear errors or closed connections, bounded memory, and others are served meanwhile.

use serde_json::json;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::harness::http::Connection;
use crate::harness::server::files_below;
use crate::harness::wait::until;
use crate::harness::{Channel, Form, TestServer, within};

/// Resident memory that an attack may leave behind, in KiB.
const GROWTH_KIB: u64 = 64 * 1024;

/// A server under observation.
struct Target {
    server: TestServer,
    before: u64,
}

impl Target {
    async fn start() -> Self {
        let server = TestServer::start().await;
        server.http().get("/server/info").await.result();
        let before = server.resident_kib();
        Self { server, before }
    }

    /// The process lives, answers, and has not grown.
    async fn must_be_well(mut self) {
        assert!(self.server.is_alive(), "the process ended");
        assert_eq!(self.server.http().get("/server/info").await.result()["klippy_state"], "ready");
        let after = self.server.resident_kib();
        assert!(after < self.before + GROWTH_KIB, "{} KiB before, {after} KiB after", self.before);
    }
}

#[tokio::test]
async fn deep_nesting() {
    let target = Target::start().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut ws = target.server.ws().await;
    for text in [
        format!(r#"{{"jsonrpc":"2.0","method":"server.database.post_item","params":{{"namespace":"n","key":"k","value":{deep}}},"id":1}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"printer.objects.query","params":{{"objects":{deep}}},"id":2}}"#),
        deep.clone(),
    ] {
        let answer = ws.raw(&text).await;
        assert!(answer["error"].is_object() || answer.is_array(), "{}", answer.to_string().chars().take(200).collect::<String>());
    }
    // An id is echoed as it came, however deep it is.
    ws.channel.send(&format!(r#"{{"jsonrpc":"2.0","method":"none","id":{deep}}}"#)).await;
    let echo = within("the echo", ws.channel.receive()).await.unwrap();
    assert!(echo.starts_with(r#"{"jsonrpc":"2.0","error":"#), "{}", &echo[..100]);
    let body = format!(r#"{{"namespace":"n","key":"k","value":{deep}}}"#);
    let reply = target.server.http().send("POST", "/server/database/item", &[("Content-Type", "application/json")], body.as_bytes()).await;
    assert_eq!(reply.error().0, 400);
    target.must_be_well().await;
}

#[tokio::test]
async fn oversize_websocket_messages() {
    let target = Target::start().await;
    let mut ws = target.server.ws().await;
    // The server may close before everything is sent.
    let _ = ws.channel.frame(Message::text("x".repeat(11 * 1024 * 1024))).await;
    assert_eq!(ws.closed().await, Some(1009));
    target.must_be_well().await;
}

#[tokio::test]
async fn invalid_utf_8() {
    let target = Target::start().await;
    let mut ws = target.server.ws().await;
    ws.channel.frame(Message::Binary(Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\",\"id\":1}"))).await.unwrap();
    assert!(ws.next().await["error"].is_object());
    let json = [("Content-Type", "application/json")];
    let reply = target.server.http().send("POST", "/server/database/item", &json, b"{\"namespace\":\"\xff\"}").await;
    assert_eq!(reply.error().0, 400);
    assert_eq!(target.server.http().get("/server/files/gcodes/%ff%fe.gcode").await.error().0, 400);
    target.must_be_well().await;
}

#[tokio::test]
async fn floods_of_headers() {
    let target = Target::start().await;
    let http = target.server.http();
    let many: String = (0..1000).map(|index| format!("X-{index}: y\r\n")).collect();
    let reply = http.raw(format!("GET /server/info HTTP/1.1\r\nHost: x\r\n{many}\r\n").as_bytes()).await;
    assert!(reply.is_none_or(|reply| (400..500).contains(&reply.status)));
    let mut endless = http.connection().await;
    endless.send(b"GET /server/info HTTP/1.1\r\nX: ").await;
    let block = vec![b'a'; 64 * 1024];
    let mut sent = 0;
    while sent < 64 * 1024 * 1024 && endless.send(&block).await {
        sent += block.len();
    }
    assert!(sent < 64 * 1024 * 1024, "an endless header line was read to its end");
    target.must_be_well().await;
}

#[tokio::test]
async fn oversize_bodies() {
    let target = Target::start().await;
    let head = format!("POST /server/jsonrpc HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 51 * 1024 * 1024);
    assert_eq!(target.server.http().raw(head.as_bytes()).await.unwrap().error().0, 413);
    target.must_be_well().await;
}

#[tokio::test]
async fn uploads_larger_than_allowed() {
    let server = TestServer::builder().without_printer().config("max_upload_size: 1").start().await;
    let form = || Form::default().file("big.gcode", &vec![b';'; 2 * 1024 * 1024]);
    assert_eq!(server.http().upload(form()).await.status, 413);
    let mut chunked = server.http().connection().await;
    let head = format!("POST /server/files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: {}\r\n", Form::content_type());
    let body = form().body();
    chunked.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len()).as_bytes()).await;
    chunked.send(&body).await;
    assert_eq!(chunked.reply(false).await.unwrap().status, 413);
    let left = || async { files_below(&server.path("gcodes")) };
    until("nothing is left of it", left, Vec::is_empty).await;
}

#[tokio::test]
async fn strangers_fill_no_memory() {
    let server = TestServer::builder().without_printer().authorization("").start().await;
    let head = "POST /server/jsonrpc HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";
    assert_eq!(server.http().raw(head.as_bytes()).await.unwrap().error().0, 413);
    let mut ws = server.ws().await;
    let _ = ws.channel.frame(Message::text("x".repeat(100_000))).await;
    assert_eq!(ws.closed().await, Some(1009));
    let mut open = Vec::new();
    while let Ok(ws) = server.try_ws(&[]).await {
        open.push(ws);
        assert!(open.len() <= 64, "strangers open as many websockets as they like");
    }
    assert_eq!(server.info().await["klippy_state"], "disconnected", "local programs are served");
}

#[tokio::test]
async fn dribblers_and_half_open_connections() {
    let target = Target::start().await;
    let mut connections: Vec<Connection> = Vec::new();
    for index in 0..100 {
        let mut connection = target.server.http().connection().await;
        let start: &[u8] = match index % 4 {
            0 => b"",
            1 => b"GET /server/in",
            2 => b"POST /server/jsonrpc HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{",
            _ => b"POST /server/files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 500\r\n\r\n--b\r\n",
        };
        connection.send(start).await;
        connections.push(connection);
    }
    assert_eq!(target.server.ws().await.ok("printer.info", json!({})).await["state"], "ready");
    target.must_be_well().await;
    drop(connections);
}

#[tokio::test]
async fn rubbish_instead_of_http() {
    let target = Target::start().await;
    let http = target.server.http();
    for rubbish in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /server/info HTTP/9.9\r\n\r\n",
        b"POST /server/jsonrpc HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /server/jsonrpc HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /server/jsonrpc HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let mut connection = http.connection().await;
        connection.send(rubbish).await;
        // TLS and the like end without an answer; nothing waits for more.
        let reply = connection.reply(false).await;
        assert!(reply.is_none_or(|reply| reply.status >= 400), "{rubbish:?}");
    }
    target.must_be_well().await;
}

#[tokio::test]
async fn rubbish_on_the_unix_socket() {
    let target = Target::start().await;
    let mut unix = target.server.unix().await;
    assert_eq!(unix.raw("\u{1}\u{2}nonsense").await["error"]["code"], -32700);
    assert_eq!(unix.raw("").await["error"]["code"], -32700);
    assert!(unix.ok("server.info", json!({})).await.is_object(), "the connection goes on");
    target.must_be_well().await;
}

#[tokio::test]
async fn floods_of_calls_that_nobody_reads() {
    let target = Target::start().await;
    let mut ws = target.server.ws().await;
    let call = r#"{"jsonrpc":"2.0","method":"server.config","id":1}"#;
    let flood = async {
        for _ in 0..50_000 {
            if ws.channel.frame(Message::text(call)).await.is_err() {
                break;
            }
        }
    };
    // Either everything is taken in, or the server stops reading or closes: all three are fine.
    let _ = tokio::time::timeout(std::time::Duration::from_millis(1500), flood).await;
    assert_eq!(target.server.ws().await.ok("printer.info", json!({})).await["state"], "ready");
    target.must_be_well().await;
}

#[tokio::test]
async fn a_client_that_stops_reading_is_let_go_and_others_get_everything() {
    let target = Target::start().await;
    let (mut stalled, mut reader) = (target.server.ws().await, target.server.ws().await);
    stalled.ok("server.info", json!({})).await;
    let control = target.server.printer();
    let line = format!("M118 {}\n", "x".repeat(900));
    let script = format!("{}M118 last", line.repeat(1000));
    // About 25 MB of console lines: more than a connection's queue and the kernel's buffers hold together.
    for _ in 0..25 {
        control.run_gcode(&script).await.unwrap();
        reader.notified_where("notify_gcode_response", |params| params[0].as_str().unwrap().ends_with("last")).await;
        reader.forget();
    }
    assert_eq!(reader.ok("printer.info", json!({})).await["state"], "ready");
    stalled.closed().await;
    target.must_be_well().await;
}

#[tokio::test]
async fn websockets_beyond_the_limit() {
    let server = TestServer::builder().config("max_websocket_connections: 3").start().await;
    let (mut first, _second) = (server.ws().await, server.ws().await);
    let bridge = server.bridge().await.unwrap();
    assert_eq!(server.try_ws(&[]).await.err(), Some(503));
    assert_eq!(server.bridge().await.err(), Some(503));
    drop(bridge);
    let again = || async { server.try_ws(&[]).await.is_ok() };
    until("a place is free again", again, |opened| *opened).await;
    first.ok("server.info", json!({})).await;
}
