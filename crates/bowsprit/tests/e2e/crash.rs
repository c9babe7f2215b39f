//! The process is killed in the middle of its work: the data folder starts again, and nothing half is visible.

use serde_json::{Value, json};

use crate::harness::server::files_below;
use crate::harness::{Form, Http, TestServer, within};

/// Content that tells whether it is whole.
fn content(index: u32) -> Vec<u8> {
    let mut text = format!("; file {index}\n").repeat(20_000);
    text.push_str("; end\n");
    text.into_bytes()
}

/// Uploads files one after the other until the server is gone; gives the number of acknowledged ones.
async fn upload_until_killed(http: Http, lane: u32) -> Vec<u32> {
    let mut acknowledged = Vec::new();
    for index in (lane * 1000)..(lane * 1000 + 1000) {
        let form = Form::default().file(&format!("f{index}.gcode"), &content(index)).body();
        let headers = [("Content-Type", Form::content_type())];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match http.try_send("POST", "/server/files/upload", &headers, &form).await {
            Some(reply) if reply.status == 201 => acknowledged.push(index),
            _ => break,
        }
    }
    acknowledged
}

#[tokio::test]
async fn kill_9_during_uploads_leaves_whole_files() {
    let mut server = TestServer::without_printer().await;
    let lanes: Vec<_> = (0..2).map(|lane| tokio::spawn(upload_until_killed(server.http(), lane))).collect();
    let mut broken = server.http().connection().await;
    let head = format!("POST /server/files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: {}\r\n", Form::content_type());
    broken.send(format!("{head}Content-Length: 90000000\r\n\r\n").as_bytes()).await;
    broken.send(&Form::default().file("half.gcode", &content(9)).unfinished()).await;
    let enough = || async { files_below(&server.path("gcodes")).len() };
    crate::harness::wait::until("some uploads", enough, |count| *count > 10).await;
    server.kill9().await;
    server.start_again().await;

    let mut acknowledged = Vec::new();
    for lane in lanes {
        acknowledged.extend(within("a lane ends", lane).await.unwrap());
    }
    let listed = server.http().get("/server/files/list").await.result();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert!(acknowledged.iter().all(|index| names.contains(&format!("f{index}.gcode").as_str())), "{acknowledged:?} {names:?}");
    assert!(!names.contains(&"half.gcode"));
    let on_disk = files_below(&server.path("gcodes"));
    assert!(on_disk.iter().all(|name| names.contains(&name.as_str())), "left over: {on_disk:?}");
    for name in names {
        let index: u32 = name[1..name.len() - 6].parse().unwrap();
        assert!(std::fs::read(server.path("gcodes").join(name)).unwrap() == content(index), "{name} is not whole");
    }
}

#[tokio::test]
async fn kill_9_during_database_writes_keeps_what_was_acknowledged() {
    let mut server = TestServer::without_printer().await;
    for round in 0..3 {
        let mut ws = server.ws().await;
        let mut pending = Vec::new();
        for index in 0..200 {
            let item = json!({"namespace": "crash", "key": format!("r{round}.k{index}"), "value": index});
            pending.push(ws.begin("server.database.post_item", item).await);
        }
        for id in &pending[..100] {
            ws.answer(*id).await.unwrap();
        }
        server.kill9().await;
        server.start_again().await;
        let kept = server.ws().await.ok("server.database.get_item", json!({"namespace": "crash", "key": format!("r{round}")})).await;
        for index in 0..100 {
            assert_eq!(kept["value"][format!("k{index}")], index, "round {round}");
        }
        assert_eq!(server.info().await["warnings"], Value::Array(vec![]));
    }
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let server = TestServer::without_printer().await;
    let mut broken = server.http().connection().await;
    let head = format!("POST /server/files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: {}\r\n", Form::content_type());
    broken.send(format!("{head}Content-Length: 9000000\r\n\r\n").as_bytes()).await;
    broken.send(&Form::default().file("half.gcode", &content(1)).unfinished()).await;
    drop(broken);
    server.upload("whole.gcode", "G28").await;
    let look = || async { files_below(&server.path("gcodes")) };
    crate::harness::wait::until("the temporary is gone", look, |names| names == &["whole.gcode"]).await;
}
