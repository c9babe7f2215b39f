//! HTTP itself: status codes, error bodies, connections, downloads, cross-origin rules.

use serde_json::json;

use crate::harness::TestServer;

#[tokio::test]
async fn wrong_routes_and_verbs_get_json_errors() {
    let server = TestServer::without_printer().await;
    let http = server.http();
    for (verb, target, status) in [
        ("GET", "/no/such/route", 404),
        ("POST", "/server/info", 405),
        ("DELETE", "/server/info", 405),
        ("GET", "/printer/print/start", 405),
        ("BREW", "/server/info", 405),
        ("GET", "/server/jsonrpc", 405),
        ("GET", "/server/files/upload", 405),
        ("DELETE", "/server/files/upload", 405),
        ("POST", "/websocket", 405),
        ("POST", "/", 405),
        ("PUT", "/server/database/item", 405),
        ("GET", "/server/files/gcodes/none.gcode", 404),
        ("GET", "/server/files/../../etc/passwd", 403),
        ("GET", "/server/files/gcodes/%2e%2e/%2e%2e/etc/passwd", 403),
    ] {
        let reply = http.send(verb, target, &[], b"").await;
        assert_eq!(reply.error().0, status, "{verb} {target}");
        assert!(reply.header("content-type").unwrap().starts_with("application/json"), "{verb} {target}");
    }
}

#[tokio::test]
async fn the_result_is_the_first_member() {
    let server = TestServer::without_printer().await;
    for target in ["/server/info", "/server/files/list", "/server/config", "/server/gcode_store"] {
        let text = server.http().get(target).await.text();
        assert!(text.starts_with("{\"result\":") && !text.starts_with("{\"result\": "), "{target}: {text}");
    }
}

#[tokio::test]
async fn connections_are_kept_and_pipelined() {
    let server = TestServer::without_printer().await;
    let mut connection = server.http().connection().await;
    let request = b"GET /server/info HTTP/1.1\r\nHost: x\r\n\r\n";
    for _ in 0..3 {
        connection.send(request).await;
        assert_eq!(connection.reply(false).await.unwrap().status, 200);
    }
    connection.send(&[&request[..], b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n", request].concat()).await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(connection.reply(false).await.unwrap().status);
    }
    assert_eq!(statuses, [200, 404, 200]);
}

/// Small clients send a line break after a body; others begin the next request in the same packet.
#[tokio::test]
async fn what_follows_a_request_does_not_delay_its_answer() {
    let server = TestServer::without_printer().await;
    let post = "POST /server/jsonrpc HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    for rest in ["", "\r\n", "GET /server/in"] {
        let mut connection = server.http().connection().await;
        connection.send(format!("{post}{rest}").as_bytes()).await;
        assert_eq!(connection.reply(false).await.unwrap().status, 200, "{rest:?}");
        let end = if rest.is_empty() || rest == "\r\n" { "GET /server/info" } else { "fo" };
        connection.send(format!("{end} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await;
        assert_eq!(connection.reply(false).await.unwrap().result()["klippy_state"], "disconnected", "{rest:?}");
    }
}

#[tokio::test]
async fn old_clients_are_answered() {
    let server = TestServer::without_printer().await;
    let reply = server.http().raw(b"GET /server/info HTTP/1.0\r\n\r\n").await.unwrap();
    assert_eq!(reply.result()["klippy_state"], "disconnected");
    let mut connection = server.http().connection().await;
    connection.send(b"GET /server/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert_eq!(connection.reply(false).await.unwrap().status, 200);
    assert!(connection.reply(false).await.is_none(), "closed as asked");
}

#[tokio::test]
async fn downloads_have_ranges_and_tags() {
    let server = TestServer::without_printer().await;
    server.upload("a.gcode", "0123456789").await;
    let (http, target) = (server.http(), "/server/files/gcodes/a.gcode");
    let whole = http.get(target).await;
    assert_eq!((whole.status, whole.text().as_str()), (200, "0123456789"));
    let (tag, modified) = (whole.header("etag").unwrap(), whole.header("last-modified").unwrap());

    let head = http.send("HEAD", target, &[], b"").await;
    assert_eq!((head.status, head.header("content-length"), head.header("etag")), (200, Some("10"), Some(tag)));
    for (range, status, body) in [("bytes=2-4", 206, "234"), ("bytes=-3", 206, "789"), ("bytes=8-", 206, "89")] {
        let part = http.send("GET", target, &[("Range", range)], b"").await;
        assert_eq!((part.status, part.text().as_str()), (status, body), "{range}");
    }
    assert_eq!(http.send("GET", target, &[("Range", "bytes=20-")], b"").await.status, 416);
    assert_eq!(http.send("GET", target, &[("If-None-Match", tag)], b"").await.status, 304);
    assert_eq!(http.send("GET", target, &[("If-Modified-Since", modified)], b"").await.status, 304);
    assert_eq!(http.send("GET", target, &[("If-None-Match", "\"other\"")], b"").await.status, 200);
}

#[tokio::test]
async fn files_are_listed_and_deleted() {
    let server = TestServer::without_printer().await;
    server.upload("a.gcode", "G28").await;
    let http = server.http();
    assert_eq!(http.get("/server/files/directory?path=gcodes").await.result()["files"][0]["filename"], "a.gcode");
    assert!(http.get("/server/files/roots").await.result().as_array().unwrap().iter().any(|root| root["name"] == "gcodes"));
    let mut ws = server.ws().await;
    assert_eq!(http.delete("/server/files/gcodes/a.gcode").await.result()["action"], "delete_file");
    assert_eq!(ws.file_change().await[0]["action"], "delete_file");
    assert_eq!(http.delete("/server/files/gcodes/a.gcode").await.error().0, 400);
    assert_eq!(http.get("/server/files/list").await.result(), json!([]));
}

#[tokio::test]
async fn a_file_that_is_printed_stays() {
    let server = TestServer::start().await;
    let job = crate::harness::printer::long_job();
    server.upload("busy.gcode", &job).await;
    server.http().post("/printer/print/start?filename=busy.gcode").await.result();
    let mut ws = server.ws().await;
    ws.ok("printer.objects.subscribe", json!({"objects": {"print_stats": null}})).await;
    assert_eq!(server.http().delete("/server/files/gcodes/busy.gcode").await.error().0, 403);
    let form = crate::harness::Form::default().file("busy.gcode", b"G28");
    assert_eq!(server.http().upload(form).await.error().0, 403);
    assert_eq!(std::fs::read_to_string(server.path("gcodes/busy.gcode")).unwrap(), job);
}

const CORS: &str = "[authorization]\ntrusted_clients:\n    127.0.0.1\ncors_domains:\n    http://good.page\n";

#[tokio::test]
async fn allowed_pages_may_read_and_others_may_not() {
    let server = TestServer::builder().without_printer().authorization(CORS).start().await;
    let http = server.http();
    let good = http.send("GET", "/server/info", &[("Origin", "http://good.page")], b"").await;
    assert_eq!((good.status, good.header("access-control-allow-origin")), (200, Some("http://good.page")));
    let evil = http.send("GET", "/server/info", &[("Origin", "http://evil.page")], b"").await;
    assert_eq!((evil.status, evil.header("access-control-allow-origin")), (401, None));
}

#[tokio::test]
async fn preflights_are_answered() {
    let server = TestServer::builder().without_printer().authorization(CORS).start().await;
    let http = server.http();
    let asked = [("Origin", "http://good.page"), ("Access-Control-Request-Method", "POST")];
    let good = http.send("OPTIONS", "/printer/print/start", &asked, b"").await;
    assert_eq!(good.status, 204);
    assert!(good.header("access-control-allow-methods").unwrap().contains("POST"));
    assert!(good.header("access-control-allow-headers").unwrap().contains("X-Api-Key"));
    let evil = http.send("OPTIONS", "/printer/print/start", &[("Origin", "http://evil.page")], b"").await;
    assert_eq!((evil.status, evil.header("access-control-allow-methods")), (405, None));
}

#[tokio::test]
async fn routes_can_have_a_prefix() {
    let server = TestServer::builder().without_printer().config("route_prefix: printer1").start().await;
    assert_eq!(server.http().get("/printer1/server/info").await.status, 200);
    assert_eq!(server.http().get("/server/info").await.status, 404);
    // Addresses in the page are relative to the slash.
    let reply = server.http().get("/printer1").await;
    assert_eq!((reply.status, reply.header("location")), (308, Some("printer1/")));
    assert_eq!(server.http().get("/printer1/").await.status, 200);
    assert_eq!(server.http().get("/printer1/page/main.js").await.status, 200);
}

#[tokio::test]
async fn a_browser_gets_the_page_and_may_load_nothing_from_elsewhere() {
    let server = TestServer::without_printer().await;
    let reply = server.http().get("/").await;
    assert!(reply.status == 200 && reply.header("content-type").unwrap().starts_with("text/html") && reply.text().contains("Bowsprit"));
    assert!(reply.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    let tag = reply.header("etag").unwrap().to_owned();
    let again = server.http().send("GET", "/", &[("If-None-Match", &tag)], b"").await;
    assert!(again.status == 304 && again.body.is_empty());
    let small = server.http().send("GET", "/page/style.css", &[("Accept-Encoding", "gzip")], b"").await;
    assert!(small.header("content-encoding") == Some("gzip") && small.body.starts_with(&[0x1f, 0x8b]));
}

#[tokio::test]
async fn the_contract_is_served() {
    let server = TestServer::without_printer().await;
    for (target, args) in [("/server/openapi.json", &["contract"][..]), ("/server/rpc.json", &["contract", "--rpc"])] {
        let reply = server.http().get(target).await;
        assert_eq!(reply.header("content-type"), Some("application/json; charset=UTF-8"));
        let printed = std::process::Command::new(crate::harness::server::BOWSPRIT).args(args).output().unwrap().stdout;
        let [served, printed]: [serde_json::Value; 2] = [&reply.body[..], &printed].map(|text| serde_json::from_slice(text).unwrap());
        let first = if target.ends_with("rpc.json") { "methods" } else { "paths" };
        let names = |document: &serde_json::Value| match &document[first] {
            serde_json::Value::Array(methods) => {
                methods.iter().map(|method| method["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
            }
            paths => paths.as_object().unwrap().keys().cloned().collect(),
        };
        assert!(!names(&served).is_empty() && names(&served).iter().all(|name| names(&printed).contains(name)), "{target}");
    }
}
