//! `bowsprit import` with the real program, and the server that starts on what it took.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use store::rusqlite::Connection;

use crate::harness::TestServer;
use crate::harness::server::BOWSPRIT;

fn import(data: &Path) -> Output {
    Command::new(BOWSPRIT).arg("import").arg("--from").arg(data).arg("-d").arg(data).output().unwrap()
}

/// The database of another server in a data folder.
fn fill(data: &Path) {
    std::fs::create_dir_all(data.join("database")).unwrap();
    let theirs = Connection::open(data.join("database/moonraker-sql.db")).unwrap();
    let schema =
        "CREATE TABLE namespace_store (namespace TEXT NOT NULL, key TEXT NOT NULL, value record NOT NULL, PRIMARY KEY (namespace, key))";
    theirs.execute_batch(schema).unwrap();
    theirs.execute("INSERT INTO namespace_store VALUES ('mainsail', 'general', '{\"printername\":\"Voron\"}')", []).unwrap();
}

#[tokio::test]
async fn a_server_goes_on_with_what_was_imported() {
    let prepare = |data: &Path| {
        fill(data);
        let output = import(data);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.contains("namespace mainsail: 1 new"), "{said}");
    };
    let server = TestServer::builder().without_printer().prepare(prepare).start().await;
    let name = server.ws().await.ok("server.database.get_item", json!({"namespace": "mainsail", "key": "general.printername"})).await;
    assert_eq!(name["value"], "Voron");
    let refused = import(&server.path(""));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("stop it first"), "{said}");
}

/// PBKDF2-HMAC-SHA256 of "old secret", 100,000 rounds, with the salt that is 32 times the byte 7.
const OLD_HASH: &str = "2e35c006e828073c6951777da4efdc4ee2165b8f7c84ed6d8309c2a7c45fac79";

/// Users, jobs and totals of the other server.
fn fill_records(data: &Path) {
    let theirs = Connection::open(data.join("database/moonraker-sql.db")).unwrap();
    let salt = "07".repeat(32);
    let records = format!(
        "CREATE TABLE authorized_users (username TEXT PRIMARY KEY NOT NULL, password TEXT NOT NULL, created_on REAL NOT NULL,
             salt TEXT NOT NULL, source TEXT NOT NULL, jwt_secret TEXT, jwk_id TEXT, groups pyjson);
         INSERT INTO authorized_users VALUES ('anna', '{OLD_HASH}', 1600000000.5, '{salt}', 'moonraker', NULL, NULL, '[]');
         CREATE TABLE job_history (job_id INTEGER PRIMARY KEY ASC, user TEXT NOT NULL, filename TEXT, status TEXT NOT NULL, start_time REAL NOT NULL,
             end_time REAL, print_duration REAL NOT NULL, total_duration REAL NOT NULL, filament_used REAL NOT NULL, metadata pyjson,
             auxiliary_data pyjson, instance_id TEXT NOT NULL);
         INSERT INTO job_history VALUES (39, 'No User', 'a.gcode', 'completed', 100.0, 200.0, 80.0, 100.0, 5.5, '{{}}', '[]', 'default');
         CREATE TABLE job_totals (provider TEXT NOT NULL, field TEXT NOT NULL, maximum REAL, total REAL, instance_id TEXT NOT NULL,
             PRIMARY KEY (provider, field, instance_id));
         INSERT INTO job_totals VALUES ('history', 'total_jobs', NULL, 40.0, 'default'), ('history', 'longest_job', 100.0, NULL, 'default')"
    );
    theirs.execute_batch(&records).unwrap();
}

#[tokio::test]
async fn imported_users_log_in_and_imported_jobs_are_listed() {
    let prepare = |data: &Path| {
        fill(data);
        fill_records(data);
        assert!(import(data).status.success());
    };
    let mut server = TestServer::builder().without_printer().prepare(prepare).start().await;
    let login = |password: &str| json!({"username": "anna", "password": password});
    assert_eq!(server.http().post_json("/access/login", &login("wrong")).await.status, 401);
    assert_eq!(server.http().post_json("/access/login", &login("old secret")).await.result()["username"], "anna");
    // The hash was replaced by a better one of the same password.
    server.restart().await;
    assert_eq!(server.http().post_json("/access/login", &login("old secret")).await.status, 200);
    let jobs = server.http().get("/server/history/list").await.result();
    let job = &jobs["jobs"][0];
    assert_eq!((&jobs["count"], &job["job_id"], &job["status"]), (&json!(1), &json!("000027"), &json!("completed")), "{jobs}");
    let totals = server.http().get("/server/history/totals").await.result()["job_totals"].clone();
    assert_eq!((totals["total_jobs"].as_f64(), totals["longest_job"].as_f64()), (Some(40.0), Some(100.0)), "{totals}");
}

/// What front ends show beside a file: its last print. The second file was replaced since.
#[tokio::test]
async fn files_know_their_imported_prints() {
    let prepare = |data: &Path| {
        fill(data);
        fill_records(data);
        std::fs::create_dir_all(data.join("gcodes")).unwrap();
        let theirs = Connection::open(data.join("database/moonraker-sql.db")).unwrap();
        for (id, name) in [(40, "same.gcode"), (41, "other.gcode")] {
            std::fs::write(data.join("gcodes").join(name), "G28\n").unwrap();
            let modified = std::fs::metadata(data.join("gcodes").join(name)).unwrap().modified().unwrap();
            let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
            let metadata = json!({"size": if id == 40 { 4 } else { 5 }, "modified": modified, "uuid": "x"}).to_string();
            let sql =
                "INSERT INTO job_history VALUES (?1, 'No User', ?2, 'completed', 300.25, 400.0, 80.0, 100.0, 5.5, ?3, '[]', 'default')";
            theirs.execute(sql, (id, name, metadata)).unwrap();
        }
        assert!(import(data).status.success());
    };
    let server = TestServer::builder().without_printer().prepare(prepare).start().await;
    let mut ws = server.ws().await;
    let last = |found: &serde_json::Value| (found["job_id"].clone(), found["print_start_time"].clone());
    let printed = (json!("000028"), json!(300.25));
    for method in ["server.files.metadata", "server.files.metascan", "server.files.metadata"] {
        let found = ws.ok(method, json!({"filename": "same.gcode"})).await;
        assert_eq!((last(&found), &found["slicer"]), (printed.clone(), &json!("Unknown")), "{method}");
    }
    assert_eq!(last(&ws.ok("server.files.metadata", json!({"filename": "other.gcode"})).await), (json!(null), json!(null)));
    let listed = ws.ok("server.files.get_directory", json!({"path": "gcodes", "extended": true})).await;
    let same = listed["files"].as_array().unwrap().iter().find(|file| file["filename"] == "same.gcode").unwrap();
    assert_eq!(last(same), printed);
    server.upload("same.gcode", "G28\nG1 X1\n").await;
    assert_eq!(last(&ws.ok("server.files.metadata", json!({"filename": "same.gcode"})).await), (json!(null), json!(null)), "replaced");
}
