//! A database as the documented schema has it is taken over.

use std::fs;

use store::rusqlite::{Connection, params};
use store::{Key, Namespace, Namespaces};
use tempfile::TempDir;

use super::*;
use crate::build::SCHEMAS;

const SALT: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const HASH: &str = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";
const API_KEY: &str = "0123456789abcdef0123456789abcdef";

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("theirs/database")).unwrap();
        fs::create_dir_all(folder.path().join("backups")).unwrap();
        Self { folder }
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("theirs/database/moonraker-sql.db")
    }

    /// The schema of wire/1-core.md section 8.4 with a bit of everything.
    fn theirs(&self) -> Connection {
        let conn = Connection::open(self.source()).unwrap();
        conn.execute_batch(
            "CREATE TABLE table_registry (name TEXT NOT NULL PRIMARY KEY, prototype TEXT NOT NULL, version INT);
             CREATE TABLE namespace_store (namespace TEXT NOT NULL, key TEXT NOT NULL, value record NOT NULL, PRIMARY KEY (namespace, key));
             CREATE TABLE authorized_users (username TEXT PRIMARY KEY NOT NULL, password TEXT NOT NULL, created_on REAL NOT NULL,
                 salt TEXT NOT NULL, source TEXT NOT NULL, jwt_secret TEXT, jwk_id TEXT, groups pyjson)",
        )
        .unwrap();
        let records: &[(&str, &str, &[u8])] = &[
            ("mainsail", "general", br#"{"printername": "Voron", "weight": 1.50}"#),
            ("mainsail", "initVersion", b"s2.12.0"),
            ("fluidd", "count", b"q\x07\0\0\0\0\0\0\0"),
            ("fluidd", "nothing", b"\0"),
            ("maintenance", "file.with.dots", b"?\x01"),
            ("moonraker", "instance_id", b"sabc"),
            ("moonraker", "file_manager", b"{}"),
            ("database", "unsafe_shutdowns", b"q\x03\0\0\0\0\0\0\0"),
            ("database", "protected_namespaces", br#"["mine"]"#),
            ("gcode_metadata", "a.gcode", b"{}"),
            ("broken", "x", b"q1"),
        ];
        for (namespace, key, value) in records {
            conn.execute("INSERT INTO namespace_store VALUES (?1, ?2, ?3)", params![namespace, key, value]).unwrap();
        }
        let users = [
            ("_API_KEY_USER_", API_KEY, "", "moonraker"),
            ("ann", HASH, SALT, "moonraker"),
            ("bob", "", "", "ldap"),
            ("eve", "no hash", "", "moonraker"),
        ];
        for (name, password, salt, source) in users {
            let sql = "INSERT INTO authorized_users VALUES (?1, ?2, 1600000000.5, ?3, ?4, NULL, NULL, '[\"admin\"]')";
            conn.execute(sql, params![name, password, salt, source]).unwrap();
        }
        conn
    }

    fn ours(&self) -> Store {
        Store::open(&self.folder.path().join("ours.db"), SCHEMAS).unwrap().store
    }

    async fn run(&self, store: &Store) -> String {
        let place = |name: &str| self.folder.path().join(name);
        run(&find(&place("theirs")).unwrap(), store, &place("backups"), &place("gcodes")).await.unwrap().join("\n")
    }

    fn backups(&self) -> usize {
        fs::read_dir(self.folder.path().join("backups")).unwrap().count()
    }
}

async fn whole(store: &Store, namespace: &str) -> Option<String> {
    let found = Namespaces::new(store.clone()).get(&Namespace::parse(namespace).unwrap(), None).await;
    found.ok().map(|json| json.get().to_owned())
}

#[tokio::test]
async fn everything_that_matters_is_taken_and_told() {
    let place = Place::new();
    drop(place.theirs());
    let (before, store) = (fs::read(place.source()).unwrap(), place.ours());
    let report = place.run(&store).await;
    assert_eq!(whole(&store, "mainsail").await.unwrap(), r#"{"general":{"printername": "Voron", "weight": 1.50},"initVersion":"2.12.0"}"#);
    assert_eq!(whole(&store, "fluidd").await.unwrap(), r#"{"count":7,"nothing":null}"#);
    assert_eq!(whole(&store, "maintenance").await.unwrap(), r#"{"file.with.dots":true}"#);
    assert_eq!(whole(&store, "core").await.unwrap(), r#"{"instance_id":"abc"}"#);
    assert_eq!(whole(&store, "database").await.unwrap(), r#"{"protected_namespaces":["mine"]}"#);
    for gone in ["gcode_metadata", "moonraker", "broken"] {
        assert_eq!(whole(&store, gone).await, None, "{gone}");
    }
    let users = access::Users::new(store.clone()).all().await.unwrap();
    let names: Vec<_> = users.iter().map(|user| (user.name.as_str(), user.source, user.created_on)).collect();
    assert_eq!(names, [("ann", rpc::UserSource::Core, 1_600_000_000.5), ("bob", rpc::UserSource::Ldap, 1_600_000_000.5)]);
    assert!(users[0].password == access::PasswordHash::from_pbkdf2_hex(SALT, HASH).unwrap());
    let key: String = store.read(|conn| Ok(conn.query_row("SELECT key FROM access_api_key", [], |row| row.get(0))?)).await.unwrap();
    assert_eq!(key, API_KEY);
    for line in [
        "namespace mainsail: 2 new, 0 replaced, 0 as they were",
        "users taken: ann, bob",
        "API key: taken",
        "left out: broken/x: it cannot be read",
        "left out: gcode_metadata (1): metadata is read again",
        "left out: user eve: the hash",
    ] {
        assert!(report.contains(line), "{line}\n{report}");
    }
    assert!(!report.contains(API_KEY) && !report.contains(HASH), "{report}");
    assert_eq!(fs::read(place.source()).unwrap(), before, "the source is as it was");
    assert_eq!(fs::read_dir(place.source().parent().unwrap()).unwrap().count(), 1, "and nothing is beside it");
}

#[tokio::test]
async fn doing_it_again_changes_nothing() {
    let place = Place::new();
    drop(place.theirs());
    let store = place.ours();
    place.run(&store).await;
    let before = whole(&store, "mainsail").await;
    let report = place.run(&store).await;
    assert!(report.contains("namespace mainsail: 0 new, 0 replaced, 2 as they were"), "{report}");
    assert!(report.contains("users there already, not changed: ann, bob") && report.contains("API key: there already"), "{report}");
    assert_eq!((whole(&store, "mainsail").await, place.backups()), (before, 0));
}

#[tokio::test]
async fn what_is_replaced_is_backed_up_before_and_the_rest_stays() {
    let place = Place::new();
    drop(place.theirs());
    let store = place.ours();
    let namespaces = Namespaces::new(store.clone());
    let mainsail = Namespace::fixed("mainsail");
    for key in ["initVersion", "own"] {
        namespaces.save(&mainsail, &Key::parse(key).unwrap(), &"ours").await.unwrap();
    }
    let report = place.run(&store).await;
    assert!(
        report.contains("namespace mainsail: 1 new, 1 replaced") && report.contains("backup of the state before: before-import-"),
        "{report}"
    );
    assert_eq!(place.backups(), 1);
    let own: Option<String> = namespaces.load(&mainsail, &Key::parse("own").unwrap()).await.unwrap();
    assert_eq!(own.as_deref(), Some("ours"));
}

#[tokio::test]
async fn a_database_in_use_can_be_read() {
    for mode in ["DELETE", "WAL"] {
        let place = Place::new();
        let theirs = place.theirs();
        theirs.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(())).unwrap();
        theirs.execute("INSERT INTO namespace_store VALUES ('late', 'k', 'sx')", []).unwrap();
        // A change under way that is not committed.
        theirs.execute_batch("BEGIN; INSERT INTO namespace_store VALUES ('uncommitted', 'k', 'sx')").unwrap();
        let store = place.ours();
        place.run(&store).await;
        assert_eq!(whole(&store, "late").await.as_deref(), Some(r#"{"k":"x"}"#), "{mode}");
        assert_eq!(whole(&store, "uncommitted").await, None, "{mode}");
        theirs.execute_batch("COMMIT").unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_imported_is_told() {
    let place = Place::new();
    let theirs = place.folder.path().join("theirs");
    let error = find(&theirs).unwrap_err().to_string();
    assert!(error.contains("there is no database"), "{error}");
    assert!(find(&theirs.join("none")).is_err());
    fs::write(theirs.join("database/data.mdb"), "x").unwrap();
    assert!(find(&theirs).unwrap_err().to_string().contains("old format"));
    let store = place.ours();
    for content in ["no database at all", ""] {
        fs::write(place.source(), content.repeat(200)).unwrap();
        assert!(run(&place.source(), &store, &theirs, &theirs).await.is_err());
    }
    assert_eq!(Namespaces::new(store).list().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn the_job_history_keeps_its_numbers_and_is_counted_once() {
    let place = Place::new();
    let theirs = place.theirs();
    theirs
        .execute_batch(
            "CREATE TABLE job_history (job_id INTEGER PRIMARY KEY ASC, user TEXT NOT NULL, filename TEXT, status TEXT NOT NULL, start_time REAL NOT NULL,
               end_time REAL, print_duration REAL NOT NULL, total_duration REAL NOT NULL, filament_used REAL NOT NULL, metadata pyjson,
               auxiliary_data pyjson, instance_id TEXT NOT NULL);
             CREATE TABLE job_totals (provider TEXT NOT NULL, field TEXT NOT NULL, maximum REAL, total REAL, instance_id TEXT NOT NULL,
               PRIMARY KEY (provider, field, instance_id));
             INSERT INTO job_history VALUES (39, 'No User', 'a.gcode', 'completed', 100.0, 200.0, 80.0, 100.0, 5.5, x'7b2273697a65223a357d', '[]', 'default');
             INSERT INTO job_totals VALUES ('history', 'total_jobs', NULL, 40.0, 'default'), ('history', 'longest_job', 100.0, NULL, 'default')",
        )
        .unwrap();
    let store = place.ours();
    for expected in ["job history: 1 new, 0 there already", "job history: 0 new, 1 there already"] {
        let report = place.run(&store).await;
        assert!(report.lines().any(|line| line == expected), "{report}");
    }
    let kept =
        store.read(|conn| Ok(conn.query_row("SELECT id, metadata FROM job", [], |row| Ok((row.get(0)?, row.get(1)?)))?)).await.unwrap();
    assert_eq!(kept, (39, "{\"size\":5}".to_owned()));
    let total = "SELECT total FROM job_total WHERE provider = 'history' AND field = 'total_jobs'";
    assert_eq!(store.read(move |conn| Ok(conn.query_row(total, [], |row| row.get::<_, f64>(0))?)).await.unwrap(), 40.0);
}
