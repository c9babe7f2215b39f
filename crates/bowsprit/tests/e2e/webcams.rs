//! Webcams: made by clients and by the configuration, changed, tested, kept.

use serde_json::{Value, json};

use crate::harness::web::{Page, Web};
use crate::harness::{TestServer, within};

const CONFIGURED: &str =
    "[webcam fixed]\nstream_url: /webcam/?action=stream\nrotation: 90\n[webcam broken]\nstream_url: /x\nrotation: 45\n";

fn names(list: &Value) -> Vec<&str> {
    list["webcams"].as_array().unwrap().iter().map(|webcam| webcam["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_webcam_is_made_changed_and_removed() {
    let server = TestServer::without_printer().await;
    let (mut ws, mut other) = (server.ws().await, server.ws().await);
    let made = json!({"name": "bed", "stream_url": "/webcam/?action=stream", "uid": null, "extra_data": {"k": [1.50]}});
    let made = ws.ok("server.webcams.post_item", made).await["webcam"].take();
    assert_eq!((&made["source"], &made["rotation"], &made["target_fps"]), (&json!("database"), &json!(0), &json!(15)));
    assert_eq!(other.notified("notify_webcams_changed").await[0]["webcams"][0], made);
    let changed = ws.ok("server.webcams.post_item", json!({"uid": made["uid"], "rotation": "180", "name": "side"})).await;
    assert_eq!((&changed["webcam"]["rotation"], &changed["webcam"]["uid"]), (&json!(180), &made["uid"]));
    let http = server.http();
    assert_eq!(http.get("/server/webcams/item?name=side").await.result()["webcam"]["extra_data"], json!({"k": [1.5]}));
    assert_eq!(http.get("/server/webcams/item?name=bed").await.error(), (404, "Webcam bed not found".to_owned()));
    let removed = http.delete("/server/webcams/item?name=side").await.result();
    assert_eq!(removed["webcam"]["uid"], made["uid"]);
    other.notified_where("notify_webcams_changed", |params| params[0] == json!({"webcams": []})).await;
}

#[tokio::test]
async fn bad_values_are_named_and_nothing_changes() {
    let server = TestServer::without_printer().await;
    let http = server.http();
    let post = |body: Value| async move { http.post_json("/server/webcams/item", &body).await };
    let uid = post(json!({"name": "a", "stream_url": "/s"})).await.result()["webcam"]["uid"].take();
    for (field, value) in
        [("rotation", json!(45)), ("aspect_ratio", json!("wide")), ("stream_url", json!("javascript:alert(1)")), ("name", json!(""))]
    {
        let (status, message) = post(json!({"uid": uid, "icon": "changed", field: value})).await.error();
        assert!(status == 400 && message.starts_with(&format!("Invalid value for '{field}'")), "{field}: {message}");
    }
    assert_eq!(post(json!({"name": "b"})).await.error(), (400, "No data for argument: stream_url".to_owned()));
    assert_eq!(post(json!({"uid": "none"})).await.error(), (404, "Webcam with UID none not found".to_owned()));
    assert_eq!(http.get("/server/webcams/list").await.result()["webcams"][0]["icon"], "mdiWebcam");
}

#[tokio::test]
async fn configured_webcams_are_fixed_and_faulty_ones_named() {
    let mut server = TestServer::builder().without_printer().config(CONFIGURED).start().await;
    let list = server.http().get("/server/webcams/list").await.result();
    assert_eq!((names(&list), &list["webcams"][0]["source"]), (vec!["fixed"], &json!("config")));
    assert!(server.info().await["warnings"].to_string().contains("[webcam broken] rotation: expected 0, 90, 180 or 270"));
    let fixed = server.http().post_json("/server/webcams/item", &json!({"name": "fixed", "icon": "x"})).await.error();
    assert_eq!(fixed, (400, "Cannot overwrite webcam 'fixed' sourced from Moonraker configuration".to_owned()));
    assert_eq!(server.http().delete("/server/webcams/item?name=fixed").await.status, 400);
    server.restart().await;
    assert_eq!(server.http().get("/server/webcams/list").await.result(), list, "also the id stays");
}

#[tokio::test]
async fn webcams_survive_kill_9_and_those_of_older_front_ends_are_understood() {
    let mut server = TestServer::without_printer().await;
    let http = server.http();
    http.post_json("/server/webcams/item", &json!({"name": "mine", "stream_url": "/s"})).await.result();
    for (uid, value) in [("old.1", json!({"name": "old", "urlStream": "/o", "rotate": 270})), ("bad", json!({"name": 5}))] {
        http.post_json("/server/database/item", &json!({"namespace": "webcams", "key": [uid], "value": value})).await.result();
    }
    server.kill9().await;
    server.start_again().await;
    let mut list = server.http().get("/server/webcams/list").await.result();
    list["webcams"].as_array_mut().unwrap().sort_by_key(|webcam| webcam["name"].to_string());
    assert_eq!((names(&list), &list["webcams"][1]["rotation"]), (vec!["mine", "old"], &json!(270)));
    assert_eq!(server.http().delete("/server/webcams/item?uid=old.1").await.result()["webcam"]["name"], "old");
}

#[tokio::test]
async fn a_test_really_fetches_the_snapshot() {
    let server = TestServer::without_printer().await;
    let web = Web::start().await;
    web.set("/good", Page::body("a picture"));
    web.set("/round", Page::redirect("/round"));
    web.set("/back", Page::redirect(&format!("http://127.0.0.1:{}/server/info", server.port)));
    web.set("/huge", Page::Long { length: 1 << 30, is_announced: true });
    web.set("/silent", Page::Silence);
    let own = format!("http://localhost:{}/server/info", server.port);
    let http = server.http();
    let cases = [("/good", true), ("/none", false), ("/round", false), ("/back", false), ("/huge", false), ("/silent", false)];
    let cases = cases.map(|(path, expected)| (web.url(path), expected)).into_iter().chain([(own, false), (String::new(), false)]);
    for (url, expected) in cases {
        let webcam = json!({"name": "cam", "stream_url": "rtsp://127.0.0.1/1", "snapshot_url": url});
        http.post_json("/server/webcams/item", &webcam).await.result();
        let test = within("the test", http.post("/server/webcams/test?name=cam")).await.result();
        let known = json!({"name": "cam", "snapshot_reachable": expected, "snapshot_url": url, "stream_url": "rtsp://127.0.0.1/1"});
        assert_eq!(test, known);
    }
    assert_eq!(web.requests("/good").len(), 1);
}

#[tokio::test]
async fn a_test_follows_paths_as_the_relay_does() {
    let (streamer, base) = (Web::start().await, Web::start().await);
    for (web, path) in [(&streamer, "/?action=snapshot"), (&base, "/own/picture")] {
        web.set(path, Page::Typed { content_type: "image/jpeg".into(), body: path.as_bytes().to_vec() });
    }
    let config = format!("[web]\nwebcam_streamers: {}\nwebcam_base: {}", streamer.url(""), base.url(""));
    let server = TestServer::builder().without_printer().config(&config).start().await;
    let http = server.http();
    for (path, leads_to) in [("/webcam/?action=snapshot", streamer.url("/?action=snapshot")), ("own/picture", base.url("/own/picture"))] {
        http.post_json("/server/webcams/item", &json!({"name": "cam", "stream_url": path, "snapshot_url": path})).await.result();
        let test = http.post("/server/webcams/test?name=cam").await.result();
        assert_eq!((&test["name"], &test["snapshot_reachable"]), (&json!("cam"), &json!(true)), "by {leads_to}");
        for told in [&test["snapshot_url"], &test["stream_url"]].map(|url| url.as_str().unwrap()) {
            assert_ne!(told, leads_to, "a streamer at loopback is no address for others");
            let machine = told.strip_prefix("http://").and_then(|rest| rest.strip_suffix(&format!("/{}", path.trim_start_matches('/'))));
            assert!(machine.is_some_and(|machine| machine.parse::<std::net::Ipv4Addr>().is_ok() || machine.starts_with('[')), "{told}");
        }
        assert_eq!(http.get("/server/webcams/snapshot?name=cam").await.status, 200, "the relay fetches it there, too");
    }
}
