//! Deny by default: what strangers, forwarded addresses and pages of other origins get.

use serde_json::json;

use crate::harness::{Form, RpcError, TestServer};

const TRUSTED: &str = "[authorization]\ntrusted_clients:\n    127.0.0.1\n";
const PROXIED: &str = "[authorization]\ntrusted_clients:\n    192.168.7.0/24\ntrusted_proxies:\n    127.0.0.1\n";

#[tokio::test]
async fn strangers_get_401_over_http() {
    let server = TestServer::builder().authorization("").start().await;
    let http = server.http();
    for (verb, target) in [
        ("GET", "/server/info"),
        ("POST", "/printer/emergency_stop"),
        ("GET", "/server/files/list"),
        ("GET", "/server/files/gcodes/none.gcode"),
        ("DELETE", "/server/files/gcodes/none.gcode"),
        ("POST", "/server/files/upload"),
        ("GET", "/no/such/route"),
        ("GET", "/fwhostsocket"),
    ] {
        assert_eq!(http.send(verb, target, &[], b"").await.error(), (401, "Unauthorized".to_owned()), "{verb} {target}");
    }
    let answer = http.rpc(&json!({"jsonrpc": "2.0", "method": "server.info", "id": 1})).await;
    assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32602), &json!("Unauthorized")));
    assert_eq!(server.info().await["klippy_state"], "ready", "the printer is as it was");
}

#[tokio::test]
async fn strangers_hear_nothing_on_websockets() {
    let server = TestServer::builder().authorization("").start().await;
    let mut ws = server.ws().await;
    let unauthorized = Err(RpcError::new(-32602, "Unauthorized"));
    assert_eq!(ws.call("server.info", json!({})).await, unauthorized);
    assert_eq!(ws.call("printer.objects.subscribe", json!({"objects": {"toolhead": null}})).await, unauthorized);
    assert_eq!(ws.call("no.such.method", json!({})).await, unauthorized, "strangers do not learn what exists");
    let mut local = server.unix().await;
    local.ok("printer.gcode.script", json!({"script": "M115"})).await;
    local.notified("notify_gcode_response").await;
    assert!(!ws.saw("notify_gcode_response").await);
}

#[tokio::test]
async fn forwarded_headers_take_trust_away() {
    let server = TestServer::builder().without_printer().authorization(TRUSTED).start().await;
    assert_eq!(server.http().get("/server/info").await.status, 200);
    for header in [("X-Forwarded-For", "127.0.0.1"), ("X-Real-Ip", "127.0.0.1"), ("Forwarded", "for=127.0.0.1")] {
        assert_eq!(server.http().send("GET", "/server/info", &[header], b"").await.status, 401, "{header:?}");
    }
}

#[tokio::test]
async fn configured_proxies_are_believed() {
    let server = TestServer::builder().without_printer().authorization(PROXIED).start().await;
    for (headers, status) in [
        (vec![], 401),
        (vec![("X-Forwarded-For", "192.168.7.9")], 200),
        (vec![("X-Real-Ip", "192.168.7.9")], 200),
        (vec![("X-Forwarded-For", "192.168.7.9, 8.8.8.8")], 401),
        (vec![("X-Forwarded-For", "192.168.7.9"), ("X-Forwarded-For", "8.8.8.8")], 401),
    ] {
        assert_eq!(server.http().send("GET", "/server/info", &headers, b"").await.status, status, "{headers:?}");
    }
}

/// What kiosk browsers and tunnels send that enter by port 80, with the configuration and the proxy of usual installations.
#[tokio::test]
async fn local_programs_are_known_through_the_proxy_of_usual_installations() {
    let server = TestServer::builder().without_printer().config_name("moonraker.conf").authorization(TRUSTED).start().await;
    for (forwarded, real, status) in [
        ("127.0.0.1", "127.0.0.1", 200),
        ("8.8.8.8", "8.8.8.8", 401),
        ("127.0.0.1, 8.8.8.8", "8.8.8.8", 401),
        ("8.8.8.8, 127.0.0.1", "127.0.0.1", 401),
    ] {
        let headers = [("X-Forwarded-For", forwarded), ("X-Real-IP", real)];
        assert_eq!(server.http().send("GET", "/server/info", &headers, b"").await.status, status, "{headers:?}");
        let mut ws = server.try_ws(&headers).await.unwrap();
        assert_eq!(ws.call("server.info", json!({})).await.is_ok(), status == 200, "{headers:?}");
    }
}

#[tokio::test]
async fn a_name_that_somebody_else_may_own_is_explained_in_the_log() {
    let cors = format!("{TRUSTED}cors_domains:\n    *://voron.my.domain\n");
    let server = TestServer::builder().without_printer().authorization(&cors).start().await;
    let with =
        async |host| server.http().raw(format!("GET /server/info HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await.unwrap().status;
    for (host, status) in [("pi.attlocal.net", 200), ("voron.my.domain", 200), ("pi.box", 401), ("pi.box", 401)] {
        assert_eq!(with(host).await, status, "{host}");
    }
    assert_eq!(server.stderr().matches("add '*://pi.box' to [authorization] cors_domains").count(), 1, "{}", server.stderr());
    assert_eq!(server.stderr().matches("somebody else may own").count(), 1, "{}", server.stderr());
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let server = TestServer::start().await;
    let evil = [("Origin", "http://evil.page")];
    assert_eq!(server.try_ws(&evil).await.err(), Some(403));
    assert_eq!(server.http().send("POST", "/printer/emergency_stop", &evil, b"").await.status, 401);
    assert_eq!(
        server.http().send("POST", "/server/jsonrpc", &evil, br#"{"jsonrpc":"2.0","method":"server.info","id":1}"#).await.status,
        401
    );
    let own = format!("http://127.0.0.1:{}", server.port);
    server.try_ws(&[("Origin", &own)]).await.unwrap().ok("server.info", json!({})).await;
    assert_eq!(server.info().await["klippy_state"], "ready");
}

#[tokio::test]
async fn a_browser_without_a_page_of_ours_does_not_move_the_printer() {
    let server = TestServer::start().await;
    let http = server.http();
    let browser = ("User-Agent", "Mozilla/5.0 (X11; Linux) Firefox/128.0");
    assert_eq!(http.send("GET", "/printer/gcode/script?script=M112", &[browser], b"").await.status, 401);
    assert_eq!(http.send("GET", "/printer/info", &[browser], b"").await.status, 200, "reading is harmless");
    let page = format!("http://127.0.0.1:{}/", server.port);
    assert_eq!(http.send("GET", "/printer/gcode/script?script=M105", &[browser, ("Referer", &page)], b"").await.status, 200);
    assert_eq!(server.info().await["klippy_state"], "ready");
}

#[tokio::test]
async fn an_image_on_a_page_does_not_stop_the_printer() {
    let server = TestServer::start().await;
    let image = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")];
    for target in ["/printer/emergency_stop", "/printer/gcode/script?script=M112"] {
        assert_eq!(server.http().send("GET", target, &image, b"").await.status, 401, "{target}");
    }
    assert_eq!(server.try_ws(&image).await.err(), Some(403));
    server.upload("kept.gcode", "G28").await;
    assert_eq!(server.http().send("DELETE", "/server/files/gcodes/kept.gcode", &image, b"").await.status, 401);
    let (kind, form) = (Form::content_type(), Form::default().file("evil.gcode", b"M112").field("print", "true").body());
    let headers = [image[0], ("Content-Type", &kind)];
    assert_eq!(server.http().send("POST", "/server/files/upload", &headers, &form).await.status, 401);
    assert_eq!(server.http().get("/server/files/list").await.result()[0]["path"], "kept.gcode");
    assert_eq!(server.info().await["klippy_state"], "ready");
}
