//! Uploads that must be refused, and what they leave: nothing.

use serde_json::json;

use crate::harness::server::files_below;
use crate::harness::wait::until;
use crate::harness::{Form, TestServer};

/// Waits until nothing but these files is below the gcode root, hidden folders included.
async fn only(server: &TestServer, expected: &[&str]) {
    let look = || async {
        let mut names = files_below(&server.path("gcodes"));
        names.sort();
        names
    };
    until("only the expected files", look, |names| names == expected).await;
}

#[tokio::test]
async fn paths_that_lead_elsewhere() {
    let server = TestServer::without_printer().await;
    for (path, name) in [("", "../../evil.gcode"), ("", ".."), ("", ""), ("../..", "a.gcode"), ("", "none/a.gcode"), (".git", "a.gcode")] {
        let form = Form::default().field("path", path).file(name, b"G28");
        let (status, message) = server.http().upload(form).await.error();
        assert!(status == 400 || status == 403, "{path:?} {name:?}: {status} {message}");
    }
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), server.path("gcodes/link")).unwrap();
    let form = Form::default().field("path", "link").file("a.gcode", b"G28");
    assert_eq!(server.http().upload(form).await.error().0, 400);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    only(&server, &[]).await;
}

#[tokio::test]
async fn a_path_that_climbs_into_another_root() {
    let server = TestServer::without_printer().await;
    server.upload("t.gcode", "G28").await;
    for path in ["config/%2e%2e/gcodes/t.gcode", "config/..%2fgcodes/t.gcode", "logs/../gcodes/t.gcode"] {
        let target = format!("/server/files/{path}");
        assert_eq!(server.http().delete(&target).await.error().0, 403, "{path}");
        assert_eq!(server.http().get(&target).await.error().0, 403, "{path}");
    }
    only(&server, &["t.gcode"]).await;
}

#[tokio::test]
async fn roots_that_take_no_files() {
    let server = TestServer::without_printer().await;
    for root in ["logs", "none", "", "../gcodes"] {
        assert_eq!(server.http().upload(Form::default().field("root", root).file("a.gcode", b"G28")).await.error().0, 400, "{root:?}");
    }
    only(&server, &[]).await;
}

#[tokio::test]
async fn checksums_are_compared() {
    let server = TestServer::without_printer().await;
    let form = |sum: &str| Form::default().field("checksum", sum).file("a.gcode", b"G28");
    assert_eq!(server.http().upload(form("00")).await.error().0, 422);
    only(&server, &[]).await;
    let (_, message) = server.http().upload(form("00")).await.error();
    let calculated = message.rsplit(' ').next().unwrap().to_owned();
    assert_eq!(server.http().upload(form(&calculated.to_uppercase())).await.status, 201);
}

#[tokio::test]
async fn forms_that_are_none() {
    let server = TestServer::without_printer().await;
    let http = server.http();
    let two = Form::default().file("a.gcode", b"1").file("b.gcode", b"2").body();
    let none = Form::default().field("root", "gcodes").body();
    let endless = Form::default().field("path", &"x".repeat(100_000)).file("a.gcode", b"1").body();
    for (body, status) in [(two, 400), (none, 400), (b"rubbish".to_vec(), 400), (endless, 413)] {
        let reply = http.send("POST", "/server/files/upload", &[("Content-Type", &Form::content_type())], &body).await;
        assert_eq!(reply.error().0, status);
    }
    assert_eq!(http.send("POST", "/server/files/upload", &[("Content-Type", "text/plain")], b"G28").await.error().0, 400);
    only(&server, &[]).await;
}

/// Parts with forged heads. Whatever is refused is the client's fault and leaves nothing.
#[tokio::test]
async fn forged_parts() {
    let server = TestServer::without_printer().await;
    let part = |head: &str| format!("--B\r\n{head}\r\n\r\nG28\r\n").into_bytes();
    let end = b"--B--\r\n".to_vec();
    let file = part("Content-Disposition: form-data; name=\"file\"; filename=\"a.gcode\"");
    let nested = part("Content-Disposition: form-data; name=\"file\"\r\nContent-Type: multipart/mixed; boundary=C");
    let bodies = [
        ("no disposition", vec![part("Content-Type: text/plain"), end.clone()]),
        ("folded", vec![part("Content-Disposition: form-data; name=\"file\";\r\n filename=\"a.gcode\""), end.clone()]),
        ("another name", vec![part("Content-Disposition: form-data; name=\"file\\0\"; filename=\"a.gcode\""), end.clone()]),
        ("no name", vec![part("Content-Disposition: form-data; filename=\"a.gcode\""), end.clone()]),
        ("a path in the name", vec![part("Content-Disposition: form-data; name=\"file\"; filename=\"../../a\""), end.clone()]),
        ("a header without a colon", vec![part("Content-Disposition"), end.clone()]),
        ("twice", vec![file.clone(), file.clone(), end.clone()]),
        ("nested", vec![nested, end]),
        ("no end", vec![file]),
        ("another boundary", vec![b"--C\r\n\r\n\r\n--C--\r\n".to_vec()]),
    ];
    for (what, body) in bodies {
        let reply = server
            .http()
            .send("POST", "/server/files/upload", &[("Content-Type", "multipart/form-data; boundary=B")], &body.concat())
            .await;
        let (status, message) = reply.error();
        assert!((400..500).contains(&status) && !message.is_empty(), "{what}: {status} {message}");
    }
    for kind in ["multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=B", ""] {
        assert_eq!(
            server.http().send("POST", "/server/files/upload", &[("Content-Type", kind)], b"--B--\r\n").await.error().0,
            400,
            "{kind}"
        );
    }
    only(&server, &[]).await;
}

#[tokio::test]
async fn names_of_any_script_are_kept() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    for name in ["ü ñ.gcode", "部品 (1).gcode", "a%20b+c.gcode", "emoji🚀.gcode"] {
        server.upload(name, "G28").await;
        assert_eq!(ws.file_change().await[0]["item"]["path"], json!(name));
        assert!(server.path("gcodes").join(name).is_file(), "{name}");
    }
    assert_eq!(server.http().get("/server/files/gcodes/%C3%BC%20%C3%B1.gcode").await.text(), "G28");
}

/// The action stays `create_file`: clients know it from replacing uploads, too.
#[tokio::test]
async fn a_second_upload_replaces_the_first() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    for content in ["G28", "G28 X"] {
        server.upload("a.gcode", content).await;
        assert_eq!(ws.file_change().await[0]["action"], "create_file");
        assert_eq!(server.http().get("/server/files/gcodes/a.gcode").await.text(), content);
    }
}

#[tokio::test]
async fn a_client_that_asks_first_is_told_to_go_on() {
    let server = TestServer::without_printer().await;
    let mut connection = server.http().connection().await;
    let body = Form::default().file("a.gcode", b"G28").body();
    let (kind, length) = (Form::content_type(), body.len());
    let head = format!("Host: x\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n");
    connection.send(format!("POST /server/files/upload HTTP/1.1\r\n{head}").as_bytes()).await;
    assert_eq!(connection.interim().await, Some(100));
    connection.send(&body).await;
    assert_eq!(connection.reply(false).await.unwrap().status, 201);
}
