use std::fs;

use protocol::ErrorKind;
use rpc::Call;
use serde_json::{Value, json};

use crate::testing::Bench;

type Answer = Result<Value, (ErrorKind, String)>;

async fn relocate(bench: &Bench, source: &str, dest: &str) -> Answer {
    let moved = bench.files.relocate(source.into(), dest.into(), &Call::internal()).await;
    moved.map(|change| serde_json::to_value(change).unwrap()).map_err(|error| (error.kind, error.message))
}

async fn copy(bench: &Bench, source: &str, dest: &str) -> Answer {
    let copied = bench.files.copy(source.into(), dest.into(), &Call::internal()).await;
    copied.map(|change| serde_json::to_value(change).unwrap()).map_err(|error| (error.kind, error.message))
}

#[tokio::test]
async fn files_and_folders_get_new_names() {
    let bench = Bench::new();
    bench.write("gcodes/a.gcode", "one");
    bench.write("gcodes/old/b.gcode", "two");
    let change = relocate(&bench, "gcodes/a.gcode", "config/x.gcode").await.unwrap();
    assert_eq!(change["action"], "move_file");
    assert_eq!(
        (&change["item"]["root"], &change["item"]["path"], &change["item"]["size"]),
        (&json!("config"), &json!("x.gcode"), &json!(3))
    );
    assert_eq!(change["source_item"], json!({"path": "a.gcode", "root": "gcodes"}));
    assert_eq!(relocate(&bench, "gcodes/old", "gcodes/new").await.unwrap()["action"], "move_dir");
    assert_eq!(bench.read("gcodes/new/b.gcode"), "two");
    assert!(!bench.path("gcodes/a.gcode").exists() && !bench.path("gcodes/old").exists());
    let told = &bench.notifications()[0];
    assert_eq!(
        (&told["action"], &told["source_item"], &told["item"]["path"]),
        (&change["action"], &change["source_item"], &json!("x.gcode"))
    );
}

#[tokio::test]
async fn an_existing_folder_takes_in_and_an_existing_file_is_replaced() {
    let bench = Bench::new();
    for (path, content) in [("gcodes/a.gcode", "a"), ("gcodes/b.gcode", "b"), ("gcodes/dir/b.gcode", "old"), ("gcodes/more/x", "")] {
        bench.write(path, content);
    }
    assert_eq!(relocate(&bench, "gcodes/a.gcode", "gcodes/dir").await.unwrap()["item"]["path"], "dir/a.gcode");
    let (kind, text) = relocate(&bench, "gcodes/b.gcode", "gcodes/dir").await.unwrap_err();
    assert_eq!((kind, text.as_str()), (ErrorKind::BadRequest, "Destination path 'gcodes/dir/b.gcode' already exists"));
    relocate(&bench, "gcodes/b.gcode", "gcodes/dir/b.gcode").await.unwrap();
    assert_eq!(bench.read("gcodes/dir/b.gcode"), "b");
    assert_eq!(relocate(&bench, "gcodes/more", "gcodes/dir").await.unwrap()["item"]["path"], "dir/more");
    assert!(relocate(&bench, "gcodes/dir", "gcodes/dir/more").await.is_err(), "into itself");
    assert!(bench.path("gcodes/dir/more/x").exists());
}

#[tokio::test]
async fn what_cannot_be_moved() {
    let bench = Bench::new();
    for file in ["gcodes/job/a.gcode", "gcodes/b.gcode", "logs/x.log", "config/.git/HEAD", "certs/key"] {
        bench.write(file, "keep");
    }
    *bench.printer.loaded.lock() = Some("job/a.gcode".into());
    let (bad, forbidden) = (ErrorKind::BadRequest, ErrorKind::Forbidden);
    for (source, dest, kind, text) in [
        ("gcodes/none", "gcodes/x", bad, "File gcodes/none does not exist"),
        ("gcodes/b.gcode", "logs/b.gcode", bad, "Destination path is read-only: logs"),
        ("logs/x.log", "gcodes/x.log", bad, "Source path is read-only, cannot move: logs"),
        ("gcodes/job", "gcodes/other", forbidden, "File currently in use"),
        ("gcodes/job/a.gcode", "config/a.gcode", forbidden, "File currently in use"),
        ("gcodes/b.gcode", "gcodes/job/a.gcode", forbidden, "File currently in use"),
        ("nope/x", "gcodes/x", bad, "Invalid root path (nope)"),
        ("gcodes/b.gcode", "nope", bad, "Invalid root path (nope)"),
        ("config/.git/HEAD", "config/x", forbidden, "Access to .git folders is forbidden"),
        ("gcodes", "config/x", forbidden, "File currently in use"),
    ] {
        assert_eq!(relocate(&bench, source, dest).await, Err((kind, text.to_owned())), "{source} {dest}");
    }
    *bench.printer.loaded.lock() = None;
    assert!(relocate(&bench, "gcodes", "config/x").await.is_err(), "a root stays");
    assert!(relocate(&bench, "gcodes/../../certs/key", "gcodes/key").await.is_err());
    for file in ["gcodes/job/a.gcode", "gcodes/b.gcode", "logs/x.log", "config/.git/HEAD", "certs/key"] {
        assert_eq!(bench.read(file), "keep", "{file}");
    }
    assert!(bench.notifications().is_empty());
}

#[tokio::test]
async fn a_moved_link_stays_a_link_and_its_file_stays() {
    let bench = Bench::new();
    bench.write("gcodes/a.gcode", "a");
    bench.link("gcodes/link.gcode", "a.gcode");
    relocate(&bench, "gcodes/link.gcode", "gcodes/other.gcode").await.unwrap();
    assert!(bench.path("gcodes/other.gcode").is_symlink() && bench.path("gcodes/a.gcode").exists());
    bench.write("gcodes/b.gcode", "b");
    relocate(&bench, "gcodes/b.gcode", "gcodes/other.gcode").await.unwrap();
    assert_eq!((bench.read("gcodes/other.gcode"), bench.read("gcodes/a.gcode")), ("b".into(), "a".into()));
}

#[tokio::test]
async fn copies_of_files_keep_their_time() {
    let bench = Bench::new();
    bench.write("gcodes/a.gcode", "a");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_600_000_000_250);
    fs::File::options().write(true).open(bench.path("gcodes/a.gcode")).unwrap().set_modified(old).unwrap();
    *bench.printer.loaded.lock() = Some("a.gcode".into());
    let change = copy(&bench, "gcodes/a.gcode", "gcodes/b.gcode").await.unwrap();
    assert_eq!((&change["action"], &change["item"]["modified"]), (&json!("create_file"), &json!(1_600_000_000.25)));
    assert!(change.get("source_item").is_none());
    assert_eq!(copy(&bench, "gcodes/a.gcode", "gcodes/b.gcode").await.unwrap()["action"], "modify_file");
    fs::create_dir(bench.path("gcodes/dir")).unwrap();
    assert_eq!(copy(&bench, "gcodes/a.gcode", "gcodes/dir").await.unwrap()["item"]["path"], "dir/a.gcode");
    assert_eq!(
        copy(&bench, "gcodes/b.gcode", "gcodes/a.gcode").await.unwrap_err().0,
        ErrorKind::Forbidden,
        "the loaded file is not overwritten"
    );
    assert!(copy(&bench, "gcodes/b.gcode", "gcodes/b.gcode").await.is_err());
    assert!(copy(&bench, "logs/none", "gcodes/b.gcode").await.is_err());
}

#[tokio::test]
async fn folders_are_copied_whole_without_what_nobody_may_read() {
    let bench = Bench::new();
    for file in ["config/set/sub/a.cfg", "config/set/.git/HEAD", "config/set/b.cfg"] {
        bench.write(file, "x");
    }
    bench.link("config/set/link.cfg", "b.cfg");
    let change = copy(&bench, "config/set", "gcodes/copy").await.unwrap();
    assert_eq!((&change["action"], &change["item"]["root"]), (&json!("create_dir"), &json!("gcodes")));
    assert_eq!(bench.read("gcodes/copy/sub/a.cfg"), "x");
    assert!(bench.path("gcodes/copy/link.cfg").is_symlink() && !bench.path("gcodes/copy/.git").exists());
    let (kind, text) = copy(&bench, "config/set", "gcodes/copy").await.unwrap_err();
    assert_eq!((kind, text), (ErrorKind::BadRequest, std::io::Error::from(rustix::io::Errno::EXIST).to_string()));
    assert!(copy(&bench, "config/set", "config/set/sub/inner").await.is_err(), "into itself");
    let left: Vec<_> = fs::read_dir(bench.path("gcodes")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["copy"], "nothing is left aside");
}

/// What is beside a file and hidden.
fn asides(bench: &Bench, folder: &str) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(bench.path(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".bowsprit-copy-")).collect()
}

/// Begins a copy while somebody else holds the lock of all changes, and waits until its content is there.
async fn begun(bench: &Bench, changes: &tokio::sync::MutexGuard<'_, ()>) -> tokio::task::JoinHandle<Result<(), protocol::ApiError>> {
    let _ = changes;
    let files = bench.files.clone();
    let copy = tokio::spawn(async move { files.copy("config/big.bin".into(), "gcodes/big.bin".into(), &Call::internal()).await.map(drop) });
    let size = fs::metadata(bench.path("config/big.bin")).unwrap().len();
    crate::testing::eventually(|| asides(bench, "gcodes").iter().any(|aside| fs::metadata(aside).is_ok_and(|copy| copy.len() == size)))
        .await;
    assert!(!bench.path("gcodes/big.bin").exists() && !copy.is_finished());
    copy
}

#[tokio::test]
async fn content_is_copied_while_others_change_files() {
    let bench = Bench::new();
    bench.write("config/big.bin", &"x".repeat(3_000_000));
    let changes = bench.files.changes.lock().await;
    let copy = begun(&bench, &changes).await;
    drop(changes);
    copy.await.unwrap().unwrap();
    assert_eq!(bench.read("gcodes/big.bin").len(), 3_000_000);
    assert!(asides(&bench, "gcodes").is_empty());
}

#[tokio::test]
async fn a_source_that_changes_while_it_is_copied() {
    let bench = Bench::new();
    bench.write("config/big.bin", &"x".repeat(3_000_000));
    let changes = bench.files.changes.lock().await;
    let copy = begun(&bench, &changes).await;
    bench.write("config/big.bin", "other");
    drop(changes);
    assert_eq!(copy.await.unwrap().unwrap_err().message, "'config/big.bin' changed while it was copied");
    assert!(asides(&bench, "gcodes").is_empty() && !bench.path("gcodes/big.bin").exists());
}

/// A pipe without a writer would be waited for for ever, and everybody with it.
#[tokio::test]
async fn a_pipe_is_refused() {
    let bench = Bench::new();
    let pipe = bench.path("config/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(copy(&bench, "config/pipe", "gcodes/x").await.unwrap_err(), (ErrorKind::BadRequest, "not a file".to_owned()));
    let items = vec!["config/pipe".to_owned()];
    bench.files.zip(Some("config/x.zip".into()), items, true, &Call::internal()).await.unwrap();
    assert_eq!(bench.download("config/pipe").await.unwrap_err().kind, ErrorKind::Forbidden);
}
