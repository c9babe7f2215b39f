//! Copies of the database: made whole, refused when they are not, and put in the place of the database without ever mixing the two.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use store::rusqlite::Connection;
use store::{Contents, Key, Migration, Namespace, Namespaces, Opened, Schema, Store, StoreError};
use tempfile::TempDir;

const FRUIT: Namespace = Namespace::fixed("fruit");

const NOTES: Migration = Migration { version: 1, name: "notes", sql: "CREATE TABLE note (text TEXT) STRICT" };
const COLOURS: Migration = Migration { version: 2, name: "colours", sql: "ALTER TABLE note ADD COLUMN colour TEXT" };
const V1: Schema = Schema { part: "notes", migrations: &[NOTES] };
const V2: Schema = Schema { part: "notes", migrations: &[NOTES, COLOURS] };

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: TempDir::new().unwrap() };
        fs::create_dir(place.backups()).unwrap();
        place
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("database").join("test.db")
    }

    fn backups(&self) -> PathBuf {
        self.folder.path().join("back ups?ä")
    }

    fn open(&self) -> Opened {
        Store::open_or_restore(&self.database(), &self.backups(), &[V1]).unwrap()
    }

    /// Names beside the database, without the files that SQLite keeps there.
    fn names(&self) -> Vec<String> {
        let mut names = names(self.database().parent().unwrap());
        names.retain(|name| name != "test.db-wal" && name != "test.db-shm");
        names
    }

    /// Spoils the database so that the check at the start finds it.
    fn damage(&self) {
        let mut bytes = fs::read(self.database()).unwrap();
        bytes[4096..].fill(0xA5);
        fs::write(self.database(), bytes).unwrap();
    }

    /// Makes a backup that looks `minutes` old.
    async fn backup(&self, store: &Store, name: &str, minutes: u64) -> PathBuf {
        let path = self.backups().join(name);
        store.backup(path.clone()).await.unwrap();
        age(&path, minutes);
        path
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn age(path: &Path, minutes: u64) {
    let time = SystemTime::now() - Duration::from_secs(minutes * 60);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Writes the same number into a record and into a table of another component.
async fn put(store: &Store, number: i64) -> Result<(), StoreError> {
    let work = move |conn: &Connection| {
        let json = serde_json::value::to_raw_value(&number).unwrap();
        store::namespace::table::post(conn, &FRUIT, &Key::parse("number")?, &json)?;
        conn.execute("DELETE FROM note", [])?;
        conn.execute("INSERT INTO note (text) VALUES (?1)", [number.to_string()])?;
        Ok(())
    };
    store.write(work).await
}

/// The number that both hold.
async fn number(store: &Store) -> i64 {
    let record: i64 = Namespaces::new(store.clone()).load(&FRUIT, &Key::parse("number").unwrap()).await.unwrap().unwrap();
    let note: String = store.read(|conn| Ok(conn.query_row("SELECT text FROM note", [], |row| row.get(0))?)).await.unwrap();
    assert_eq!(note, record.to_string(), "the tables are of one moment");
    record
}

#[tokio::test]
async fn a_backup_holds_what_was_acknowledged_and_is_for_us_only() {
    let place = Place::new();
    let store = place.open().store;
    put(&store, 1).await.unwrap();
    let target = place.backups().join("a.db");
    fs::write(&target, "something older").unwrap();
    store.backup(target.clone()).await.unwrap();
    put(&store, 2).await.unwrap();
    assert_eq!(names(&place.backups()), ["a.db"]);
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&target).unwrap().permissions()) & 0o777, 0o600);
    let copy = Store::open(&target, &[V1]).unwrap();
    assert_eq!((copy.created, copy.warnings.len(), number(&copy.store).await, number(&store).await), (false, 0, 1, 2));
}

#[tokio::test]
async fn a_backup_that_fails_leaves_the_older_one() {
    let place = Place::new();
    let store = place.open().store;
    put(&store, 1).await.unwrap();
    let missing = place.folder.path().join("none").join("a.db");
    assert!(matches!(store.backup(missing).await, Err(StoreError::Io(_))));
    let folder = place.backups().join("a.db");
    fs::create_dir(&folder).unwrap();
    assert!(matches!(store.backup(folder.clone()).await, Err(StoreError::Io(_))));
    assert_eq!(names(&place.backups()), ["a.db"]);
    assert_eq!(number(&store).await, 1);
}

#[tokio::test]
async fn compacting_gives_space_back() {
    let place = Place::new();
    let store = place.open().store;
    let fill = |conn: &Connection| Ok(conn.execute("INSERT INTO note SELECT hex(randomblob(500000))", [])?);
    store.write(fill).await.unwrap();
    put(&store, 1).await.unwrap();
    let sizes = store.compact().await.unwrap();
    assert!(sizes.previous_size > 1_000_000 && sizes.new_size < 100_000, "{sizes:?}");
    assert_eq!(fs::metadata(place.database()).unwrap().len(), sizes.new_size);
    put(&store, 2).await.unwrap();
    assert_eq!(number(&store).await, 2);
}

#[tokio::test]
async fn a_restored_backup_brings_back_every_table() {
    let place = Place::new();
    let store = place.open().store;
    put(&store, 1).await.unwrap();
    let backup = place.backup(&store, "a.db", 0).await;
    put(&store, 2).await.unwrap();
    let contents = store.restore(backup).await.unwrap();
    let tables = ["namespace_store", "note", "schema_version"].map(str::to_owned).to_vec();
    assert_eq!(contents, Contents { tables, namespaces: vec!["fruit".to_owned()] });
    assert_eq!(put(&store, 3).await, Err(StoreError::Replaced), "nothing is acknowledged that would be lost");
    assert_eq!(store.compact().await, Err(StoreError::Replaced));
    assert_eq!(number(&store).await, 2);
    store.close().await;
    let opened = place.open();
    assert_eq!((opened.created, opened.warnings.len(), number(&opened.store).await), (false, 0, 1));
    assert_eq!(place.names(), ["test.db"]);
    put(&opened.store, 4).await.unwrap();
}

#[tokio::test]
async fn files_that_are_no_backup_are_refused_and_nothing_is_lost() {
    let place = Place::new();
    let opened = Store::open_or_restore(&place.database(), &place.backups(), &[V1]).unwrap();
    let store = opened.store;
    put(&store, 1).await.unwrap();
    let good = fs::read(place.backup(&store, "good.db", 0).await).unwrap();
    let newer = Store::open(&place.folder.path().join("newer.db"), &[V2]).unwrap().store;
    newer.close().await;
    let foreign = Connection::open(place.folder.path().join("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE namespace_store (namespace, key, value)").unwrap();
    drop(foreign);
    let mut spoilt = good.clone();
    spoilt[4096..4200].fill(0xA5);
    let from = |name: &str| fs::read(place.folder.path().join(name)).unwrap();
    let cases = [
        ("text", b"this is no database at all".repeat(100), "damaged or no database"),
        ("empty", Vec::new(), "another program"),
        ("truncated", good[..good.len() - 4096].to_vec(), "damaged or no database"),
        ("head", good[..100].to_vec(), "damaged or no database"),
        ("spoilt", spoilt, "damaged or no database"),
        ("newer", from("newer.db"), "newer version"),
        ("foreign", from("foreign.db"), "another program"),
    ];
    for (name, bytes, text) in cases {
        let path = place.backups().join(name);
        fs::write(&path, bytes).unwrap();
        let error = store.restore(path).await.unwrap_err();
        assert!(matches!(&error, StoreError::BadBackup(reason) if reason.contains(text)), "{name}: {error}");
        assert_eq!(place.names(), ["test.db"], "{name}");
        put(&store, 1).await.unwrap();
    }
    assert!(matches!(store.restore(place.backups().join("none")).await, Err(StoreError::Io(_))));
    store.close().await;
    assert_eq!(number(&place.open().store).await, 1);
}

/// Every state that a crash can leave between the decision and the end of a restore.
#[tokio::test]
async fn an_interrupted_restore_is_finished() {
    for step in 0..4 {
        let place = Place::new();
        let store = place.open().store;
        put(&store, 1).await.unwrap();
        let backup = place.backup(&store, "a.db", 0).await;
        put(&store, 2).await.unwrap();
        // What a killed process leaves: the database with its WAL, which holds the second number.
        let side = |suffix: &str| PathBuf::from(format!("{}{suffix}", place.database().display()));
        let left: Vec<_> = ["", "-wal"].map(side).into_iter().map(|path| (path.clone(), fs::read(&path).unwrap())).collect();
        store.close().await;
        left.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        let copy = if step == 0 { ".restore-part" } else { ".restore" };
        fs::copy(&backup, side(copy)).unwrap();
        if step >= 2 {
            fs::remove_file(side("-wal")).unwrap();
        }
        if step == 3 {
            fs::rename(side(".restore"), place.database()).unwrap();
        }
        let opened = place.open();
        assert_eq!((number(&opened.store).await, opened.warnings), (if step == 0 { 2 } else { 1 }, Vec::new()), "step {step}");
        assert_eq!(place.names(), ["test.db"], "step {step}");
    }
}

#[tokio::test]
async fn a_prepared_copy_that_went_bad_is_not_used() {
    let place = Place::new();
    let store = place.open().store;
    put(&store, 1).await.unwrap();
    store.close().await;
    fs::write(place.database().with_file_name("test.db.restore"), "rubbish").unwrap();
    let opened = place.open();
    assert_eq!(number(&opened.store).await, 1);
    assert!(opened.warnings[0].contains("was not used"), "{:?}", opened.warnings);
    assert!(place.names()[1].starts_with("test.db.restore.damaged-"), "{:?}", place.names());
}

#[tokio::test]
async fn a_damaged_database_is_replaced_by_its_newest_good_backup() {
    let place = Place::new();
    let store = place.open().store;
    for (value, name, minutes) in [(1, "old.db", 50), (2, "good.db", 40), (3, "spoilt.db", 30)] {
        put(&store, value).await.unwrap();
        place.backup(&store, name, minutes).await;
    }
    let spoilt = place.backups().join("spoilt.db");
    fs::File::options().write(true).open(&spoilt).unwrap().set_len(5000).unwrap();
    age(&spoilt, 30);
    fs::write(place.backups().join("notes.txt"), "not for us").unwrap();
    Store::open(&place.backups().join("newer.db"), &[V2]).unwrap().store.close().await;
    put(&store, 4).await.unwrap();
    store.close().await;
    place.damage();

    let opened = place.open();
    assert_eq!((opened.created, number(&opened.store).await), (false, 2));
    let warnings = opened.warnings.join("\n");
    assert!(warnings.contains("was damaged (") && warnings.contains("replaced by its backup of 20"), "{warnings}");
    let kept = place.names();
    assert!(kept.len() == 2 && kept[1].starts_with("test.db.damaged-"), "{kept:?}");
    assert!(warnings.contains(&kept[1]), "{warnings}");
    put(&opened.store, 5).await.unwrap();
    opened.store.close().await;
    let again = place.open();
    assert_eq!((again.warnings.len(), number(&again.store).await), (0, 5));
}

#[tokio::test]
async fn without_a_good_backup_a_new_database_is_made() {
    let place = Place::new();
    let store = place.open().store;
    put(&store, 1).await.unwrap();
    store.close().await;
    place.damage();
    fs::write(place.backups().join("a.db"), "rubbish").unwrap();
    let opened = place.open();
    assert!(opened.created && opened.warnings.len() == 1 && opened.warnings[0].contains("new, empty one"), "{:?}", opened.warnings);
}

/// A crash after the decision for a backup, before the damaged file was set aside, and after.
#[tokio::test]
async fn an_interrupted_replacement_of_a_damaged_database_is_finished() {
    for is_set_aside in [false, true] {
        let place = Place::new();
        let store = place.open().store;
        put(&store, 1).await.unwrap();
        let backup = place.backup(&store, "a.db", 10).await;
        store.close().await;
        place.damage();
        fs::copy(&backup, place.database().with_file_name("test.db.fallback")).unwrap();
        if is_set_aside {
            fs::rename(place.database(), place.database().with_file_name("test.db.damaged-x")).unwrap();
        }
        let opened = place.open();
        assert_eq!((opened.created, number(&opened.store).await), (false, 1));
        assert!(opened.warnings[0].contains("replaced by its backup"), "{:?}", opened.warnings);
        assert_eq!(place.names().len(), 2, "{:?}", place.names());
    }
}

#[tokio::test]
async fn a_database_in_memory_has_no_backups() {
    let store = Store::in_memory(&[V1]).unwrap();
    assert_eq!(store.backup(PathBuf::from("/nowhere")).await, Err(StoreError::NoFile));
    assert_eq!(store.restore(PathBuf::from("/nowhere")).await, Err(StoreError::NoFile));
    assert_eq!(store.compact().await.map(|sizes| sizes.new_size > 0), Ok(true));
}
