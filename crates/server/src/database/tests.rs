//! The operations as clients call them, over a database of their own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rpc::registry::Verb;
use rpc::{Arguments, Call, Identity, Outcome, Registry};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A printer whose state the test sets.
#[derive(Default)]
struct Printer(Mutex<Option<bool>>);

impl Printing for Printer {
    fn is_printing(&self) -> Option<bool> {
        *self.0.lock()
    }
}

struct Client {
    operations: rpc::Operations,
    database: Arc<Database>,
    printer: Arc<Printer>,
    restarts: Arc<AtomicU32>,
    warnings: Warnings,
    folder: TempDir,
}

impl Client {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("test.db"), &[]).unwrap().store;
        Self::over(store, folder)
    }

    fn over(store: Store, folder: TempDir) -> Self {
        let (printer, restarts, warnings) = (Arc::new(Printer::default()), Arc::new(AtomicU32::new(0)), Warnings::default());
        let count = restarts.clone();
        let parts = DatabaseParts {
            backups: folder.path().join("backups"),
            options: DatabaseOptions { automatic_backups: 2, ..DatabaseOptions::default() },
            debug: true,
            secret_tables: &["schema_version"],
            printing: printer.clone(),
            restart: Box::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
            }),
            warnings: warnings.clone(),
        };
        let database = Database::new(store, parts);
        let mut registry = Registry::default();
        database.register(&mut registry);
        Self { operations: registry.build().unwrap(), database, printer, restarts, warnings, folder }
    }

    async fn call(&self, verb: Verb, body: &str) -> Result<String, ApiError> {
        self.call_at(verb, "/server/database/item", body).await
    }

    /// A POST without a body or with one; the result as JSON.
    async fn post(&self, route: &str, body: Value) -> Result<Value, ApiError> {
        Ok(serde_json::from_str(&self.call_at(Verb::Post, route, &body.to_string()).await?).unwrap())
    }

    async fn backups(&self) -> Vec<String> {
        let list: Value = serde_json::from_str(&self.call_at(Verb::Get, "/server/database/list", "{}").await.unwrap()).unwrap();
        serde_json::from_value(list["backups"].clone()).unwrap()
    }

    async fn call_at(&self, verb: Verb, route: &str, body: &str) -> Result<String, ApiError> {
        let call = Arc::new(Call::http(Identity::Trusted, protocol::Form::Neutral, None));
        let mut arguments = Arguments::none();
        arguments.add_json_object(body).unwrap();
        let operation = self.operations.route(verb, route).unwrap().operation;
        let answer = match operation.invoke(&call, &arguments) {
            Outcome::Done(result) => result,
            Outcome::Working(work) => work.await,
        };
        answer.map(|answer| String::from_utf8(answer.to_vec()).unwrap())
    }
}

#[tokio::test]
async fn items_come_back_as_they_were_stored() {
    let client = Client::new();
    let stored = client.call(Verb::Post, r#"{"namespace":"mainsail","key":["a","b.c"],"value":{"x":1.50}}"#).await.unwrap();
    assert_eq!(stored, r#"{"namespace":"mainsail","key":["a","b.c"],"value":{"x":1.50}}"#);
    assert_eq!(
        client.call(Verb::Get, r#"{"namespace":"mainsail"}"#).await.unwrap(),
        r#"{"namespace":"mainsail","key":null,"value":{"a":{"b.c":{"x":1.50}}}}"#
    );
    let removed = client.call(Verb::Delete, r#"{"namespace":"mainsail","key":"a"}"#).await.unwrap();
    assert_eq!(removed, r#"{"namespace":"mainsail","key":"a","value":{"b.c":{"x":1.50}}}"#);
    let gone = client.call(Verb::Get, r#"{"namespace":"mainsail","key":null}"#).await.unwrap_err();
    assert_eq!((gone.kind, gone.message.as_str()), (ErrorKind::NotFound, "Namespace 'mainsail' not found"));
}

#[tokio::test]
async fn null_is_a_value_and_a_missing_value_is_not() {
    let client = Client::new();
    client.call(Verb::Post, r#"{"namespace":"n","key":"k","value":null}"#).await.unwrap();
    assert_eq!(client.call(Verb::Get, r#"{"namespace":"n","key":"k"}"#).await.unwrap(), r#"{"namespace":"n","key":"k","value":null}"#);
    let missing = client.call(Verb::Post, r#"{"namespace":"n","key":"k"}"#).await.unwrap_err();
    assert_eq!(missing.message, "No data for argument: value");
}

#[tokio::test]
async fn texts_and_kinds_that_clients_compare() {
    let client = Client::new();
    client.call(Verb::Post, r#"{"namespace":"n","key":"k","value":1}"#).await.unwrap();
    let gone = client.call(Verb::Get, r#"{"namespace":"n","key":"a.b"}"#).await.unwrap_err();
    assert_eq!((gone.kind, gone.message.as_str()), (ErrorKind::NotFound, "Key 'a.b' in namespace 'n' not found"));
    for key in [r#""""#, r#""a..b""#, "[]", "5", "{}"] {
        let bad = client.call(Verb::Get, &format!(r#"{{"namespace":"n","key":{key}}}"#)).await.unwrap_err();
        assert_eq!(bad.kind, ErrorKind::BadRequest, "{key}: {}", bad.message);
        assert!(bad.message.contains("key"), "{}", bad.message);
    }
    let denied = client.call(Verb::Post, r#"{"namespace":"moonraker","key":"k","value":1}"#).await.unwrap_err();
    assert_eq!(denied.kind, ErrorKind::Forbidden);
}

#[tokio::test]
async fn both_names_of_our_own_namespace_lead_to_the_same_records() {
    let client = Client::new();
    for name in ["core", "moonraker"] {
        let missing = client.call(Verb::Get, &json!({"namespace": name}).to_string()).await.unwrap_err();
        assert_eq!(missing.message, format!("Namespace '{name}' not found"), "the caller's word");
        let denied = client.call(Verb::Post, &json!({"namespace": name, "key": "k", "value": 1}).to_string()).await.unwrap_err();
        assert!(denied.message.contains(&format!("'{name}'")), "{}", denied.message);
    }
    client.post("/debug/database/item", json!({"namespace": "moonraker", "key": "a", "value": 1})).await.unwrap();
    for name in ["core", "moonraker"] {
        let item = client.call(Verb::Get, &json!({"namespace": name, "key": "a"}).to_string()).await.unwrap();
        assert_eq!(item, format!(r#"{{"namespace":"{name}","key":"a","value":1}}"#));
    }
    let list = client.call_at(Verb::Get, "/server/database/list", "{}").await.unwrap();
    assert_eq!(list, r#"{"namespaces":["core"],"backups":[]}"#);
}

#[tokio::test]
async fn debug_operations_reach_further() {
    let client = Client::new();
    let hidden = json!({"namespace": "database", "key": "a", "value": 1});
    assert_eq!(client.post("/debug/database/item", hidden).await.unwrap_err().kind, ErrorKind::Forbidden);
    let protected = json!({"namespace": "update_manager", "key": "a", "value": 1});
    assert_eq!(client.post("/server/database/item", protected.clone()).await.unwrap_err().kind, ErrorKind::Forbidden);
    client.post("/debug/database/item", protected).await.unwrap();
    let list: Value = serde_json::from_str(&client.call_at(Verb::Get, "/debug/database/list", "{}").await.unwrap()).unwrap();
    assert_eq!(list["tables"], json!(["namespace_store", "schema_version"]));
    assert_eq!(list["namespaces"], json!(["update_manager"]));
    let table = client.call_at(Verb::Get, "/debug/database/table", r#"{"table":"namespace_store"}"#).await.unwrap();
    let expected = r#"{"table_name":"namespace_store","rows":[{"rowid":1,"namespace":"update_manager","key":"a","value":"1"}]}"#;
    assert_eq!(table, expected);
    let missing = client.call_at(Verb::Get, "/debug/database/table", r#"{"table":"none"}"#).await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    let secret = client.call_at(Verb::Get, "/debug/database/table", r#"{"table":"schema_version"}"#).await.unwrap_err();
    assert_eq!(secret.kind, ErrorKind::Forbidden);
    client.call_at(Verb::Delete, "/debug/database/item", r#"{"namespace":"update_manager","key":"a"}"#).await.unwrap();
}

#[tokio::test]
async fn backups_are_made_listed_and_removed() {
    let client = Client::new();
    client.call(Verb::Post, r#"{"namespace":"n","key":"k","value":1}"#).await.unwrap();
    let made = client.post("/server/database/backup", json!({})).await.unwrap();
    let named = client.post("/server/database/backup", json!({"filename": "mine.db"})).await.unwrap();
    assert_eq!(named["backup_path"], client.folder.path().join("backups/mine.db").to_str().unwrap());
    let names = client.backups().await;
    assert!(names.len() == 2 && names[0] == "mine.db" && names[1].starts_with("sqldb-backup-20"), "{names:?}");
    assert!(made["backup_path"].as_str().unwrap().ends_with(&names[1]), "{made}");
    let delete = async |name: &str| client.call_at(Verb::Delete, "/server/database/backup", &format!(r#"{{"filename":"{name}"}}"#)).await;
    assert!(delete("mine.db").await.unwrap().contains("backup_path"));
    assert_eq!(delete("mine.db").await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(delete("../test.db").await.unwrap_err().kind, ErrorKind::BadRequest);
    assert!(client.folder.path().join("test.db").exists());
}

#[tokio::test]
async fn nothing_heavy_is_done_during_a_print() {
    let client = Client::new();
    client.post("/server/database/backup", json!({"filename": "a.db"})).await.unwrap();
    *client.printer.0.lock() = Some(true);
    for (route, body) in [("compact", json!({})), ("backup", json!({})), ("restore", json!({"filename": "a.db"}))] {
        let error = client.post(&format!("/server/database/{route}"), body).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadRequest);
        assert!(error.message.contains("during a print"), "{}", error.message);
    }
    client.database.maintenance.back_up_when_due(SystemTime::now()).await;
    assert_eq!(client.backups().await, ["a.db"]);
    *client.printer.0.lock() = Some(false);
    let sizes = client.post("/server/database/compact", json!({})).await.unwrap();
    assert!(sizes["new_size"].as_u64().unwrap() <= sizes["previous_size"].as_u64().unwrap());
    assert_eq!(client.restarts.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_restore_is_followed_by_a_restart() {
    let client = Client::new();
    client.call(Verb::Post, r#"{"namespace":"n","key":"k","value":1}"#).await.unwrap();
    client.post("/server/database/backup", json!({"filename": "a.db"})).await.unwrap();
    let restored = client.post("/server/database/restore", json!({"filename": "a.db"})).await.unwrap();
    assert_eq!(restored, json!({"restored_tables": ["namespace_store", "schema_version"], "restored_namespaces": ["n"]}));
    assert_eq!(client.restarts.load(Ordering::Relaxed), 1);
    let late = client.call(Verb::Post, r#"{"namespace":"n","key":"k","value":2}"#).await.unwrap_err();
    assert_eq!(late.kind, ErrorKind::Unavailable, "{}", late.message);
    for (route, body) in [("compact", json!({})), ("backup", json!({})), ("restore", json!({"filename": "a.db"}))] {
        assert_eq!(client.post(&format!("/server/database/{route}"), body).await.unwrap_err().kind, ErrorKind::BadRequest);
    }
    let names = client.backups().await;
    assert!(names.len() == 2 && names[1].starts_with("automatic-backup-"), "the state before is kept: {names:?}");
}

#[tokio::test]
async fn what_is_no_backup_is_refused() {
    let client = Client::new();
    client.post("/server/database/backup", json!({"filename": "a.db"})).await.unwrap();
    std::fs::write(client.folder.path().join("backups/text.db"), "not a database").unwrap();
    for (name, kind) in [("text.db", ErrorKind::BadRequest), ("none.db", ErrorKind::BadRequest), ("../test.db", ErrorKind::BadRequest)] {
        let error = client.post("/server/database/restore", json!({"filename": name})).await.unwrap_err();
        assert_eq!(error.kind, kind, "{name}: {}", error.message);
    }
    assert_eq!(client.restarts.load(Ordering::Relaxed), 0);
    client.call(Verb::Post, r#"{"namespace":"n","key":"k","value":2}"#).await.unwrap();
}

#[tokio::test]
async fn automatic_backups_rotate_and_failures_are_shown() {
    let client = Client::new();
    let care = &client.database.maintenance;
    let folder = client.folder.path().join("backups");
    std::fs::create_dir(&folder).unwrap();
    for day in 1..=3 {
        std::fs::write(folder.join(format!("automatic-backup-2020010{day}-000000.db")), "old").unwrap();
    }
    let later = SystemTime::now() + Duration::from_secs(48 * 3600);
    client.call(Verb::Post, r#"{"namespace":"n","key":"k","value":1}"#).await.unwrap();
    let before = client.backups().await;
    for name in &before {
        let file = std::fs::File::options().write(true).open(folder.join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000)).unwrap();
    }
    care.back_up_when_due(later).await;
    let names = client.backups().await;
    assert!(names.len() == 2 && names[0] == before[2] && names[1] > before[2], "{names:?}");
    care.back_up_when_due(SystemTime::now()).await;
    assert_eq!(client.backups().await, names, "not due");

    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "no folder").unwrap();
    care.back_up_when_due(later).await;
    assert!(client.warnings.texts()[0].contains("automatic backup of the database failed"), "{:?}", client.warnings.texts());
    std::fs::remove_file(&folder).unwrap();
    care.back_up_when_due(later).await;
    assert_eq!(client.warnings.texts(), [""; 0]);
}
