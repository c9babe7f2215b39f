//! The database's file: copies, restore with restart, damage at the start, and what a killed process leaves of all that.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::printer::long_job;
use crate::harness::ws::Ws;
use crate::harness::{TestServer, wait};

async fn put(ws: &mut Ws, value: i64) {
    ws.ok("server.database.post_item", json!({"namespace": "n", "key": "k", "value": value})).await;
}

async fn value(server: &TestServer) -> Value {
    server.unix().await.ok("server.database.get_item", json!({"namespace": "n", "key": "k"})).await["value"].clone()
}

async fn backups(server: &TestServer) -> Vec<String> {
    serde_json::from_value(server.unix().await.ok("server.database.list", json!({})).await["backups"].clone()).unwrap()
}

/// Backups made by clients, without those that the server makes by itself.
async fn asked_for(server: &TestServer) -> Vec<String> {
    backups(server).await.into_iter().filter(|name| !name.starts_with("automatic-backup-")).collect()
}

fn database(server: &TestServer) -> PathBuf {
    server.path("database/bowsprit.db")
}

#[tokio::test]
async fn a_backup_is_restored_and_the_server_restarts() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    put(&mut ws, 1).await;
    let made = server.http().post("/server/database/backup").await.result();
    let names = asked_for(&server).await;
    assert_eq!(made["backup_path"], server.path("backup/database").join(&names[0]).canonicalize().unwrap().to_str().unwrap());
    put(&mut ws, 2).await;
    let restored = ws.ok("server.database.restore", json!({"filename": names[0]})).await;
    assert!(restored["restored_namespaces"].as_array().unwrap().contains(&json!("n")), "{restored}");
    assert!(restored["restored_tables"].as_array().unwrap().contains(&json!("namespace_store")), "{restored}");
    assert_eq!(ws.channel.closed().await, Some(1001), "the restart ends connections");
    let look =
        || async { server.http().try_send("GET", "/server/database/item?namespace=n&key=k", &[], b"").await.map(|reply| reply.json()) };
    wait::until("the restored value", look, |reply| reply.as_ref().is_some_and(|reply| reply["result"]["value"] == 1)).await;
    assert_eq!(server.info().await["warnings"], json!([]));
    let kept: Vec<String> = backups(&server).await.into_iter().filter(|name| name.starts_with("automatic-")).collect();
    assert!(!kept.is_empty(), "the state before the restore is kept");
    let gone = server.http().delete(&format!("/server/database/backup?filename={}", names[0])).await.result();
    assert_eq!(gone, made);
    assert_eq!(asked_for(&server).await, [""; 0]);
}

#[tokio::test]
async fn what_is_no_backup_changes_nothing() {
    let mut server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    put(&mut ws, 1).await;
    ws.ok("server.database.post_backup", json!({"filename": "good.db"})).await;
    let folder = server.path("backup/database");
    let good = std::fs::read(folder.join("good.db")).unwrap();
    std::fs::write(folder.join("short.db"), &good[..good.len() / 2]).unwrap();
    std::fs::write(folder.join("text.db"), "this is no database").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link.db")).unwrap();
    let cases =
        [("short.db", 400), ("text.db", 400), ("link.db", 400), ("none.db", 400), ("../good.db", 400), ("", 400), ("/etc/passwd", 400)];
    for (name, code) in cases {
        let error = ws.call("server.database.restore", json!({"filename": name})).await.unwrap_err();
        assert_eq!(error.code, code, "{name}: {}", error.message);
    }
    for name in ["../../a.db", "a/b.db", "..", ".hidden", "a\u{0}b", &"x".repeat(300)] {
        let error = ws.call("server.database.post_backup", json!({"filename": name})).await.unwrap_err();
        assert_eq!(error.code, 400, "{name}: {}", error.message);
        ws.call("server.database.delete_backup", json!({"filename": name})).await.unwrap_err();
    }
    put(&mut ws, 2).await;
    server.restart().await;
    assert_eq!((value(&server).await, &server.info().await["warnings"]), (json!(2), &json!([])));
}

#[tokio::test]
async fn a_damaged_database_is_replaced_by_the_newest_good_backup() {
    let mut server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    put(&mut ws, 1).await;
    ws.ok("server.database.post_backup", json!({"filename": "good.db"})).await;
    put(&mut ws, 2).await;
    ws.ok("server.database.post_backup", json!({"filename": "later.db"})).await;
    assert_eq!(server.stop().await, Some(0));
    let later = server.path("backup/database/later.db");
    std::fs::write(&later, &std::fs::read(&later).unwrap()[..5000]).unwrap();
    let mut bytes = std::fs::read(database(&server)).unwrap();
    bytes[4096..].fill(0x5A);
    std::fs::write(database(&server), bytes).unwrap();
    server.start_again().await;
    assert_eq!(value(&server).await, 1);
    let warnings = server.info().await["warnings"].to_string();
    assert!(warnings.contains("bowsprit.db.damaged-") && warnings.contains("replaced by its backup"), "{warnings}");
    server.restart().await;
    assert_eq!((value(&server).await, &server.info().await["warnings"]), (json!(1), &json!([])));
}

#[tokio::test]
async fn nothing_heavy_during_a_print() {
    let server = TestServer::start().await;
    let mut ws = server.ws().await;
    ws.ok("server.database.post_backup", json!({"filename": "a.db"})).await;
    server.upload("long.gcode", &long_job()).await;
    ws.ok("printer.objects.subscribe", json!({"objects": {"print_stats": ["state"]}})).await;
    ws.ok("printer.print.start", json!({"filename": "long.gcode"})).await;
    ws.status("print_stats/state", "printing").await;
    for (operation, params) in [("compact", json!({})), ("post_backup", json!({})), ("restore", json!({"filename": "a.db"}))] {
        let error = ws.call(&format!("server.database.{operation}"), params).await.unwrap_err();
        assert_eq!(error.code, 400, "{}", error.message);
        assert!(error.message.contains("during a print"), "{}", error.message);
    }
    ws.ok("printer.print.pause", json!({})).await;
    ws.status("print_stats/state", "paused").await;
    let sizes = ws.ok("server.database.compact", json!({})).await;
    assert!(sizes["new_size"].as_u64().unwrap() > 0 && sizes["previous_size"].as_u64() >= sizes["new_size"].as_u64(), "{sizes}");
}

#[tokio::test]
async fn backups_are_made_without_asking() {
    let server = TestServer::start().await;
    let made = wait::until("an automatic backup", || backups(&server), |names| !names.is_empty()).await;
    assert!(made[0].starts_with("automatic-backup-20"), "{made:?}");
}

#[tokio::test]
async fn backups_can_be_switched_off() {
    let server = TestServer::builder().config("[database]\nautomatic_backups: 0\n").start().await;
    server.ws().await.ok("server.database.post_backup", json!({"filename": "a.db"})).await;
    assert_eq!(server.info().await["warnings"], json!([]));
    assert_eq!(server.unix().await.ok("server.config", json!({})).await["config"]["database"]["automatic_backups"], 0);
}

#[tokio::test]
async fn debug_operations_need_the_flag() {
    let target = "/debug/database/table?table=namespace_store";
    let server = TestServer::without_printer().await;
    assert_eq!(server.http().get(target).await.status, 404);
    let unknown = server.ws().await.call("debug.database.list", json!({})).await.unwrap_err();
    assert_eq!(unknown.code, -32601);

    let server = TestServer::builder().without_printer().args(&["-n", "-g"]).start().await;
    let item = json!({"namespace": "core", "key": "a", "value": {"b": null}});
    server.http().post_json("/debug/database/item", &item).await.result();
    let mut ws = server.ws().await;
    let read = ws.ok("server.database.get_item", json!({"namespace": "moonraker", "key": "a.b"})).await;
    assert_eq!(read["value"], Value::Null);
    let table = server.http().get(target).await.result();
    assert_eq!((&table["table_name"], &table["rows"][0]["value"]), (&json!("namespace_store"), &json!("{\"b\":null}")));
    assert!(ws.ok("debug.database.list", json!({})).await["tables"].as_array().unwrap().contains(&json!("namespace_store")));
    ws.ok("debug.database.delete_item", json!({"namespace": "core", "key": "a"})).await;
}

/// Killed at any moment of a restore, the server comes up with the whole backup or with the whole database before it.
#[tokio::test]
async fn kill_9_during_a_restore_never_mixes() {
    let mut server = TestServer::builder().without_printer().config("[database]\nautomatic_backups: 1\n").start().await;
    let filler = "x".repeat(2000);
    let fill = json!({"namespace": "filler", "key": "k", "value": vec![filler; 500]});
    server.ws().await.ok("server.database.post_item", fill).await;
    let mut outcomes = Vec::new();
    for round in 0..8_u64 {
        let mut ws = server.ws().await;
        for key in ["a", "b"] {
            ws.ok("server.database.post_item", json!({"namespace": key, "key": "k", "value": "old"})).await;
        }
        ws.ok("server.database.post_backup", json!({"filename": "a.db"})).await;
        for key in ["a", "b"] {
            ws.ok("server.database.post_item", json!({"namespace": key, "key": "k", "value": "new"})).await;
        }
        let request = ws.begin("server.database.restore", json!({"filename": "a.db"})).await;
        // Another moment every time; the last rounds come after the answer, into the restart.
        if round < 6 {
            tokio::time::sleep(Duration::from_millis(round * round * 4)).await;
        } else {
            let _ = ws.answer(request).await;
            tokio::time::sleep(Duration::from_millis(90 + (round - 6) * 30)).await;
        }
        server.kill9().await;
        server.start_again().await;
        let mut ws = server.ws().await;
        let mut seen = Vec::new();
        for key in ["a", "b"] {
            seen.push(ws.ok("server.database.get_item", json!({"namespace": key, "key": "k"})).await["value"].clone());
        }
        assert_eq!(seen[0], seen[1], "round {round}");
        assert_eq!(server.info().await["warnings"], json!([]), "round {round}");
        outcomes.push(seen[0].clone());
    }
    assert!(outcomes[6..].iter().all(|value| value == "old"), "an acknowledged restore happens: {outcomes:?}");
}
