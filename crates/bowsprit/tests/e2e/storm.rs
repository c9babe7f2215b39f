//! Acknowledged means on disk, for the database: kill -9 in the middle of many writers, and the order of system calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::harness::trace::{assert_order, can_trace, steps, traced};
use crate::harness::{Http, TestServer, wait, within};

/// Environment variable with another number of rounds; the figure in docs/performance.md is of 200.
const ROUNDS: &str = "BOWSPRIT_STORM_ROUNDS";

/// Writers at once.
const LANES: usize = 16;

/// A value that shows whether it is whole, and of which write it is.
fn value(key: &str) -> Value {
    json!({"key": key, "text": key.repeat(40), "again": key})
}

/// Writes one value after the other until the server is gone; gives the acknowledged keys.
async fn write_until_killed(http: Http, lane: String, count: Arc<AtomicUsize>) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let key = format!("{lane}n{number}");
        let body = json!({"namespace": "storm", "key": key, "value": value(&key)}).to_string();
        let headers = [("Content-Type", "application/json")];
        match http.try_send("POST", "/server/database/item", &headers, body.as_bytes()).await {
            Some(reply) if reply.status == 200 => acknowledged.push(key),
            _ => break,
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
    acknowledged
}

#[tokio::test]
async fn kill_9_in_write_storms_loses_and_tears_nothing() {
    let rounds = std::env::var(ROUNDS).map_or(20, |rounds| rounds.parse().unwrap());
    let mut server = TestServer::without_printer().await;
    let mut total = 0;
    for round in 0..rounds {
        let count = Arc::new(AtomicUsize::new(0));
        let lanes: Vec<_> =
            (0..LANES).map(|lane| tokio::spawn(write_until_killed(server.http(), format!("r{round}l{lane}"), count.clone()))).collect();
        // Another moment every time.
        let enough = 20 + (round * 13) % 60;
        wait::until("some writes", || async { count.load(Ordering::Relaxed) }, |written| *written >= enough).await;
        server.kill9().await;
        let mut acknowledged = Vec::new();
        for lane in lanes {
            acknowledged.extend(within("a lane ends", lane).await.unwrap());
        }
        server.start_again().await;
        let mut unix = server.unix().await;
        let stored = unix.ok("server.database.get_item", json!({"namespace": "storm"})).await;
        let stored = stored["value"].as_object().unwrap();
        for key in &acknowledged {
            assert!(stored.contains_key(key), "round {round}: {key} was acknowledged and is gone");
        }
        for (key, kept) in stored {
            assert!(*kept == value(key), "round {round}: {key} is torn: {kept}");
            unix.ok("server.database.delete_item", json!({"namespace": "storm", "key": key})).await;
        }
        assert_eq!(server.info().await["warnings"], json!([]), "round {round}");
        total += acknowledged.len();
    }
    println!("{rounds} kills, {total} acknowledged writes, all kept and whole");
}

#[tokio::test]
async fn a_write_is_synced_before_its_answer() {
    if !can_trace() {
        return;
    }
    let mut server = traced(TestServer::builder().without_printer()).start().await;
    let answer = |status: &'static str| ("write|writev|sendto|sendmsg", status);
    let (write, sync) = (("write|pwrite64", "bowsprit.db-wal>"), ("fsync|fdatasync", "bowsprit.db-wal>"));
    // The 404 marks the beginning: what the start has written does not count, and there is only one 200 after it.
    assert_eq!(server.http().get("/server/database/item?namespace=none").await.status, 404);
    server.http().post_json("/server/database/item", &json!({"namespace": "n", "key": "k", "value": 1})).await.result();
    assert_order(&steps(&mut server).await, &[answer("HTTP/1.1 404"), write, sync, answer("HTTP/1.1 200")]);
}

#[tokio::test]
async fn a_backup_is_synced_before_it_gets_its_name_and_its_name_before_the_answer() {
    if !can_trace() {
        return;
    }
    let mut server = traced(TestServer::builder().without_printer()).start().await;
    server.http().post_json("/server/database/backup", &json!({"filename": "a.db"})).await.result();
    assert_order(
        &steps(&mut server).await,
        &[
            ("write|pwrite64", "/backup/database/.a.db."),
            ("fsync|fdatasync", "/backup/database/.a.db."),
            ("rename|renameat|renameat2", "/backup/database/a.db\""),
            ("fsync", "/backup/database>"),
            ("write|writev|sendto|sendmsg", "HTTP/1.1 200"),
        ],
    );
}

#[tokio::test]
async fn hostile_items_are_refused_or_kept_exactly() {
    let server = TestServer::without_printer().await;
    let http = server.http();
    let item = |key: &Value, value: &str| format!(r#"{{"namespace":"n","key":{key},"value":{value}}}"#);
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    let refused = [
        item(&json!("a..b"), "1"),
        item(&json!(".a"), "1"),
        item(&json!("a."), "1"),
        item(&json!(""), "1"),
        item(&json!([]), "1"),
        item(&json!(["a", ""]), "1"),
        item(&json!({"a": 1}), "1"),
        item(&json!(true), "1"),
        item(&json!(vec!["a"; 1000]), "1"),
        item(&json!("x".repeat(5000)), "1"),
        item(&json!("k"), "18446744073709551616"),
        item(&json!("k"), "-9223372036854775809"),
        item(&json!("k"), "1e999"),
        item(&json!("k"), r#""\ud800""#),
        item(&json!("k"), &nested(1000)),
        item(&json!("k"), &text(10 * 1024 * 1024)),
    ];
    let send =
        async |body: &str| http.send("POST", "/server/database/item", &[("Content-Type", "application/json")], body.as_bytes()).await;
    for body in &refused {
        let reply = send(body).await;
        let shown: String = body.chars().take(80).collect();
        assert!(reply.status == 400 || reply.status == 413, "{shown}: {} {}", reply.status, reply.text());
    }
    assert_eq!(http.get("/server/database/item?namespace=n").await.status, 404, "nothing of it was stored");
    let kept = [
        ("a", "18446744073709551615".to_owned()),
        ("b", "-9223372036854775808".to_owned()),
        ("c", "1.50000000000000000001".to_owned()),
        ("d", "1E-400".to_owned()),
        ("e", nested(60)),
        ("f", text(1024 * 1024)),
        ("g", r#"{"z":1,"a":2,"":null}"#.to_owned()),
        ("h", "null".to_owned()),
    ];
    for (key, value) in &kept {
        let reply = send(&item(&json!(key), value)).await;
        assert_eq!(reply.status, 200, "{key}: {}", reply.text().chars().take(200).collect::<String>());
        let read = http.get(&format!("/server/database/item?namespace=n&key={key}")).await.text();
        assert!(read.contains(&format!("\"value\":{value}")), "{key}: {}", read.chars().take(200).collect::<String>());
    }
}
