//! Uploads that are continued after whatever came between.

use std::time::{Duration, SystemTime};

use data_encoding::{BASE64, HEXLOWER};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::harness::http::{Connection, Reply};
use crate::harness::server::files_below;
use crate::harness::wait::until;
use crate::harness::{Form, TestServer};

const ROUTE: &str = "/server/files/uploads";
const OPEN: &str = "[authorization]\ntrusted_clients:\n    127.0.0.1\ncors_domains:\n    *\n";
const TUS: (&str, &str) = ("Tus-Resumable", "1.0.0");
const DATA: (&str, &str) = ("Content-Type", "application/offset+octet-stream");

/// Bytes of which no two blocks are the same.
fn content(size: usize) -> Vec<u8> {
    (0..size / 16).flat_map(|line| format!("G1 X{line:011}\n").into_bytes()).collect()
}

fn metadata(pairs: &[(&str, &str)]) -> String {
    pairs.iter().map(|(name, value)| format!("{name} {}", BASE64.encode(value.as_bytes()))).collect::<Vec<_>>().join(",")
}

async fn create(server: &TestServer, length: usize, pairs: &[(&str, &str)]) -> Reply {
    let headers = [TUS, ("Upload-Length", &length.to_string()), ("Upload-Metadata", &metadata(pairs))];
    server.http().send("POST", ROUTE, &headers, b"").await
}

/// The path of a new upload.
async fn created(server: &TestServer, length: usize, pairs: &[(&str, &str)]) -> String {
    let reply = create(server, length, pairs).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let location = reply.header("location").unwrap();
    location.strip_prefix(&format!("http://127.0.0.1:{}", server.port)).unwrap().to_owned()
}

async fn patch(server: &TestServer, upload: &str, offset: usize, data: &[u8]) -> Reply {
    let headers = [TUS, DATA, ("Upload-Offset", &offset.to_string()), ("Prefer", "return=representation")];
    server.http().send("PATCH", upload, &headers, data).await
}

async fn head(server: &TestServer, upload: &str) -> Reply {
    server.http().send("HEAD", upload, &[TUS], b"").await
}

async fn offset(server: &TestServer, upload: &str) -> usize {
    head(server, upload).await.header("upload-offset").unwrap().parse().unwrap()
}

/// A request that announces all of the rest and has sent only a part.
async fn unfinished(server: &TestServer, upload: &str, at: usize, rest: usize, part: &[u8]) -> Connection {
    let mut connection = server.http().connection().await;
    let head =
        format!("Host: x\r\n{}: {}\r\n{}: {}\r\nUpload-Offset: {at}\r\nContent-Length: {rest}\r\n\r\n", TUS.0, TUS.1, DATA.0, DATA.1);
    connection.send(format!("PATCH {upload} HTTP/1.1\r\n{head}").as_bytes()).await;
    connection.send(part).await;
    connection
}

/// Bytes of unfinished uploads on the disk.
fn on_disk(server: &TestServer) -> u64 {
    let entries = std::fs::read_dir(server.path("gcodes/.bowsprit-upload")).unwrap().map(|entry| entry.unwrap());
    entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".data")).map(|entry| entry.metadata().unwrap().len()).sum()
}

#[tokio::test]
async fn broken_connections_and_a_killed_server_in_the_middle() {
    let mut server = TestServer::without_printer().await;
    let all = content(6_000_000);
    let sum = HEXLOWER.encode(&Sha256::digest(&all));
    let upload = created(&server, all.len(), &[("filename", "big.gcode"), ("checksum", &sum)]).await;

    let broken = unfinished(&server, &upload, 0, all.len(), &all[..2_000_000]).await;
    until("the bytes are there", || async { on_disk(&server) }, |bytes| *bytes > 1_900_000).await;
    drop(broken);
    let at = offset(&server, &upload).await;
    assert!(at > 1_900_000 && at <= 2_000_000, "{at}");

    let _half = unfinished(&server, &upload, at, all.len() - at, &all[at..4_000_000]).await;
    until("more is there", || async { on_disk(&server) }, |bytes| *bytes > 3_900_000).await;
    server.kill9().await;
    server.start_again().await;
    let at = offset(&server, &upload).await;
    assert!(at > 3_900_000 && at <= 4_000_000, "{at}");

    let mut ws = server.ws().await;
    let reply = patch(&server, &upload, at, &all[at..]).await;
    assert_eq!((reply.status, reply.header("upload-offset")), (201, Some(all.len().to_string().as_str())), "{}", reply.text());
    assert!(std::fs::read(server.path("gcodes/big.gcode")).unwrap() == all);
    let body = reply.json();
    assert_eq!(
        (&body["item"]["path"], &body["item"]["size"], &body["print_started"]),
        (&json!("big.gcode"), &json!(all.len()), &json!(false))
    );
    assert_eq!(ws.file_change().await[0], json!({"action": "create_file", "item": body["item"]}));
    assert_eq!(server.http().get(&upload).await.json(), body, "a client that missed the answer gets it later");
    assert_eq!(on_disk(&server), 0);
}

/// The old connection is dead and nobody knows: it is neither closed nor does anything come.
#[tokio::test]
async fn a_connection_that_hangs_does_not_hold_the_upload() {
    let server = TestServer::without_printer().await;
    let all = content(1_000_000);
    let upload = created(&server, all.len(), &[("filename", "a.gcode")]).await;
    let mut hangs = unfinished(&server, &upload, 0, all.len(), &all[..400_000]).await;
    until("the bytes are there", || async { on_disk(&server) }, |bytes| *bytes > 300_000).await;
    let at = offset(&server, &upload).await;
    assert_eq!(hangs.reply(false).await.unwrap().error().0, 409);
    assert_eq!(patch(&server, &upload, at, &all[at..]).await.status, 201);
    assert!(std::fs::read(server.path("gcodes/a.gcode")).unwrap() == all);
}

#[tokio::test]
async fn refusals() {
    let server = TestServer::builder().without_printer().config("max_upload_size: 4000000000").start().await;
    let upload = created(&server, 10, &[("filename", "a.gcode")]).await;
    assert_eq!(patch(&server, &upload, 1, b"x").await.error().0, 409);
    assert_eq!(patch(&server, &upload, 0, b"more than ten").await.error().0, 413);
    assert_eq!(create(&server, 5_000_000_000 << 20, &[("filename", "a.gcode")]).await.error().0, 413);
    let (status, message) = create(&server, 1 << 50, &[("filename", "a.gcode")]).await.error();
    assert!(status == 507 && message.contains("are free"), "{status} {message}");
    for unknown in ["00000000000000000000000000000000", "x", "../upload", "a/b", "%00"] {
        let path = format!("{ROUTE}/{unknown}");
        assert_eq!(patch(&server, &path, 0, b"x").await.error().0, 404, "{unknown}");
        assert_eq!(head(&server, &path).await.status, 404);
    }
    for (pairs, expected) in [(&[("path", "a")][..], 400), (&[("filename", "../a")], 400), (&[("filename", "a"), ("path", ".git")], 403)] {
        assert_eq!(create(&server, 10, pairs).await.error().0, expected);
    }
    assert_eq!(server.http().send("DELETE", &upload, &[TUS], b"").await.status, 204);
    assert_eq!(head(&server, &upload).await.status, 404);
    assert_eq!(files_below(&server.path("gcodes")), Vec::<String>::new());
}

#[tokio::test]
async fn an_expired_upload_is_gone_and_a_fresh_one_stays() {
    let mut server = TestServer::without_printer().await;
    let old = created(&server, 10, &[("filename", "old.gcode")]).await;
    patch(&server, &old, 0, b"12345").await;
    server.stop().await;
    for entry in std::fs::read_dir(server.path("gcodes/.bowsprit-upload")).unwrap() {
        let file = std::fs::File::options().write(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(25)).unwrap();
    }
    server.start_again().await;
    assert_eq!(head(&server, &old).await.status, 404);
    assert_eq!(files_below(&server.path("gcodes")), Vec::<String>::new());
    let fresh = created(&server, 10, &[("filename", "fresh.gcode")]).await;
    patch(&server, &fresh, 0, b"12345").await;
    server.restart().await;
    assert_eq!(offset(&server, &fresh).await, 5);
}

#[tokio::test]
async fn an_id_is_no_permission() {
    let mut server = TestServer::without_printer().await;
    let upload = created(&server, 10, &[("filename", "a.gcode")]).await;
    server.stop().await;
    server.write_config(|text| {
        text.replace("127.0.0.1\n\n", "").replace("trusted_clients:\n    127.0.0.1", "trusted_clients:\n    10.9.8.7")
    });
    server.start_again().await;
    for verb in ["HEAD", "GET", "PATCH", "DELETE"] {
        let reply = server.http().send(verb, &upload, &[TUS, DATA, ("Upload-Offset", "0")], b"").await;
        assert_eq!(reply.status, 401, "{verb}");
    }
    assert_eq!(create(&server, 10, &[("filename", "a.gcode")]).await.error().0, 401);
    assert_eq!(on_disk(&server), 0);
}

#[tokio::test]
async fn print_starts_with_the_last_byte() {
    let server = TestServer::start().await;
    let all = content(100_000);
    let upload = created(&server, all.len(), &[("filename", "job.gcode"), ("print", "true")]).await;
    assert_eq!(patch(&server, &upload, 0, &all[..50_000]).await.status, 204);
    let reply = patch(&server, &upload, 50_000, &all[50_000..]).await;
    assert_eq!((reply.status, &reply.json()["print_started"]), (201, &json!(true)), "{}", reply.text());
    let query = || async { server.http().get("/printer/objects/query?print_stats").await.result() };
    until("it prints", query, |answer| answer["status"]["print_stats"]["filename"] == "job.gcode").await;
}

#[tokio::test]
async fn the_protocol_as_its_clients_know_it() {
    let server = TestServer::builder().without_printer().authorization(OPEN).start().await;
    let page = ("Origin", "http://panel.local");
    let asked = ("Access-Control-Request-Method", "PATCH");
    let offer = server.http().send("OPTIONS", ROUTE, &[page, asked], b"").await;
    assert_eq!((offer.status, offer.header("tus-version"), offer.header("tus-max-size")), (204, Some("1.0.0"), Some("1073741824")));
    assert_eq!(offer.header("tus-extension"), Some("creation,creation-with-upload,expiration,termination"));
    assert!(offer.header("access-control-allow-methods").unwrap().contains("PATCH"));
    assert!(offer.header("access-control-allow-headers").unwrap().contains("Upload-Offset"));

    let (length, named) = (("Upload-Length", "5"), metadata(&[("filename", "a.gcode")]));
    let named = ("Upload-Metadata", named.as_str());
    for (headers, status) in [
        (&[length, named][..], 412),
        (&[("Tus-Resumable", "0.2.2"), length, named], 412),
        (&[TUS, named], 400),
        (&[TUS, length, named], 415),
    ] {
        let reply = server.http().send("POST", ROUTE, headers, b"he").await;
        assert_eq!((reply.error().0, reply.header("tus-resumable")), (status, Some("1.0.0")), "{headers:?}");
    }
    let new = server.http().send("POST", ROUTE, &[TUS, DATA, length, named, page], b"he").await;
    assert_eq!((new.status, new.header("upload-offset")), (201, Some("2")));
    assert!(new.header("access-control-expose-headers").unwrap().contains("Upload-Offset"));
    assert_eq!(new.header("access-control-allow-origin"), Some(page.1));
    let upload = new.header("location").unwrap().split_once("/server").map(|(_, rest)| format!("/server{rest}")).unwrap();
    let state = head(&server, &upload).await;
    assert_eq!((state.status, state.header("upload-length"), state.header("upload-metadata")), (200, Some("5"), Some(named.1)));
    assert!(state.header("upload-expires").is_some() && state.header("cache-control") == Some("no-store"));
    let headers = [TUS, DATA, ("Upload-Offset", "2"), ("X-HTTP-Method-Override", "PATCH")];
    let last = server.http().send("POST", &upload, &headers, b"llo").await;
    assert_eq!((last.status, last.header("upload-offset")), (204, Some("5")));
    assert!(last.header("content-location").unwrap().ends_with("/server/files/gcodes/a.gcode"));
    assert_eq!(server.http().get("/server/files/gcodes/a.gcode").await.text(), "hello");
}

#[tokio::test]
async fn ordinary_uploads_go_on_beside() {
    let server = TestServer::without_printer().await;
    let upload = created(&server, 10, &[("filename", "a.gcode")]).await;
    patch(&server, &upload, 0, b"12345").await;
    server.upload("a.gcode", "short").await;
    assert_eq!(server.http().upload(Form::default().field("path", "a.gcode").file("b.gcode", b"x")).await.error().0, 400);
    assert_eq!(patch(&server, &upload, 5, b"67890").await.status, 201);
    assert_eq!(std::fs::read(server.path("gcodes/a.gcode")).unwrap(), b"1234567890");
    assert_eq!(server.http().get("/server/files/list").await.result().as_array().unwrap().len(), 1);
}
