use protocol::ErrorKind;
use rpc::Call;
use serde_json::json;

use crate::testing::Bench;

async fn create(bench: &Bench, path: &str) -> Result<(), (ErrorKind, String)> {
    let made = bench.files.create_directory(path.into(), &Call::internal()).await;
    made.map(drop).map_err(|error| (error.kind, error.message))
}

async fn delete(bench: &Bench, path: &str, force: bool) -> Result<(), (ErrorKind, String)> {
    let deleted = bench.files.delete_directory(path.into(), force, &Call::internal()).await;
    deleted.map(drop).map_err(|error| (error.kind, error.message))
}

#[tokio::test]
async fn a_new_folder_is_there_and_told() {
    let bench = Bench::new();
    let call = Call::internal();
    let change = bench.files.create_directory("gcodes//new/".into(), &call).await.unwrap();
    assert!(bench.path("gcodes/new").is_dir() && change.item.modified > 0.0);
    assert!(bench.notifications().is_empty(), "the answer comes first");
    drop(call);
    let told = bench.notifications();
    assert_eq!(
        (&told[0]["action"], &told[0]["item"]["path"], &told[0]["item"]["permissions"]),
        (&json!("create_dir"), &json!("new"), &json!("rw"))
    );
    assert_eq!(told.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_made() {
    let bench = Bench::new();
    bench.write("gcodes/there/x", "");
    bench.link("gcodes/broken", bench.path("gcodes/nowhere"));
    let exists = std::io::Error::from(rustix::io::Errno::EXIST).to_string();
    let absent = std::io::Error::from(rustix::io::Errno::NOENT).to_string();
    for (path, kind, text) in [
        ("gcodes/there", ErrorKind::BadRequest, exists.as_str()),
        ("gcodes/broken", ErrorKind::BadRequest, &exists),
        ("gcodes", ErrorKind::BadRequest, &exists),
        ("gcodes/a/b", ErrorKind::BadRequest, &absent),
        ("logs/x", ErrorKind::NotAllowed, "Operation Not Supported"),
        ("none/x", ErrorKind::BadRequest, "Invalid root path (none)"),
        ("gcodes/.git", ErrorKind::Forbidden, "Access to .git folders is forbidden"),
    ] {
        assert_eq!(create(&bench, path).await, Err((kind, text.to_owned())), "{path}");
    }
    assert!(create(&bench, "gcodes/a\nb").await.is_err() && create(&bench, "gcodes/../../x").await.is_err());
    assert!(bench.notifications().is_empty());
}

#[tokio::test]
async fn folders_are_deleted_whole_only_by_force() {
    let bench = Bench::new();
    bench.write("gcodes/full/sub/a.gcode", "");
    std::fs::create_dir(bench.path("gcodes/empty")).unwrap();
    assert_eq!(delete(&bench, "gcodes/empty", false).await, Ok(()));
    assert_eq!(delete(&bench, "gcodes/full", false).await.unwrap_err().0, ErrorKind::BadRequest);
    assert!(bench.path("gcodes/full/sub/a.gcode").exists());
    assert_eq!(delete(&bench, "gcodes/full", true).await, Ok(()));
    assert!(!bench.path("gcodes/full").exists());
    let told: Vec<_> = bench.notifications().iter().map(|change| change["item"]["path"].clone()).collect();
    assert_eq!(told, ["empty", "full"]);
}

#[tokio::test]
async fn what_cannot_be_deleted() {
    let bench = Bench::with(|settings| {
        let path = settings.data_path.join("config/tools/firmware");
        settings.reserved.push(crate::Reserved { name: "firmware".into(), path, readable: true });
    });
    bench.write("gcodes/job/sub/a.gcode", "");
    bench.write("gcodes/jobs/a.gcode", "");
    bench.write("config/tools/firmware/x", "");
    *bench.printer.loaded.lock() = Some("job/sub/a.gcode".into());
    for (path, kind, text) in [
        ("gcodes", ErrorKind::BadRequest, "Cannot delete root directory"),
        ("gcodes/none", ErrorKind::BadRequest, "Directory does not exist (gcodes/none)"),
        ("gcodes/job/sub/a.gcode", ErrorKind::BadRequest, "Directory does not exist (gcodes/job/sub/a.gcode)"),
        ("gcodes/job", ErrorKind::Forbidden, "File currently in use"),
        ("logs", ErrorKind::NotAllowed, "Operation Not Supported"),
        ("config/tools", ErrorKind::Forbidden, "Access to file tools forbidden by reserved path 'firmware'"),
    ] {
        assert_eq!(delete(&bench, path, true).await, Err((kind, text.to_owned())), "{path}");
    }
    assert_eq!(delete(&bench, "gcodes/jobs", true).await, Ok(()), "a name that only begins like that of the loaded file's folder");
    assert!(bench.path("gcodes/job/sub/a.gcode").exists() && bench.path("config/tools/firmware/x").exists());
}

#[tokio::test]
async fn of_a_link_only_the_link_goes() {
    let bench = Bench::new();
    bench.write("gcodes/real/a.gcode", "");
    bench.link("gcodes/link", "real");
    *bench.printer.loaded.lock() = Some("link/a.gcode".into());
    assert!(delete(&bench, "gcodes/link", false).await.is_err(), "the job prints through it");
    *bench.printer.loaded.lock() = None;
    assert_eq!(delete(&bench, "gcodes/link", false).await, Ok(()));
    assert!(bench.path("gcodes/real/a.gcode").exists() && bench.path("gcodes/link").symlink_metadata().is_err());
}
