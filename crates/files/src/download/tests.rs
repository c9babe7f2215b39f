use std::io::Read;

use protocol::ErrorKind;
use rpc::Access;
use rpc::transfer::FileTransfer;

use super::Log;
use crate::service::Transfer;
use crate::testing::Bench;

async fn text(bench: &Bench, path: &str) -> Result<String, ErrorKind> {
    let mut download = bench.download(path).await.map_err(|error| error.kind)?;
    let mut text = String::new();
    download.file.read_to_string(&mut text).unwrap();
    assert_eq!(text.len() as u64, download.size);
    Ok(text)
}

#[tokio::test]
async fn files_of_all_roots_with_their_types() {
    let bench = Bench::new();
    bench.write("gcodes/sub/Würfel \"1\".gcode", "G28");
    bench.write("logs/klippy.log.1", "log");
    bench.link("gcodes/link.gcode", "sub/Würfel \"1\".gcode");
    let download = bench.download("gcodes/sub/Würfel \"1\".gcode").await.unwrap();
    assert_eq!((download.name.as_str(), download.content_type, download.size), ("Würfel \"1\".gcode", "text/plain", 3));
    assert_eq!(text(&bench, "logs/klippy.log.1").await.unwrap(), "log");
    assert_eq!(text(&bench, "gcodes/link.gcode").await.unwrap(), "G28");
}

#[tokio::test]
async fn what_is_not_served() {
    let bench = Bench::new();
    for file in [
        "gcodes/sub/x.gcode",
        "config/printer.cfg",
        "database/data.db",
        "core.secrets",
        "config/.git/HEAD",
        "gcodes/.bowsprit-upload/1.part",
    ] {
        bench.write(file, "");
    }
    bench.link("gcodes/out", bench.path("database"));
    bench.link("gcodes/secret", bench.path("core.secrets"));
    rustix::fs::mkfifoat(rustix::fs::CWD, bench.path("gcodes/pipe"), rustix::fs::Mode::RUSR).unwrap();
    for (path, kind) in [
        ("gcodes/none", ErrorKind::NotFound),
        ("gcodes/sub/x.gcode/y", ErrorKind::NotFound),
        ("nope/x", ErrorKind::NotFound),
        ("database/data.db", ErrorKind::NotFound),
        ("core.secrets", ErrorKind::NotFound),
        ("gcodes/a\0b", ErrorKind::NotFound),
        ("", ErrorKind::NotFound),
        ("gcodes", ErrorKind::Forbidden),
        ("gcodes/sub/", ErrorKind::Forbidden),
        ("gcodes/pipe", ErrorKind::Forbidden),
        ("gcodes/../config/printer.cfg", ErrorKind::Forbidden),
        ("gcodes/../../etc/passwd", ErrorKind::Forbidden),
        ("../etc/passwd", ErrorKind::Forbidden),
        ("gcodes/out/data.db", ErrorKind::Forbidden),
        ("gcodes/secret", ErrorKind::Forbidden),
        ("config/.git/HEAD", ErrorKind::Forbidden),
        ("gcodes/.bowsprit-upload/1.part", ErrorKind::Forbidden),
    ] {
        assert_eq!(text(&bench, path).await, Err(kind), "{path:?}");
    }
}

#[tokio::test]
async fn reserved_paths_stay_closed_where_links_may_lead_anywhere() {
    let bench = Bench::with(|settings| settings.link_targets = vec!["/".into()]);
    bench.write("database/data.db", "");
    bench.write("media/x.gcode", "G28");
    bench.link("gcodes/db", bench.path("database"));
    bench.link("gcodes/usb", bench.path("media"));
    assert_eq!(text(&bench, "gcodes/db/data.db").await, Err(ErrorKind::Forbidden));
    assert_eq!(text(&bench, "gcodes/usb/x.gcode").await.unwrap(), "G28");
    assert_eq!(bench.files.list("gcodes".into()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn logs_have_fixed_paths_under_both_names() {
    let bench = Bench::new();
    bench.write("elsewhere/host.log", "firmware");
    assert_eq!(text(&bench, "fwhost.log").await, Err(ErrorKind::NotFound), "not known yet");
    bench.files.set_log_path(Log::Firmware, bench.path("elsewhere/host.log"));
    bench.files.set_log_path(Log::Core, bench.path("logs/missing.log"));
    for name in ["fwhost.log", "klippy.log"] {
        assert_eq!(text(&bench, name).await.unwrap(), "firmware");
        let download = bench.download(name).await.unwrap();
        assert_eq!((download.name.as_str(), download.content_type), (name, "text/plain"));
    }
    for name in ["core.log", "moonraker.log"] {
        assert_eq!(text(&bench, name).await, Err(ErrorKind::NotFound), "the file is missing");
    }
}

#[tokio::test]
async fn pictures_are_public() {
    let bench = Bench::new();
    let transfer = Transfer(bench.files.clone());
    assert_eq!((transfer.reading("gcodes/.thumbs/a.PNG"), transfer.reading("gcodes/a.gcode")), (Access::Open, Access::View));
}
