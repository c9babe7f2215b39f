use std::fs;
use std::time::{Duration, SystemTime};

use protocol::ErrorKind;
use serde_json::json;
use store::Store;

use super::*;
use crate::service::Transfer;
use crate::testing::{Bench, eventually, json};
use rpc::transfer::FileTransfer;

/// SHA-256 of "hello".
const HELLO: &str = "2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824";

async fn begin(bench: &Bench, length: u64, fields: &[(&str, &str)]) -> Result<UploadStatus, ApiError> {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Transfer(bench.files.clone()).create_upload(NewUpload { length, fields, metadata: "as sent".into() }).await
}

async fn opened(bench: &Bench, id: &str, offset: u64) -> Result<Box<dyn Append>, ApiError> {
    Transfer(bench.files.clone()).append(id.to_owned(), offset, None).await
}

async fn send(bench: &Bench, id: &str, offset: u64, data: &str) -> Result<UploadStatus, ApiError> {
    let mut append = opened(bench, id, offset).await?;
    append.chunk(Bytes::copy_from_slice(data.as_bytes())).await?;
    append.finish(Arc::new(Call::internal())).await
}

async fn status(bench: &Bench, id: &str) -> Result<UploadStatus, ApiError> {
    Transfer(bench.files.clone()).upload_status(id.to_owned()).await
}

/// The server's next run over the same data.
fn restarted(bench: Bench) -> Bench {
    bench.files.close();
    let Bench { data, files, .. } = bench;
    drop(files);
    Bench::over(data, Store::in_memory(&[crate::SCHEMA]).unwrap(), |_| {})
}

#[tokio::test]
async fn pieces_become_the_same_as_a_form() {
    let bench = Bench::new();
    bench.printer.free.store(true, std::sync::atomic::Ordering::Relaxed);
    let fields = [("filename", "a.gcode"), ("path", "new/sub"), ("checksum", HELLO), ("print", "true")];
    let new = begin(&bench, 5, &fields).await.unwrap();
    assert_eq!((new.offset, new.length, new.metadata.as_str()), (0, 5, "as sent"));
    assert!(new.expires > SystemTime::now() + UPLOAD_LIFETIME - Duration::from_mins(1));
    assert_eq!(send(&bench, &new.id, 0, "he").await.unwrap().offset, 2);
    assert!(!bench.path("gcodes/new").exists() && bench.notifications().is_empty(), "nothing is seen before the end");
    let done = send(&bench, &new.id, 2, "llo").await.unwrap();
    assert_eq!(done.offset, 5);
    let uploaded = done.uploaded.unwrap();
    let body = json(&uploaded);
    assert_eq!(uploaded.path, "gcodes/new/sub/a.gcode");
    assert_eq!((&body["item"]["size"], &body["action"], &body["print_started"]), (&json!(5), &json!("create_file"), &json!(true)));
    assert_eq!(body["result"]["item"], body["item"]);
    assert_eq!(bench.read("gcodes/new/sub/a.gcode"), "hello");
    let told = bench.notifications();
    let folders: Vec<_> = told[..2].iter().map(|change| (&change["action"], &change["item"]["path"])).collect();
    assert_eq!(folders, [(&json!("create_dir"), &json!("new")), (&json!("create_dir"), &json!("new/sub"))]);
    assert_eq!(told[2..], [json!({"action": "create_file", "item": body["item"]})]);
    assert_eq!(*bench.printer.started.lock(), ["new/sub/a.gcode"]);
    assert_eq!(bench.spooled(), 1, "only the answer is kept");
    let bench = restarted(bench);
    let later = status(&bench, &new.id).await.unwrap();
    assert_eq!((later.offset, json(&later.uploaded.unwrap())), (5, body), "whoever missed the answer gets it later");
    assert_eq!(send(&bench, &new.id, 5, "").await.unwrap_err().kind, ErrorKind::Conflict);
}

#[tokio::test]
async fn what_arrived_before_a_break_counts() {
    let bench = Bench::new();
    let new = begin(&bench, 5, &[("filename", "a.gcode"), ("checksum", HELLO)]).await.unwrap();
    for (at, piece) in [(0, "h"), (1, "el")] {
        let mut append = opened(&bench, &new.id, at).await.unwrap();
        append.chunk(Bytes::copy_from_slice(piece.as_bytes())).await.unwrap();
        drop(append);
        assert_eq!(status(&bench, &new.id).await.unwrap().offset, at + piece.len() as u64);
    }
    for wrong in [0, 2, 4, 5, u64::MAX] {
        assert_eq!(send(&bench, &new.id, wrong, "x").await.unwrap_err().kind, ErrorKind::Conflict);
    }
    let bench = restarted(bench);
    assert_eq!(status(&bench, &new.id).await.unwrap().offset, 3);
    send(&bench, &new.id, 3, "l").await.unwrap();
    assert!(send(&bench, &new.id, 4, "o").await.unwrap().uploaded.is_some(), "the checksum is that of the whole file");
    assert_eq!(bench.read("gcodes/a.gcode"), "hello");
}

#[tokio::test]
async fn the_newest_request_wins() {
    let bench = Bench::new();
    let new = begin(&bench, 5, &[("filename", "a.gcode")]).await.unwrap();
    let mut stale = opened(&bench, &new.id, 0).await.unwrap();
    stale.chunk(Bytes::from_static(b"he")).await.unwrap();
    let superseded = stale.superseded();
    let stale = tokio::spawn(async move {
        superseded.await;
        drop(stale);
    });
    assert_eq!(status(&bench, &new.id).await.unwrap().offset, 2, "the stale request has made room, and its bytes count");
    stale.await.unwrap();
    send(&bench, &new.id, 2, "llo").await.unwrap();
    assert_eq!(bench.read("gcodes/a.gcode"), "hello");
}

/// Length, fields, and the error they give.
type Case = (u64, &'static [(&'static str, &'static str)], ErrorKind);

#[tokio::test]
async fn what_can_be_refused_is_refused_before_the_first_byte() {
    let bench = Bench::with(|settings| settings.max_upload_size = 1 << 60);
    bench.write("gcodes/file", "x");
    bench.write("gcodes/loaded.gcode", "x");
    fs::create_dir(bench.path("gcodes/folder")).unwrap();
    *bench.printer.loaded.lock() = Some("loaded.gcode".into());
    let (bad, forbidden) = (ErrorKind::BadRequest, ErrorKind::Forbidden);
    let table: &[Case] = &[
        (5, &[], bad),
        (5, &[("filename", "../x")], bad),
        (5, &[("filename", "none/x")], bad),
        (5, &[("filename", "folder")], bad),
        (5, &[("filename", "x"), ("path", "file")], bad),
        (5, &[("filename", "x"), ("root", "logs")], bad),
        (5, &[("filename", "x"), ("root", "nope")], bad),
        (5, &[("filename", "x"), ("checksum", "zz")], bad),
        (5, &[("filename", "x"), ("path", ".git")], forbidden),
        (5, &[("filename", "x"), ("path", ".bowsprit-upload")], forbidden),
        (5, &[("filename", "loaded.gcode")], forbidden),
        (5, &[("filename", "loaded.ufp")], forbidden),
        ((1 << 60) + 1, &[("filename", "x")], ErrorKind::TooLarge),
        (1 << 60, &[("filename", "x")], ErrorKind::Storage),
    ];
    for (length, fields, kind) in table {
        let error = begin(&bench, *length, fields).await.unwrap_err();
        assert_eq!(error.kind, *kind, "{fields:?} {}", error.message);
        assert_eq!(bench.spooled(), 0);
    }
    begin(&bench, 5, &[("filename", "x"), ("path", "new/deep")]).await.unwrap();
    assert!(!bench.path("gcodes/new").exists());
    let read_only = Bench::with(|settings| settings.write_access = false);
    assert_eq!(begin(&read_only, 5, &[("filename", "x")]).await.unwrap_err().kind, forbidden);
}

#[tokio::test]
async fn a_file_that_cannot_get_its_place_now_can_get_it_later() {
    let bench = Bench::new();
    bench.write("gcodes/a.gcode", "printing");
    let new = begin(&bench, 5, &[("filename", "a.gcode"), ("checksum", HELLO)]).await.unwrap();
    *bench.printer.loaded.lock() = Some("a.gcode".into());
    assert_eq!(send(&bench, &new.id, 0, "hello").await.unwrap_err().kind, ErrorKind::Forbidden);
    assert_eq!(status(&bench, &new.id).await.unwrap().offset, 4, "nobody may believe that it is complete");
    assert_eq!(bench.read("gcodes/a.gcode"), "printing");
    *bench.printer.loaded.lock() = None;
    send(&bench, &new.id, 4, "o").await.unwrap();
    assert_eq!(bench.read("gcodes/a.gcode"), "hello");
}

#[tokio::test]
async fn what_can_never_become_a_file_is_removed() {
    let bench = Bench::new();
    let wrong = HELLO.replace('C', "D");
    for (fields, kind) in [
        ([("filename", "a.gcode"), ("checksum", wrong.as_str())], ErrorKind::Checksum),
        ([("filename", "a.ufp"), ("x", "")], ErrorKind::BadRequest),
    ] {
        let new = begin(&bench, 5, &fields).await.unwrap();
        assert_eq!(send(&bench, &new.id, 0, "hello").await.unwrap_err().kind, kind);
        assert_eq!(status(&bench, &new.id).await.unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(bench.spooled(), 0);
    }
    assert!(bench.notifications().is_empty());
}

#[tokio::test]
async fn more_than_announced_is_refused_and_what_fits_is_kept() {
    let bench = Bench::new();
    let new = begin(&bench, 5, &[("filename", "a.gcode")]).await.unwrap();
    let append = Transfer(bench.files.clone()).append(new.id.clone(), 0, Some(6)).await;
    assert_eq!(append.err().unwrap().kind, ErrorKind::TooLarge);
    let mut append = opened(&bench, &new.id, 0).await.unwrap();
    append.chunk(Bytes::from_static(b"hel")).await.unwrap();
    assert_eq!(append.chunk(Bytes::from_static(b"lo!")).await.unwrap_err().kind, ErrorKind::TooLarge);
    drop(append);
    assert_eq!(status(&bench, &new.id).await.unwrap().offset, 3);
}

#[tokio::test]
async fn the_number_of_open_uploads_is_bounded_and_cancelling_makes_room() {
    let bench = Bench::new();
    let mut ids = Vec::new();
    for index in 0..MAX_OPEN_UPLOADS {
        ids.push(begin(&bench, 5, &[("filename", &format!("{index}.gcode"))]).await.unwrap().id);
    }
    assert_eq!(begin(&bench, 5, &[("filename", "x")]).await.unwrap_err().kind, ErrorKind::TooMany);
    Transfer(bench.files.clone()).cancel_upload(ids[0].clone()).await.unwrap();
    assert_eq!(status(&bench, &ids[0]).await.unwrap_err().kind, ErrorKind::NotFound);
    begin(&bench, 5, &[("filename", "x")]).await.unwrap();
    assert_eq!(bench.spooled(), MAX_OPEN_UPLOADS * 2);
}

#[tokio::test]
async fn uploads_expire_when_nothing_arrives() {
    let bench = Bench::new();
    let new = begin(&bench, 5, &[("filename", "a.gcode")]).await.unwrap();
    let fresh = begin(&bench, 5, &[("filename", "b.gcode")]).await.unwrap();
    let old = SystemTime::now() - UPLOAD_LIFETIME;
    bench.files.resumables.0.lock()[&new.id].state.lock().touched = old;
    assert_eq!(status(&bench, &new.id).await.unwrap_err().kind, ErrorKind::NotFound);
    bench.files.resumables.sweep(SystemTime::now());
    assert_eq!(bench.spooled(), 2, "the fresh one stays");
    let data = fs::File::options().write(true).open(shelf::data_path(&bench.path("gcodes/.bowsprit-upload"), &fresh.id)).unwrap();
    data.set_times(fs::FileTimes::new().set_modified(old)).unwrap();
    let bench = restarted(bench);
    assert_eq!(status(&bench, &fresh.id).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(bench.spooled(), 0);
}

#[tokio::test]
async fn only_so_many_answers_are_kept() {
    let bench = Bench::new();
    let mut ids = Vec::new();
    for index in 0..MAX_KEPT_ANSWERS + 2 {
        let new = begin(&bench, 1, &[("filename", &format!("{index}.txt"))]).await.unwrap();
        send(&bench, &new.id, 0, "x").await.unwrap();
        ids.push(new.id);
    }
    bench.files.resumables.sweep(SystemTime::now());
    assert_eq!(bench.spooled(), MAX_KEPT_ANSWERS);
    assert!(status(&bench, &ids[0]).await.is_err() && status(&bench, ids.last().unwrap()).await.is_ok());
}

/// The file got its place and the server was killed before the answer was noted: nobody uploads it again, and nothing starts twice.
#[tokio::test]
async fn a_file_that_has_its_place_is_complete_after_a_crash() {
    let bench = Bench::new();
    let new = begin(&bench, 5, &[("filename", "a.gcode"), ("print", "true")]).await.unwrap();
    fs::remove_file(shelf::data_path(&bench.path("gcodes/.bowsprit-upload"), &new.id)).unwrap();
    let bench = restarted(bench);
    let after = status(&bench, &new.id).await.unwrap();
    assert_eq!((after.offset, after.uploaded.is_none()), (5, true));
    assert!(bench.printer.started.lock().is_empty());
}

#[tokio::test]
async fn an_empty_file_and_a_container() {
    let bench = Bench::new();
    let new = begin(&bench, 0, &[("filename", "empty.txt")]).await.unwrap();
    send(&bench, &new.id, 0, "").await.unwrap();
    assert_eq!(bench.read("gcodes/empty.txt"), "");
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("3D/model.gcode", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut zip, b"G28").unwrap();
    let zip = zip.finish().unwrap().into_inner();
    let new = begin(&bench, zip.len() as u64, &[("filename", "cube.ufp")]).await.unwrap();
    let mut append = opened(&bench, &new.id, 0).await.unwrap();
    append.chunk(zip.into()).await.unwrap();
    let done = append.finish(Arc::new(Call::internal())).await.unwrap();
    assert_eq!((done.uploaded.unwrap().path.as_str(), bench.read("gcodes/cube.gcode")), ("gcodes/cube.gcode", "G28".into()));
    assert_eq!(bench.spooled(), 2, "two answers, no content");
}

#[tokio::test]
async fn a_client_that_leaves_at_the_end_does_not_stop_the_end() {
    let bench = Bench::new();
    let new = begin(&bench, 5, &[("filename", "a.gcode")]).await.unwrap();
    let mut append = opened(&bench, &new.id, 0).await.unwrap();
    append.chunk(Bytes::from_static(b"hello")).await.unwrap();
    drop(append.finish(Arc::new(Call::internal())));
    eventually(|| bench.notifications().len() == 1).await;
    assert!(status(&bench, &new.id).await.unwrap().uploaded.is_some());
}
