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
