//! What `Store::open` does with the files that it may find.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use store::rusqlite::Connection;
use store::{Key, Migration, Namespace, Namespaces, Schema, Store, StoreError};
use tempfile::TempDir;

const FRUIT: Namespace = Namespace::fixed("fruit");

const ONE: Migration = Migration { version: 1, name: "notes", sql: "CREATE TABLE note (text TEXT) STRICT" };
const TWO: Migration = Migration { version: 2, name: "colours", sql: "ALTER TABLE note ADD COLUMN colour TEXT" };
const WRONG: Migration = Migration { version: 2, name: "wrong", sql: "CREATE TABLE extra (id INTEGER); CREATE TABEL typo (id)" };

const V1: Schema = Schema { part: "notes", migrations: &[ONE] };
const V2: Schema = Schema { part: "notes", migrations: &[ONE, TWO] };
const V2_WRONG: Schema = Schema { part: "notes", migrations: &[ONE, WRONG] };

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("data").join("database").join("test.db")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.database().parent().unwrap()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Leaves a database with `records` records of 1000 bytes, closed.
    async fn fill(&self, records: usize) {
        let opened = Store::open(&self.database(), &[V1]).unwrap();
        put(&opened.store, records).await;
        opened.store.close().await;
    }
}

async fn put(store: &Store, records: usize) {
    let put = move |conn: &Connection| {
        let value = store::namespace::table::post;
        let text = serde_json::value::to_raw_value(&"x".repeat(1000)).unwrap();
        (0..records).try_for_each(|number| value(conn, &FRUIT, &Key::parse(&format!("k{number}"))?, &text))
    };
    store.write(put).await.unwrap();
}

async fn count(store: &Store) -> i64 {
    let sql = "SELECT count(*) FROM namespace_store";
    store.read(|conn| Ok(conn.query_row(sql, [], |row| row.get(0))?)).await.unwrap()
}

fn refused(path: &Path, schema: Schema) -> StoreError {
    Store::open(path, &[schema]).map(|_| ()).unwrap_err()
}

/// The damaged file was set aside, and the store is new and works.
async fn expect_replaced(place: &Place) {
    let opened = Store::open(&place.database(), &[V1]).unwrap();
    assert!(opened.created);
    assert_eq!(opened.warnings.len(), 1, "{:?}", opened.warnings);
    assert!(opened.warnings[0].contains("test.db.damaged-"), "{:?}", opened.warnings);
    assert_eq!(count(&opened.store).await, 0);
    put(&opened.store, 3).await;
    opened.store.close().await;

    let names = place.names();
    let aside: Vec<_> = names.iter().filter(|name| name.starts_with("test.db.damaged-20") && !name.ends_with("-wal")).collect();
    assert_eq!(aside.len(), 1, "{names:?}");
    let again = Store::open(&place.database(), &[V1]).unwrap();
    assert_eq!((again.created, again.warnings.len(), count(&again.store).await), (false, 0, 3));
}

#[tokio::test]
async fn a_new_database_is_made_with_its_folder_for_us_only() {
    let place = Place::new();
    let opened = Store::open(&place.database(), &[V1]).unwrap();
    assert!(opened.created && opened.warnings.is_empty());
    #[cfg(unix)]
    for name in ["test.db", "test.db-wal"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(place.database().with_file_name(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let settings = |conn: &Connection| {
        let text = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, String>(0));
        let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        Ok((text("PRAGMA journal_mode")?, number("PRAGMA synchronous")?, number("PRAGMA foreign_keys")?, number("PRAGMA cache_size")?))
    };
    assert_eq!(opened.store.write(settings).await.unwrap(), ("wal".to_owned(), 2, 1, -512));
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_drop_without_close() {
    let place = Place::new();
    for round in 1..=5 {
        let namespaces = Namespaces::new(Store::open(&place.database(), &[V1]).unwrap().store);
        namespaces.save(&FRUIT, &Key::parse(&format!("round{round}")).unwrap(), &round).await.unwrap();
        drop(namespaces);
        // The old threads may still be closing: opening waits for them.
        assert_eq!(count(&Store::open(&place.database(), &[V1]).unwrap().store).await, round);
    }
}

/// The threads of stores in this process.
fn threads() -> BTreeSet<PathBuf> {
    let is_ours = |task: &PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("store-"));
    fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path()).filter(is_ours).collect()
}

#[tokio::test]
async fn threads_end_when_the_last_handle_is_dropped() {
    let place = Place::new();
    place.fill(1).await;
    let before = threads();
    let opened = Store::open(&place.database(), &[V1]).unwrap();
    put(&opened.store, 2).await;
    let of_it: BTreeSet<_> = threads().difference(&before).cloned().collect();
    assert!(!of_it.is_empty());
    drop(opened);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !threads().is_disjoint(&of_it) {
        assert!(Instant::now() < deadline, "the threads did not end");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn garbage_is_set_aside() {
    let place = Place::new();
    fs::create_dir_all(place.database().parent().unwrap()).unwrap();
    fs::write(place.database(), "this is no database. ".repeat(400)).unwrap();
    expect_replaced(&place).await;
}

#[tokio::test]
async fn a_short_piece_of_garbage_is_set_aside() {
    let place = Place::new();
    fs::create_dir_all(place.database().parent().unwrap()).unwrap();
    fs::write(place.database(), "x").unwrap();
    expect_replaced(&place).await;
}

#[tokio::test]
async fn a_truncated_database_is_set_aside() {
    let place = Place::new();
    place.fill(300).await;
    let length = fs::metadata(place.database()).unwrap().len();
    fs::OpenOptions::new().write(true).open(place.database()).unwrap().set_len(length / 2).unwrap();
    expect_replaced(&place).await;
}

#[tokio::test]
async fn any_beginning_of_a_database_is_set_aside() {
    for length in [1, 99, 100, 511, 512, 600, 1024, 4095, 4096, 5000, 8192] {
        let place = Place::new();
        place.fill(10).await;
        fs::OpenOptions::new().write(true).open(place.database()).unwrap().set_len(length).unwrap();
        expect_replaced(&place).await;
    }
}

#[tokio::test]
async fn a_truncated_large_database_is_set_aside() {
    let place = Place::new();
    place.fill(6000).await;
    let length = fs::metadata(place.database()).unwrap().len();
    assert!(length > 5 * 1024 * 1024, "must be beyond the full check: {length}");
    fs::OpenOptions::new().write(true).open(place.database()).unwrap().set_len(length - 4096).unwrap();
    expect_replaced(&place).await;
}

#[tokio::test]
async fn a_database_with_overwritten_pages_is_set_aside() {
    let place = Place::new();
    place.fill(300).await;
    let mut bytes = fs::read(place.database()).unwrap();
    bytes[4096..].fill(0xA5);
    fs::write(place.database(), bytes).unwrap();
    expect_replaced(&place).await;
}

#[tokio::test]
async fn an_emptied_file_with_a_wal_is_set_aside_with_it() {
    let place = Place::new();
    let opened = Store::open(&place.database(), &[V1]).unwrap();
    put(&opened.store, 5).await;
    let wal = fs::read(place.database().with_file_name("test.db-wal")).unwrap();
    opened.store.close().await;
    fs::write(place.database(), "").unwrap();
    fs::write(place.database().with_file_name("test.db-wal"), wal).unwrap();
    expect_replaced(&place).await;
    let names = place.names();
    assert!(names.iter().any(|name| name.starts_with("test.db.damaged-") && name.ends_with("-wal")), "{names:?}");
}

#[tokio::test]
async fn damaged_files_never_overwrite_each_other() {
    let place = Place::new();
    fs::create_dir_all(place.database().parent().unwrap()).unwrap();
    for round in 1..=3 {
        fs::write(place.database(), format!("garbage of round {round}").repeat(100)).unwrap();
        Store::open(&place.database(), &[V1]).unwrap().store.close().await;
    }
    let aside: Vec<_> = place.names().into_iter().filter(|name| name.contains(".damaged-")).collect();
    assert_eq!(aside.len(), 3, "{aside:?}");
}

#[tokio::test]
async fn a_lock_of_another_process_is_waited_for() {
    let place = Place::new();
    place.fill(1).await;
    let store = Store::open(&place.database(), &[V1]).unwrap().store;
    let shell = Connection::open(place.database()).unwrap();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut write = tokio::spawn({
        let store = store.clone();
        async move { put(&store, 2).await }
    });
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut write).await.is_err());
    assert_eq!(count(&store).await, 1, "readers do not wait");
    shell.execute_batch("COMMIT").unwrap();
    write.await.unwrap();
    assert_eq!(count(&store).await, 2);
}

#[tokio::test]
async fn migrations_run_once_and_in_order() {
    let place = Place::new();
    place.fill(2).await;
    for _ in 0..2 {
        let opened = Store::open(&place.database(), &[V2]).unwrap();
        assert!(!opened.created);
        opened.store.write(|conn| Ok(conn.execute("INSERT INTO note (text, colour) VALUES ('a', 'red')", [])?)).await.unwrap();
        assert_eq!(count(&opened.store).await, 2);
        opened.store.close().await;
    }
}

#[tokio::test]
async fn a_failed_migration_leaves_no_trace() {
    let place = Place::new();
    place.fill(2).await;
    let error = refused(&place.database(), V2_WRONG);
    assert!(matches!(&error, StoreError::Migration { part, version: 2, .. } if part == "notes"), "{error}");
    let opened = Store::open(&place.database(), &[V2]).unwrap();
    let extra = "SELECT count(*) FROM sqlite_schema WHERE name = 'extra'";
    assert_eq!(opened.store.read(|conn| Ok(conn.query_row(extra, [], |row| row.get(0))?)).await, Ok(0));
    assert_eq!(count(&opened.store).await, 2);
}

#[tokio::test]
async fn a_newer_database_is_refused_untouched() {
    let place = Place::new();
    Store::open(&place.database(), &[V2]).unwrap().store.close().await;
    let before = fs::read(place.database()).unwrap();
    let error = refused(&place.database(), V1);
    assert_eq!(error, StoreError::Newer { part: "notes".into(), found: 2, known: 1 });
    assert!(error.to_string().contains("version 2") && error.to_string().contains("up to 1"), "{error}");
    assert_eq!(fs::read(place.database()).unwrap(), before);
    assert_eq!(place.names(), ["test.db"]);
}

#[test]
fn a_foreign_database_is_refused_untouched() {
    let place = Place::new();
    fs::create_dir_all(place.database().parent().unwrap()).unwrap();
    let foreign = Connection::open(place.database()).unwrap();
    foreign.execute_batch("CREATE TABLE namespace_store (a, b, c)").unwrap();
    drop(foreign);
    let before = fs::read(place.database()).unwrap();
    assert_eq!(refused(&place.database(), V1), StoreError::Foreign { path: place.database() });
    assert_eq!(fs::read(place.database()).unwrap(), before);
}

#[test]
fn an_unusable_place_is_named() {
    let place = Place::new();
    fs::write(place.folder.path().join("data"), "a file where a folder must be").unwrap();
    let error = refused(&place.database(), V1);
    assert!(matches!(&error, StoreError::Location { path, .. } if *path == place.database()), "{error}");

    let error = refused(place.folder.path(), V1);
    assert!(matches!(error, StoreError::Location { .. }), "a folder where a file must be: {error}");
}

#[test]
fn schemas_with_gaps_are_refused() {
    const GAP: Schema = Schema { part: "notes", migrations: &[TWO] };
    assert!(matches!(Store::in_memory(&[GAP]).map(|_| ()), Err(StoreError::Internal(_))));
    assert!(matches!(Store::in_memory(&[V1, V2]).map(|_| ()), Err(StoreError::Internal(_))));
}
