use serde_json::json;

use super::*;
use crate::settings::FileManagerOptions;
use crate::testing::Bench;

#[test]
fn missing_folders_are_made_and_roots_are_in_order() {
    let bench = Bench::new();
    assert_eq!(bench.files.registered_directories(), ["config", "logs", "gcodes"]);
    assert!(["config", "logs", "gcodes"].iter().all(|name| bench.path(name).is_dir()));
    assert!(bench.files.warnings().is_empty());
    let writable: Vec<_> = bench.files.roots().iter().map(|root| root.writable).collect();
    assert_eq!(writable, [true, false, true]);
}

#[test]
fn a_data_folder_that_is_none() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("file"), "").unwrap();
    for name in ["file", "missing"] {
        let settings = FilesSettings::new(data.path().join(name));
        assert!(Files::open(settings, Store::in_memory(&[]).unwrap(), Arc::default(), Arc::new(crate::NoPrinter)).is_err());
    }
}

#[tokio::test]
async fn a_root_that_cannot_be_used_is_a_warning_and_its_uploads_are_refused() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("gcodes"), "a file").unwrap();
    let files =
        Files::open(FilesSettings::new(data.path()), Store::in_memory(&[]).unwrap(), Arc::default(), Arc::new(crate::NoPrinter)).unwrap();
    assert_eq!(files.registered_directories(), ["config", "logs"]);
    assert_eq!(files.warnings().len(), 1);
    let mut upload = Transfer(files.clone()).begin_upload(None).unwrap();
    assert!(upload.start_file("a.gcode").await.is_err());
}

#[tokio::test]
async fn roots_of_the_firmware_come_later_and_may_move() {
    let bench = Bench::new();
    for file in ["firmware/docs/a.md", "firmware2/docs/a.md"] {
        bench.write(file, "text");
    }
    let firmware = |path: &str| Reserved { name: "firmware".into(), path: bench.path(path), readable: true };
    bench.files.reserve(firmware("firmware")).await;
    bench.files.register_root("docs".into(), bench.path("firmware/docs"), false).await;
    bench.files.register_root("config_examples".into(), bench.path("firmware/none"), false).await;
    assert_eq!(bench.files.registered_directories(), ["config", "logs", "gcodes", "docs"]);
    assert_eq!(bench.files.warnings().len(), 1);
    assert!(bench.notifications().is_empty(), "new roots are no change");
    let docs = bench.files.list("docs".into()).await.unwrap();
    assert_eq!((docs[0].path.as_str(), docs[0].permissions.as_str()), ("a.md", "r"));
    assert!(bench.download("docs/a.md").await.is_ok());

    bench.files.reserve(firmware("firmware2")).await;
    bench.files.register_root("docs".into(), bench.path("firmware2/docs"), false).await;
    let told = bench.notifications();
    assert_eq!(
        (told.len(), &told[0]["action"], &told[0]["item"]["path"], &told[0]["item"]["root"]),
        (1, &json!("root_update"), &json!("."), &json!("docs"))
    );
}

#[test]
fn options_are_read_under_their_public_names() {
    let text = "[file_manager]\nenable_config_write_access: False\nlink_targets:\n  /media\n  {data_path}/shared\n";
    let loaded = config::load_text("core.conf", text);
    let context = config::Context { data_path: "/data".into(), ..config::Context::default() };
    let options: FileManagerOptions = config::Reader::new(&loaded.document, &context).read_or_default();
    assert!(!options.enable_config_write_access);
    assert_eq!(options.link_targets, Some(vec![PathBuf::from("/media"), PathBuf::from("/data/shared")]));
}

#[tokio::test]
async fn files_of_jobs_are_looked_at_as_every_other_request_sees_them() {
    let bench = Bench::new();
    for file in ["gcodes/a.gcode", "gcodes/deep/down/a.gcode", "gcodes/.git/a.gcode", "outside/a.gcode"] {
        bench.write(file, "G28\n");
    }
    bench.link("gcodes/inside.gcode", bench.path("gcodes/deep/down/a.gcode"));
    bench.link("gcodes/outside.gcode", bench.path("outside/a.gcode"));
    bench.link("gcodes/folder", bench.path("outside"));
    let modified = |path: &str| {
        let time = std::fs::metadata(bench.path(path)).unwrap().modified().unwrap();
        time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64()
    };
    let same = Some(modified("gcodes/a.gcode"));
    for (file, size, modified, expected) in [
        ("a.gcode", Some(4), same, true),
        ("a.gcode", None, None, true),
        ("a.gcode", Some(5), same, false),
        ("a.gcode", Some(4), same.map(|time| time + 1.0), false),
        ("deep/down/a.gcode", Some(4), None, true),
        ("deep/down", None, None, false),
        ("", None, None, false),
        ("none/a.gcode", None, None, false),
        (".git/a.gcode", None, None, false),
        ("inside.gcode", Some(4), None, true),
        ("outside.gcode", None, None, false),
        ("folder/a.gcode", None, None, false),
        ("../outside/a.gcode", None, None, false),
    ] {
        assert_eq!(bench.files.unchanged(vec![(file.to_owned(), size, modified)]).await.0, [expected], "{file} {size:?} {modified:?}");
    }
}
