use std::fs::File;
use std::io::Read;

use protocol::ErrorKind;
use protocol::event::FileItem;
use rpc::Call;
use zip::{CompressionMethod, ZipArchive};

use crate::testing::Bench;

async fn zip(bench: &Bench, dest: &str, items: &[&str], store_only: bool) -> Result<FileItem, (ErrorKind, String)> {
    let items = items.iter().map(ToString::to_string).collect();
    let made = bench.files.zip(Some(dest.into()), items, store_only, &Call::internal()).await;
    made.map_err(|error| (error.kind, error.message))
}

fn names(bench: &Bench, path: &str) -> Vec<String> {
    let mut names: Vec<_> =
        ZipArchive::new(File::open(bench.path(path)).unwrap()).unwrap().file_names().map(|name| name.unwrap().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn files_and_the_direct_content_of_folders_each_once() {
    let bench = Bench::new();
    for file in ["config/a.cfg", "config/sub/b.cfg", "logs/x.log", "config/.git/HEAD"] {
        bench.write(file, &file.repeat(50));
    }
    bench.link("config/link.cfg", "a.cfg");
    let item = zip(&bench, "config/out.zip", &["config", "config/a.cfg", "logs/x.log"], false).await.unwrap();
    assert_eq!((item.path.as_str(), item.root.as_str()), ("out.zip", "config"));
    let in_archive = names(&bench, "config/out.zip");
    assert_eq!(in_archive.len(), 2, "{in_archive:?}");
    assert!(in_archive[0] == "config/a.cfg" || in_archive[0] == "config/link.cfg", "one of the two names of one file");
    assert_eq!(in_archive[1], "logs/x.log");
    let mut archive = ZipArchive::new(File::open(bench.path("config/out.zip")).unwrap()).unwrap();
    let mut member = archive.by_name("logs/x.log").unwrap();
    let mut text = String::new();
    member.read_to_string(&mut text).unwrap();
    assert_eq!((text, member.compression()), (bench.read("logs/x.log"), CompressionMethod::Deflated));
    let told = bench.notifications();
    assert_eq!((told.len(), told[0]["action"].as_str(), told[0]["item"]["path"].as_str()), (1, Some("create_file"), Some("out.zip")));
    assert_eq!(bench.spooled(), 0);
}

#[tokio::test]
async fn stored_and_under_the_default_name() {
    let bench = Bench::new();
    bench.write("logs/x.log", "log");
    let item = bench.files.zip(None, vec!["logs".into()], true, &Call::internal()).await.unwrap();
    assert!(
        item.path.starts_with("collection-20") && item.path.ends_with(".zip") && item.path.len() == "collection-YYYYMMDD-HHMMSS.zip".len()
    );
    let mut archive = ZipArchive::new(File::open(bench.path("config").join(item.path)).unwrap()).unwrap();
    assert_eq!(archive.by_index(0).unwrap().compression(), CompressionMethod::Stored);
}

#[tokio::test]
async fn what_cannot_be_archived() {
    let bench = Bench::new();
    bench.write("config/a.cfg", "");
    bench.write("certs/key", "");
    bench.write("gcodes/job.gcode", "G28");
    *bench.printer.loaded.lock() = Some("job.gcode".into());
    let bad = ErrorKind::BadRequest;
    for (dest, items, kind, text) in [
        ("logs/x.zip", &["config/a.cfg"][..], bad, "Destination Root 'logs' is read-only"),
        ("config", &["config/a.cfg"], bad, "Destination 'config' is a directory"),
        ("config/none/x.zip", &["config/a.cfg"], bad, "Destination folder of 'config/none/x.zip' does not exist"),
        ("config/x.zip", &[], bad, "At least one file or directory must be specified"),
        ("config/x.zip", &["config/none"], bad, "No file/directory exits at 'config/none'"),
        ("config/x.zip", &["config/.git"], ErrorKind::Forbidden, "Access to .git folders is forbidden"),
        ("gcodes/job.gcode", &["config/a.cfg"], ErrorKind::Forbidden, "File currently in use"),
    ] {
        assert_eq!(zip(&bench, dest, items, false).await.unwrap_err(), (kind, text.to_owned()), "{dest} {items:?}");
    }
    assert!(zip(&bench, "config/x.zip", &["config/../../certs/key"], false).await.is_err());
    assert!(!bench.path("config/x.zip").exists() && bench.spooled() == 0 && bench.notifications().is_empty());
}
