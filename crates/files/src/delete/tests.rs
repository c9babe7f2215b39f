use protocol::ErrorKind;
use rpc::Call;
use serde_json::json;

use crate::testing::Bench;

async fn delete(bench: &Bench, path: &str) -> Result<(), (ErrorKind, String)> {
    let deleted = bench.files.delete_file(path.into(), &Call::internal()).await;
    deleted.map(drop).map_err(|error| (error.kind, error.message))
}

#[tokio::test]
async fn a_deleted_file_is_gone_and_told_after_the_answer() {
    let bench = Bench::new();
    bench.write("gcodes/sub/a.gcode", "G28");
    let call = Call::internal();
    let item = bench.files.delete_file("gcodes/sub/a.gcode".into(), &call).await.unwrap().item;
    assert!(!bench.path("gcodes/sub/a.gcode").exists());
    assert!(bench.notifications().is_empty(), "the answer comes first");
    drop(call);
    let expected = json!({"path": "sub/a.gcode", "root": "gcodes", "modified": 0.0, "size": 0, "permissions": ""});
    assert_eq!(serde_json::to_value(item).unwrap(), expected);
    assert_eq!(bench.notifications(), [json!({"action": "delete_file", "item": expected})]);
}

#[tokio::test]
async fn what_cannot_be_deleted() {
    let bench = Bench::with(|settings| settings.options.enable_config_write_access = false);
    for file in ["gcodes/sub/a.gcode", "logs/x.log", "config/printer.cfg", "database/data.db", "outside"] {
        bench.write(file, "");
    }
    bench.link("gcodes/out", bench.path("outside"));
    bench.link("gcodes/db", bench.path("database"));
    let (bad, not_allowed) = (ErrorKind::BadRequest, ErrorKind::NotAllowed);
    for (path, kind, text) in [
        ("nope/x", bad, "Invalid root path (nope)"),
        ("", bad, "Invalid root path ()"),
        ("gcodes/none", bad, "Invalid file path: gcodes/none"),
        ("gcodes/sub", bad, "Invalid file path: gcodes/sub"),
        ("gcodes", bad, "Invalid file path: gcodes"),
        ("gcodes/out", bad, "Invalid path request, gcodes/out leads out of its root"),
        ("gcodes/../outside", bad, "Invalid root path (outside)"),
        ("logs/x.log", not_allowed, "Path not available for DELETE: logs/x.log"),
        ("config/printer.cfg", not_allowed, "Path not available for DELETE: config/printer.cfg"),
    ] {
        assert_eq!(delete(&bench, path).await, Err((kind, text.to_owned())), "{path}");
    }
    assert!(delete(&bench, "gcodes/db/data.db").await.is_err());
    for file in ["gcodes/sub/a.gcode", "logs/x.log", "config/printer.cfg", "database/data.db", "outside"] {
        assert!(bench.path(file).exists(), "{file}");
    }
    assert!(bench.notifications().is_empty());
}

#[tokio::test]
async fn the_loaded_file_stays_under_all_its_names() {
    let bench = Bench::new();
    bench.write("gcodes/sub/a.gcode", "");
    bench.write("gcodes/sub/a.gcode2", "");
    bench.link("gcodes/link.gcode", "sub/a.gcode");
    *bench.printer.loaded.lock() = Some("/sub/a.gcode".into());
    for path in ["gcodes/sub/a.gcode", "gcodes/link.gcode"] {
        assert_eq!(delete(&bench, path).await, Err((ErrorKind::Forbidden, "File currently in use".into())));
    }
    assert_eq!(delete(&bench, "gcodes/sub/a.gcode2").await, Ok(()));
    *bench.printer.loaded.lock() = None;
    assert_eq!(delete(&bench, "gcodes/sub/a.gcode").await, Ok(()));
}

#[tokio::test]
async fn deleting_a_link_leaves_its_target() {
    let bench = Bench::new();
    bench.write("gcodes/a.gcode", "");
    bench.link("gcodes/link.gcode", "a.gcode");
    assert_eq!(delete(&bench, "gcodes/link.gcode").await, Ok(()));
    assert!(bench.path("gcodes/a.gcode").exists() && bench.path("gcodes/link.gcode").symlink_metadata().is_err());
}
