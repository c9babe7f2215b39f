//! The mechanism: group commit, isolation of jobs, order of life. Files and damage are tested in `tests/disk`.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;

use super::*;

const NOTES: Schema = Schema {
    part: "notes",
    migrations: &[Migration {
        version: 1,
        name: "notes",
        sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT",
    }],
};

/// Far longer than anything here takes; only a hang reaches it.
const DEADLINE: Duration = Duration::from_secs(20);

fn database(folder: &TempDir) -> PathBuf {
    folder.path().join("database").join("test.db")
}

fn open(folder: &TempDir) -> Store {
    let opened = Store::open(&database(folder), &[NOTES]).unwrap();
    assert_eq!(opened.warnings, [""; 0]);
    opened.store
}

fn add(text: &str) -> impl FnOnce(&Connection) -> Result<i64, StoreError> + Send + 'static {
    let text = text.to_owned();
    move |conn| {
        conn.execute("INSERT INTO note (text) VALUES (?1)", [text])?;
        Ok(conn.last_insert_rowid())
    }
}

fn texts(conn: &Connection) -> Result<Vec<String>, StoreError> {
    let mut select = conn.prepare_cached("SELECT text FROM note ORDER BY text")?;
    Ok(select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Keeps the writer busy until the returned sender is used, so that jobs pile up behind it.
fn block_writer(store: &Store) -> std::sync::mpsc::Sender<()> {
    let (release, wait) = std::sync::mpsc::channel();
    let (job, _answer) = job::pack(move |_| Ok(wait.recv().is_ok()));
    store.threads.writer().unwrap().try_send(job).unwrap_or_else(|_| panic!("queue full"));
    release
}

#[tokio::test]
async fn reads_see_what_was_acknowledged() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    for round in 0..20 {
        store.write(add(&format!("note {round}"))).await.unwrap();
        assert_eq!(store.read(texts).await.unwrap().len(), round + 1);
    }
    assert_eq!(store.stats().reads, 20);
}

#[tokio::test]
async fn many_writers_share_commits() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let release = block_writer(&store);
    let writers: Vec<_> = (0..200)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.write(add(&format!("note {number}"))).await })
        })
        .collect();
    while store.threads.writer().unwrap().capacity() > 0 {
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    for writer in writers {
        timeout(DEADLINE, writer).await.unwrap().unwrap().unwrap();
    }
    let stats = store.stats();
    assert_eq!(store.read(texts).await.unwrap().len(), 200);
    assert_eq!(stats.writes, 201);
    assert!(stats.commits < 100, "{stats:?}");
    assert!(stats.largest_batch > 1 && stats.largest_batch <= 64, "{stats:?}");
}

#[tokio::test]
async fn a_failing_job_takes_only_its_own_changes() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let release = block_writer(&store);
    let half_done = |conn: &Connection| -> Result<(), StoreError> {
        add("half")(conn)?;
        add("before")(conn).map(|_| ())
    };
    let panicking = |conn: &Connection| -> Result<(), StoreError> {
        add("panicking")(conn)?;
        panic!("on purpose");
    };
    let jobs = async {
        tokio::join!(store.write(add("before")), store.write(half_done), store.write(panicking), store.write(add("after")), async {
            release.send(()).unwrap();
        })
    };
    let (before, half_done, panicking, after, ()) = timeout(DEADLINE, jobs).await.unwrap();
    before.unwrap();
    after.unwrap();
    assert!(matches!(half_done, Err(StoreError::Conflict(_))));
    assert_eq!(panicking, Err(StoreError::Panicked("on purpose".into())));
    assert_eq!(store.read(texts).await.unwrap(), ["after", "before"]);
    assert!(store.stats().commits <= 2, "{:?}", store.stats());
}

#[tokio::test]
async fn a_job_that_ends_the_transaction_is_told_and_the_next_one_works() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let release = block_writer(&store);
    let rogue = |conn: &Connection| Ok(conn.execute_batch("ROLLBACK")?);
    let jobs = async {
        tokio::join!(store.write(add("before")), store.write(rogue), store.write(add("after")), async {
            release.send(()).unwrap();
        })
    };
    let (before, rogue, after, ()) = timeout(DEADLINE, jobs).await.unwrap();
    // Either the first job had its own transaction, or it is told that it was lost with the rogue's: never a lie.
    let kept = store.read(texts).await.unwrap();
    assert_eq!(before.is_ok(), kept.contains(&"before".to_owned()));
    assert!(matches!(rogue, Err(StoreError::Internal(_))));
    after.unwrap();
    assert!(kept.contains(&"after".to_owned()));
    assert_eq!(store.stats().lost, 1);
}

#[tokio::test]
async fn a_full_disk_is_told_and_passes() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let pages: i64 = store.read(|conn| Ok(conn.query_row("PRAGMA page_count", [], |row| row.get(0))?)).await.unwrap();
    let limit = |pages: i64| move |conn: &Connection| Ok(conn.pragma_update(None, "max_page_count", pages)?);
    store.write(limit(pages + 2)).await.unwrap();
    let large = "x".repeat(100_000);
    assert_eq!(store.write(add(&large)).await, Err(StoreError::Full));
    store.write(limit(1_000_000)).await.unwrap();
    store.write(add(&large)).await.unwrap();
    assert_eq!(store.read(texts).await.unwrap(), [large]);
}

#[tokio::test]
async fn readers_cannot_write_and_survive_panics() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    assert!(store.read(add("sneaky")).await.is_err());
    for _ in 0..4 {
        let panicked: Result<(), _> = store.read(|_| panic!("on purpose")).await;
        assert_eq!(panicked, Err(StoreError::Panicked("on purpose".into())));
    }
    assert_eq!(store.read(texts).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_full_queue_makes_callers_wait() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let release = block_writer(&store);
    let writers: Vec<_> = (0..300)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.write(add(&format!("note {number}"))).await })
        })
        .collect();
    while store.threads.writer().unwrap().capacity() > 0 {
        tokio::task::yield_now().await;
    }
    // The queue is full and nobody was refused.
    assert!(writers.iter().all(|writer| !writer.is_finished()));
    assert_eq!(timeout(DEADLINE, store.read(texts)).await.unwrap().unwrap(), [""; 0]);
    release.send(()).unwrap();
    for writer in writers {
        timeout(DEADLINE, writer).await.unwrap().unwrap().unwrap();
    }
    assert_eq!(store.stats().writes, 301);
}

#[tokio::test]
async fn a_queued_write_outlives_its_caller() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let release = block_writer(&store);
    {
        let write = store.write(add("left behind"));
        tokio::pin!(write);
        assert!(timeout(Duration::ZERO, &mut write).await.is_err());
    }
    release.send(()).unwrap();
    store.write(add("next")).await.unwrap();
    assert_eq!(store.read(texts).await.unwrap(), ["left behind", "next"]);
}

#[tokio::test]
async fn close_finishes_what_is_queued_and_folds_the_wal() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let release = block_writer(&store);
    let late = tokio::spawn({
        let store = store.clone();
        async move { store.write(add("queued")).await }
    });
    while store.threads.writer().unwrap().capacity() == writer::WRITE_QUEUE {
        tokio::task::yield_now().await;
    }
    let closing = tokio::spawn({
        let store = store.clone();
        async move { store.close().await }
    });
    while store.threads.writer().is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.write(add("too late")).await, Err(StoreError::Closed));
    release.send(()).unwrap();
    timeout(DEADLINE, closing).await.unwrap().unwrap();
    late.await.unwrap().unwrap();
    assert_eq!(store.read(texts).await, Err(StoreError::Closed));
    store.close().await;

    let wal = database(&folder).with_file_name("test.db-wal");
    assert!(!wal.exists());
    assert_eq!(open(&folder).read(texts).await.unwrap(), ["queued"]);
}

#[tokio::test]
async fn in_memory_reads_and_writes() {
    let store = Store::in_memory(&[NOTES]).unwrap();
    store.write(add("volatile")).await.unwrap();
    assert_eq!(store.read(texts).await.unwrap(), ["volatile"]);
    store.close().await;
    assert_eq!(store.read(texts).await, Err(StoreError::Closed));
}
