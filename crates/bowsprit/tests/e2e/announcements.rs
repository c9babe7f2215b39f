//! Announcements: feeds over HTTP and from files, dismissals, subscriptions; feeds that do harm change nothing.

use serde_json::{Value, json};

use crate::harness::wait::until;
use crate::harness::web::{Page, Web};
use crate::harness::{Builder, TestServer};

/// A feed whose entries have these ids, the first one the newest.
fn feed(ids: &[&str]) -> String {
    let item = |(age, id): (usize, &&str)| {
        let date = format!("Wed, 09 Mar 2022 19:27:{:02} +0000", 59 - age);
        format!(
            "<item><title>{id}!</title><link>https://example.org/{id}</link><description>{id} &amp; more</description><pubDate>{date}</pubDate><category>normal</category><guid>{id}</guid></item>"
        )
    };
    let items: String = ids.iter().enumerate().map(item).collect();
    format!("<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>t</title>{items}</channel></rss>")
}

fn with_feeds(web: &Web, more: &str) -> Builder {
    TestServer::builder().without_printer().config(&format!("[announcements]\nfeeds_url: {}\n{more}", web.url("/feeds")))
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["entries"].as_array().unwrap().iter().map(|entry| entry["entry_id"].as_str().unwrap()).collect()
}

async fn listed(server: &TestServer) -> Value {
    server.http().get("/server/announcements/list").await.result()
}

#[tokio::test]
async fn feeds_are_read_at_the_start_and_then_only_when_they_have_changed() {
    let web = Web::start().await;
    web.set("/feeds/moonraker.xml", Page::Body { etag: "\"1\"".into(), body: feed(&["a/new", "a/old"]).into() });
    let mut server = with_feeds(&web, "subscriptions:\n  Extra\n").start().await;
    let list = until("entries", || listed(&server), |list| ids(list).len() == 2).await;
    assert_eq!((ids(&list), &list["feeds"]), (vec!["a/new", "a/old"], &json!(["core", "firmware", "extra"])));
    let known = json!({"entry_id": "a/new", "url": "https://example.org/a/new", "title": "a/new!", "description": "a/new & more", "priority": "normal",
        "date": 1_646_854_079.0, "dismissed": false, "date_dismissed": null, "dismiss_wake": null, "source": "external", "feed": "core"});
    assert_eq!(list["entries"][0], known);
    server.restart().await;
    until("a conditional request", || async { web.requests("/feeds/moonraker.xml") }, |all| all.len() == 2).await;
    assert!(web.requests("/feeds/moonraker.xml")[1].contains("if-none-match: \"1\""));
    assert_eq!(ids(&listed(&server).await), ["a/new", "a/old"], "kept");

    let mut ws = server.ws().await;
    web.set("/feeds/moonraker.xml", Page::Body { etag: "\"2\"".into(), body: feed(&["a/new", "a/later"]).into() });
    let updated = ws.ok("server.announcements.update", json!({"subscriptions": ["moonraker"]})).await;
    assert_eq!((ids(&updated), &updated["modified"]), (vec!["a/new", "a/later"], &json!(true)));
    assert_eq!(ids(&ws.notified("notify_announcement_update").await[0]).len(), 2);
    assert_eq!(ws.ok("server.announcements.update", json!({})).await["modified"], false);
    let unknown = ws.call("server.announcements.update", json!({"subscriptions": ["none"]})).await.unwrap_err();
    assert_eq!((unknown.code, unknown.message.as_str()), (400, "No subscription for none"));
}

#[tokio::test]
async fn values_have_the_form_that_the_caller_reads() {
    let web = Web::start().await;
    web.set("/feeds/klipper.xml", Page::body(feed(&["k"])));
    let server = with_feeds(&web, "").config_name("moonraker.conf").start().await;
    let list = until("entries", || listed(&server), |list| ids(list) == ["k"]).await;
    assert_eq!(list["feeds"], json!(["moonraker", "klipper"]));
    assert_eq!((&list["entries"][0]["source"], &list["entries"][0]["feed"]), (&json!("moonlight"), &json!("klipper")));
}

#[tokio::test]
async fn a_dismissal_is_kept_and_lapses() {
    let web = Web::start().await;
    web.set("/feeds/moonraker.xml", Page::body(feed(&["a", "b"])));
    let mut server = with_feeds(&web, "").start().await;
    until("entries", || listed(&server), |list| ids(list).len() == 2).await;
    let mut ws = server.ws().await;
    ws.ok("server.announcements.dismiss", json!({"entry_id": "a", "wake_time": null})).await;
    assert_eq!(ws.notified("notify_announcement_dismissed").await, json!([{"entry_id": "a"}]));
    server.http().post("/server/announcements/dismiss?entry_id=b&wake_time=0.2").await.result();
    assert_eq!(ws.notified("notify_announcement_wake").await, json!([{"entry_id": "b"}]));
    server.kill9().await;
    server.start_again().await;
    assert_eq!(ids(&server.http().get("/server/announcements/list?include_dismissed=false").await.result()), ["b"]);
    let all = listed(&server).await;
    assert_eq!((ids(&all), &all["entries"][0]["dismissed"]), (vec!["a", "b"], &json!(true)));
    let missing = server.http().post("/server/announcements/dismiss?entry_id=x").await.error();
    assert_eq!(missing, (400, "No key matching entry id: x".to_owned()));
}

#[tokio::test]
async fn feeds_are_added_and_removed() {
    let web = Web::start().await;
    web.set("/feeds/bot.xml", Page::body(feed(&["bot/1"])));
    let mut server = with_feeds(&web, "subscriptions: fixed\n").start().await;
    let http = server.http();
    assert_eq!(http.post("/server/announcements/feed?name=Bot").await.result(), json!({"feed": "bot", "action": "added"}));
    assert_eq!(http.post("/server/announcements/feed?name=bot").await.result()["action"], "skipped");
    assert_eq!(http.post("/server/announcements/feed?name=../bot").await.status, 400);
    assert_eq!(ids(&listed(&server).await), ["bot/1"]);
    server.restart().await;
    let http = server.http();
    assert_eq!(http.get("/server/announcements/feeds").await.result()["feeds"], json!(["core", "firmware", "fixed", "bot"]));
    assert_eq!(http.delete("/server/announcements/feed?name=bot").await.result(), json!({"feed": "bot", "action": "removed"}));
    assert_eq!(ids(&listed(&server).await), [""; 0]);
    for name in ["bot", "fixed", "moonraker"] {
        assert_eq!(
            http.delete(&format!("/server/announcements/feed?name={name}")).await.error(),
            (400, format!("Feed '{name}' not stored"))
        );
    }
}

#[tokio::test]
async fn feeds_that_do_harm_change_nothing() {
    let web = Web::start().await;
    let path = "/feeds/moonraker.xml";
    web.set(path, Page::body(feed(&["a"])));
    let server = with_feeds(&web, "").start().await;
    until("entries", || listed(&server), |list| ids(list) == ["a"]).await;
    let before = server.resident_kib();
    let bomb = "<!DOCTYPE r [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]><rss><channel><item><guid>&b;</guid></item></channel></rss>";
    let pages = [
        Page::body("<html><body>Not a feed</body></html>"),
        Page::body(bomb),
        Page::body(feed(&["b"]).replace("</rss>", "")),
        Page::body("<rss>".repeat(150_000)),
        Page::redirect("/feeds/moonraker.xml"),
        Page::Status { status: 500, header: "X: y".into() },
        Page::Long { length: 1 << 30, is_announced: true },
        Page::Long { length: 1 << 30, is_announced: false },
    ];
    for page in pages {
        web.set(path, page.clone());
        let updated = server.http().post("/server/announcements/update").await.result();
        assert_eq!((ids(&updated), &updated["modified"]), (vec!["a"], &json!(false)), "{page:?}");
    }
    assert!(server.resident_kib() < before + 32 * 1024, "{} → {} KiB", before, server.resident_kib());
    let lines = server.stderr().lines().filter(|line| line.contains("cannot be read") && line.contains("moonraker")).count();
    assert_eq!(lines, 1, "{}", server.stderr());
    web.set(path, Page::body(feed(&["b"])));
    assert_eq!(ids(&server.http().post("/server/announcements/update").await.result()), ["b"]);
}

#[tokio::test]
async fn without_a_network_everything_else_works() {
    let web = Web::start().await;
    for feed in ["moonraker", "klipper"] {
        web.set(&format!("/feeds/{feed}.xml"), Page::Silence);
    }
    let mut server = with_feeds(&web, "").start().await;
    until(
        "both are asked",
        || async { web.requests("/feeds/klipper.xml").len() + web.requests("/feeds/moonraker.xml").len() },
        |n| *n == 2,
    )
    .await;
    assert_eq!(ids(&listed(&server).await), [""; 0]);
    assert_eq!(server.stop().await, Some(0), "and nobody waits for a feed at the end");
}

#[tokio::test]
async fn developers_of_feeds_read_local_files() {
    let web = Web::start().await;
    let server = with_feeds(&web, "dev_mode: true\n").start().await;
    let folder = server.path("development/announcements");
    until("the folder", || async { folder.is_dir() }, |is_there| *is_there).await;
    std::fs::write(folder.join("klipper.xml"), feed(&["local"])).unwrap();
    let updated = server.http().post("/server/announcements/update").await.result();
    assert_eq!((ids(&updated), &updated["entries"][0]["source"]), (vec!["local"], &json!("external")));
    assert_eq!(server.http().post("/server/announcements/update").await.result()["modified"], false);
    assert!(web.requests("/feeds/klipper.xml").is_empty());
}

#[tokio::test]
async fn a_disk_that_hangs_does_not_keep_the_process() {
    let web = Web::start().await;
    let mut server = with_feeds(&web, "dev_mode: true\n").start().await;
    let folder = server.path("development/announcements");
    until("the folder", || async { folder.is_dir() }, |is_there| *is_there).await;
    // Whoever opens it waits for somebody who writes.
    let pipe = folder.join("moonraker.xml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let mut asking = server.http().connection().await;
    asking.send(b"POST /server/announcements/update HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await;
    until("a thread that waits", || async { waits_for_a_writer(server.pid()) }, |is_so| *is_so).await;
    assert_eq!(server.stop().await, Some(0));
}

/// Is a thread of this process about to open a pipe?
fn waits_for_a_writer(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().any(|thread| std::fs::read_to_string(thread.path().join("wchan")).is_ok_and(|place| place == "wait_for_partner"))
}
