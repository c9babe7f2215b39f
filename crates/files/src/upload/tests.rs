use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use protocol::{ApiError, ErrorKind};
use rpc::Call;
use rpc::transfer::FileTransfer;
use serde_json::json;

use super::MULTIPART_OVERHEAD;
use crate::service::Transfer;
use crate::testing::{Bench, eventually, json};

/// SHA-256 of "hello".
const HELLO: &str = "2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824";

fn internal() -> Arc<Call> {
    Arc::new(Call::internal())
}

#[tokio::test]
async fn the_answer_stands_flat_and_in_result_which_is_first() {
    let bench = Bench::new();
    let done = bench.upload("cube.gcode", "G28", &[("path", "sub/deep")]).await.unwrap();
    assert_eq!(done.path, "gcodes/sub/deep/cube.gcode");
    assert!(done.body.starts_with(b"{\"result\":{"));
    let body = json(&done);
    assert_eq!(body["item"]["path"], "sub/deep/cube.gcode");
    assert_eq!((&body["item"]["root"], &body["item"]["size"], &body["item"]["permissions"]), (&json!("gcodes"), &json!(3), &json!("rw")));
    assert!(body["item"]["modified"].as_f64().unwrap() > 1.6e9);
    assert_eq!((&body["action"], &body["print_started"], &body["print_queued"]), (&json!("create_file"), &json!(false), &json!(false)));
    for member in ["item", "action", "print_started", "print_queued"] {
        assert_eq!(body["result"][member], body[member]);
    }
    let told = bench.notifications();
    let folders: Vec<_> = told[..2].iter().map(|change| (&change["action"], &change["item"]["path"])).collect();
    assert_eq!(folders, [(&json!("create_dir"), &json!("sub")), (&json!("create_dir"), &json!("sub/deep"))], "before what is in them");
    assert_eq!(told[2..], [json!({"action": "create_file", "item": body["item"]})]);
    assert_eq!(bench.read("gcodes/sub/deep/cube.gcode"), "G28");
    bench.upload("cube.gcode", "G28", &[("path", "sub/deep")]).await.unwrap();
    assert_eq!(bench.notifications().len(), 1, "they are there already");
}

#[tokio::test]
async fn print_flags_are_for_gcode_files_only() {
    let bench = Bench::new();
    let body = json(&bench.upload("printer.cfg", "", &[("root", "CONFIG"), ("print", "true")]).await.unwrap());
    assert_eq!(body["item"]["root"], "config");
    assert!(body.get("print_started").is_none() && body.get("print_queued").is_none());
    assert!(json(&bench.upload("notes.txt", "", &[]).await.unwrap()).get("print_started").is_none());
}

#[tokio::test]
async fn fields_may_come_after_the_file() {
    let bench = Bench::new();
    let mut upload = bench.begin();
    upload.field("checksum", HELLO.into()).unwrap();
    upload.start_file("a.cfg").await.unwrap();
    for piece in ["he", "", "llo"] {
        upload.chunk(Bytes::from(piece)).await.unwrap();
    }
    upload.field("root", "config".into()).unwrap();
    upload.field("path", "/sub/".into()).unwrap();
    assert_eq!(upload.finish(internal()).await.unwrap().path, "config/sub/a.cfg");
    assert_eq!(bench.read("config/sub/a.cfg"), "hello");
    assert_eq!(bench.spooled(), 0);
}

/// Uploads and returns the error; nothing may be left behind by it.
async fn refused(bench: &Bench, name: &str, fields: &[(&str, &str)]) -> (ErrorKind, String) {
    let error = bench.upload(name, "hello", fields).await.unwrap_err();
    assert_eq!(bench.spooled(), 0, "{}", error.message);
    assert!(bench.notifications().is_empty());
    (error.kind, error.message)
}

#[tokio::test]
async fn a_wrong_checksum_leaves_nothing() {
    let bench = Bench::new();
    bench.write("gcodes/a.gcode", "old");
    let wrong = HELLO.replace('C', "D");
    let expected = format!("File checksum mismatch: expected {wrong}, calculated {}", HELLO.to_lowercase());
    assert_eq!(refused(&bench, "a.gcode", &[("checksum", &wrong), ("path", "new")]).await, (ErrorKind::Checksum, expected));
    assert!(!bench.path("gcodes/new").exists());
    assert_eq!(refused(&bench, "a.gcode", &[("checksum", "no hex")]).await.0, ErrorKind::Checksum);
    assert_eq!(bench.read("gcodes/a.gcode"), "old");
    bench.upload("a.gcode", "hello", &[("checksum", HELLO)]).await.unwrap();
    assert_eq!(bench.read("gcodes/a.gcode"), "hello");
}

/// File name, text parts, and the error they give.
type Case = (&'static str, &'static [(&'static str, &'static str)], ErrorKind, &'static str);

#[tokio::test]
async fn the_table_of_errors() {
    let bench = Bench::with(|settings| settings.options.enable_config_write_access = false);
    for file in ["gcodes/folder/x", "gcodes/file", "database/data.db", "outside/x", "gcodes2/x"] {
        bench.write(file, "kept");
    }
    bench.link("gcodes/out", bench.path("outside"));
    bench.link("gcodes/db", bench.path("database"));
    let (bad, forbidden) = (ErrorKind::BadRequest, ErrorKind::Forbidden);
    let table: &[Case] = &[
        ("", &[], bad, "Multipart filename omitted"),
        (" / ", &[], bad, "Multipart filename omitted"),
        (".", &[("path", "sub")], bad, "Multipart filename omitted"),
        ("x", &[("root", "nope")], bad, "Root nope not available"),
        ("x", &[("root", "config")], bad, "Invalid root request: config"),
        ("x", &[("root", "logs")], bad, "Invalid root request: logs"),
        ("x", &[("path", "../gcodes2")], bad, "Cannot write to path: ../gcodes2/x: the path leaves its root"),
        ("../x", &[("path", "a")], bad, "Cannot write to path: a/../x: the path leaves its root"),
        ("x", &[("path", "out")], bad, "Cannot write to path: out/x"),
        ("x", &[("path", "db")], bad, "Cannot write to path: db/x"),
        ("x\nM112.gcode", &[], bad, "Cannot write to path: x\nM112.gcode: a new name cannot contain control characters"),
        ("a\0b", &[], bad, "Cannot write to path: a\0b: a path cannot contain a NUL character"),
        ("none/x", &[("path", "made")], bad, "Cannot write to path: made/none/x: folder made/none does not exist"),
        ("folder", &[], bad, "Cannot write to path: folder: it is a folder"),
        ("x", &[("path", "file")], bad, "Cannot write to path: file/x: file is a file, not a folder"),
        ("x", &[("path", "file/deep")], bad, "Cannot write to path: file/deep/x: file is a file, not a folder"),
        ("file/x", &[], bad, "Cannot write to path: file/x: folder file does not exist"),
        ("x", &[("path", ".git")], forbidden, "Access to .git folders is forbidden"),
        ("x", &[("path", ".bowsprit-upload")], forbidden, "Access to internal folders is forbidden"),
    ];
    for (name, fields, kind, text) in table {
        assert_eq!(refused(&bench, name, fields).await, (*kind, (*text).to_owned()), "{name:?} {fields:?}");
    }
    assert!(!bench.path("gcodes/made").exists(), "folders made for a failed upload are removed");
    assert_eq!(
        (bench.read("gcodes2/x"), bench.read("outside/x"), bench.read("database/data.db")),
        ("kept".into(), "kept".into(), "kept".into())
    );
}

#[tokio::test]
async fn a_form_without_a_file_or_with_two() {
    let bench = Bench::new();
    let mut upload = bench.begin();
    upload.field("root", "gcodes".into()).unwrap();
    assert_eq!(upload.chunk(Bytes::new()).await.unwrap_err().kind, ErrorKind::BadRequest);
    assert_eq!(upload.finish(internal()).await.unwrap_err().message, "Multipart filename omitted");
    let mut upload = bench.begin();
    upload.start_file("a.gcode").await.unwrap();
    assert_eq!(upload.start_file("b.gcode").await.unwrap_err().kind, ErrorKind::BadRequest);
}

#[tokio::test]
async fn without_write_access_nothing_is_taken() {
    let bench = Bench::with(|settings| settings.write_access = false);
    let error = Transfer(bench.files.clone()).begin_upload(None).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Forbidden);
    assert_eq!(bench.files.directory("gcodes".into(), false).await.unwrap().root_info.permissions.as_str(), "r");
}

#[tokio::test]
async fn the_loaded_file_is_not_replaced() {
    let bench = Bench::new();
    bench.write("gcodes/sub/a.gcode", "printing");
    bench.link("gcodes/link.gcode", "sub/a.gcode");
    *bench.printer.loaded.lock() = Some("sub/a.gcode".into());
    let text = "File is loaded, upload not permitted";
    for (name, path) in [("a.gcode", "sub"), ("link.gcode", ""), ("x/../sub/a.gcode", "")] {
        assert_eq!(refused(&bench, name, &[("path", path)]).await, (ErrorKind::Forbidden, text.into()), "{name}");
    }
    assert_eq!(bench.read("gcodes/sub/a.gcode"), "printing");
    bench.upload("b.gcode", "", &[("path", "sub")]).await.unwrap();
    bench.upload("sub/a.gcode", "", &[("root", "config"), ("path", "")]).await.unwrap_err();
}

#[tokio::test]
async fn print_starts_when_it_can() {
    let bench = Bench::new();
    let started = |bench: &Bench| bench.printer.started.lock().clone();
    let print: &[_] = &[("print", "true"), ("path", "/sub")];
    let body = json(&bench.upload("a.gcode", "", print).await.unwrap());
    assert_eq!((&body["print_started"], started(&bench)), (&json!(false), vec![]), "busy");
    bench.printer.free.store(true, Ordering::Relaxed);
    let body = json(&bench.upload("a.gcode", "", print).await.unwrap());
    assert_eq!((&body["print_started"], started(&bench)), (&json!(true), vec!["sub/a.gcode".to_owned()]));
    json(&bench.upload("a.gcode", "", &[("print", "True")]).await.unwrap());
    json(&bench.upload("a.txt", "", print).await.unwrap());
    assert_eq!(started(&bench).len(), 1, "only the exact word, only gcode files");
    bench.printer.refuses.store(true, Ordering::Relaxed);
    assert_eq!(json(&bench.upload("a.gcode", "", print).await.unwrap())["print_started"], json!(false), "the upload succeeds all the same");
}

#[tokio::test]
async fn too_large_at_the_announcement_and_while_it_comes() {
    let bench = Bench::with(|settings| settings.max_upload_size = 10);
    let begin = |announced| Transfer(bench.files.clone()).begin_upload(announced);
    assert_eq!(begin(Some(10 + MULTIPART_OVERHEAD + 1)).err().unwrap().kind, ErrorKind::TooLarge);
    let mut upload = begin(Some(10 + MULTIPART_OVERHEAD)).unwrap();
    upload.start_file("a.gcode").await.unwrap();
    upload.chunk(Bytes::from_static(&[b'x'; 10])).await.unwrap();
    upload.finish(internal()).await.unwrap();
    let mut upload = begin(None).unwrap();
    upload.start_file("b.gcode").await.unwrap();
    upload.chunk(Bytes::from_static(&[b'x'; 10])).await.unwrap();
    let error = upload.chunk(Bytes::from_static(b"x")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    assert!(error.message.contains("10 bytes"));
    drop(upload);
    eventually(|| bench.spooled() == 0).await;
    assert!(!bench.path("gcodes/b.gcode").exists());
}

#[tokio::test]
async fn a_disk_that_cannot_hold_it_is_told_before_the_first_byte() {
    let bench = Bench::with(|settings| settings.max_upload_size = u64::MAX);
    let mut upload = Transfer(bench.files.clone()).begin_upload(Some(1 << 60)).unwrap();
    let error = upload.start_file("a.gcode").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Storage);
    assert!(error.message.contains("are needed") && error.message.contains("are free"), "{}", error.message);
    assert_eq!(bench.spooled(), 0);
    // What it would have taken is free for others again.
    drop(upload);
    bench.upload("b.gcode", "", &[]).await.unwrap();
}

#[tokio::test]
async fn a_dropped_upload_leaves_nothing() {
    let bench = Bench::new();
    let mut upload = bench.begin();
    upload.start_file("a.gcode").await.unwrap();
    upload.chunk(Bytes::from(vec![0; 1 << 20])).await.unwrap();
    assert_eq!(bench.spooled(), 1);
    drop(upload);
    eventually(|| bench.spooled() == 0).await;
    assert_eq!(fs::read_dir(bench.path("gcodes")).unwrap().count(), 1, "only the hidden folder");
}

#[tokio::test]
async fn a_client_that_leaves_at_the_end_does_not_stop_the_end() {
    let bench = Bench::new();
    bench.printer.free.store(true, Ordering::Relaxed);
    let mut upload = bench.begin();
    upload.field("print", "true".into()).unwrap();
    upload.start_file("a.gcode").await.unwrap();
    drop(upload.finish(internal()));
    eventually(|| bench.printer.started.lock().len() == 1).await;
    eventually(|| bench.notifications().len() == 1).await;
}

#[tokio::test]
async fn leftovers_of_an_earlier_run_are_swept() {
    let bench = Bench::new();
    bench.write("gcodes/.bowsprit-upload/77-0.part", "half");
    let printer = bench.printer.clone();
    let again = crate::Files::open(
        crate::FilesSettings::new(bench.data.path()),
        store::Store::in_memory(&[]).unwrap(),
        bench.connections.clone(),
        printer,
    )
    .unwrap();
    assert_eq!(bench.spooled(), 0);
    assert_eq!(again.registered_directories(), ["config", "logs", "gcodes"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_uploads_do_not_touch_each_other() {
    let bench = Arc::new(Bench::new());
    let work = (0..24_usize).map(|index| {
        let bench = bench.clone();
        tokio::spawn(async move {
            let content = index.to_string().repeat(20_000 + index);
            let mut upload = bench.begin();
            upload.start_file(&format!("{index}.gcode")).await?;
            for piece in content.as_bytes().chunks(3001) {
                upload.chunk(Bytes::copy_from_slice(piece)).await?;
            }
            upload.finish(internal()).await?;
            assert_eq!(bench.read(&format!("gcodes/{index}.gcode")), content);
            Ok::<_, ApiError>(())
        })
    });
    for done in work.collect::<Vec<_>>() {
        done.await.unwrap().unwrap();
    }
    assert_eq!(bench.spooled(), 0);
    assert_eq!(bench.notifications().len(), 24);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_file_is_never_seen_half_written() {
    let bench = Arc::new(Bench::new());
    let versions = ["a".repeat(100_000), "b".repeat(100_000)];
    bench.write("gcodes/x.gcode", &versions[0]);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (reader_bench, reader_stop) = (bench.clone(), stop.clone());
    let reader = tokio::task::spawn_blocking(move || {
        let mut looks = 0;
        while !reader_stop.load(Ordering::Relaxed) {
            let seen = reader_bench.read("gcodes/x.gcode");
            assert_eq!(seen.len(), 100_000);
            assert!(seen.bytes().all(|byte| byte == seen.as_bytes()[0]));
            looks += 1;
        }
        looks
    });
    for round in 0..20 {
        bench.upload("x.gcode", &versions[round % 2], &[]).await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    assert!(reader.await.unwrap() > 0);
}

#[tokio::test]
async fn a_links_target_is_replaced_and_the_link_stays() {
    let bench = Bench::new();
    bench.write("config/shared/real.cfg", "old");
    bench.link("config/link.cfg", "shared/real.cfg");
    let body = json(&bench.upload("link.cfg", "new", &[("root", "config")]).await.unwrap());
    assert_eq!((&body["item"]["path"], &body["item"]["permissions"]), (&json!("link.cfg"), &json!("r")));
    assert_eq!(bench.read("config/shared/real.cfg"), "new");
    assert!(bench.path("config/link.cfg").symlink_metadata().unwrap().is_symlink());
}

#[tokio::test]
async fn a_broken_link_is_replaced_where_it_stands() {
    let bench = Bench::new();
    bench.link("gcodes/link.gcode", bench.path("outside.gcode"));
    bench.upload("link.gcode", "new", &[]).await.unwrap();
    assert!(!bench.path("outside.gcode").exists());
    assert!(bench.path("gcodes/link.gcode").symlink_metadata().unwrap().is_file());
}

#[tokio::test]
async fn a_restricted_file_stays_restricted() {
    let bench = Bench::new();
    bench.write("config/printer.cfg", "old");
    fs::set_permissions(bench.path("config/printer.cfg"), fs::Permissions::from_mode(0o600)).unwrap();
    bench.upload("printer.cfg", "new", &[("root", "config")]).await.unwrap();
    assert_eq!(fs::metadata(bench.path("config/printer.cfg")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn odd_but_harmless_names_are_kept() {
    let bench = Bench::new();
    for name in ["Würfel \"1\" 100%.gcode", "..gcode", "a\\b.gcode", "-rf.gcode"] {
        let done = bench.upload(name, "G28", &[]).await.unwrap();
        assert_eq!(done.path, format!("gcodes/{name}"));
        assert_eq!(bench.read(&format!("gcodes/{name}")), "G28");
    }
}

/// A zip with these members.
fn container(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in members {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        std::io::Write::write_all(&mut zip, content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The container with another size wherever it says `size`.
fn lying(container: &[u8], size: u32, told: u32) -> Vec<u8> {
    let mut container = container.to_vec();
    for at in 0..container.len() - 3 {
        if container[at..at + 4] == size.to_le_bytes() {
            container[at..at + 4].copy_from_slice(&told.to_le_bytes());
        }
    }
    container
}

/// Whatever is cut off or changed, nothing but a file that passed its own checksum comes out.
#[test]
fn a_container_that_was_cut_or_changed_gives_its_file_or_nothing() {
    let model: Vec<u8> = (0..75_u32).flat_map(u32::to_le_bytes).collect();
    let good = container(&[("3D/model.gcode", &model), ("Metadata/thumbnail.png", b"png")]);
    assert_eq!(super::unpack_ufp(&good, 1 << 20).unwrap(), (model.clone(), Some(b"png".to_vec())));
    assert_eq!(super::unpack_ufp(&good, 100).unwrap_err().kind, ErrorKind::TooLarge);
    let size = u32::try_from(model.len()).unwrap();
    for told in [0, 1, size - 1, size + 1, u32::MAX - 1] {
        match super::unpack_ufp(&lying(&good, size, told), 1 << 20) {
            Ok((gcode, _)) => assert!(gcode == model, "{told}: sizes are not believed"),
            Err(error) => assert_eq!(error.kind, ErrorKind::BadRequest, "{told}"),
        }
    }
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 0x41;
        for bytes in [&good[..at], &changed] {
            match super::unpack_ufp(bytes, 1 << 20) {
                Ok((gcode, _)) => assert!(gcode == model, "byte {at}"),
                Err(error) => assert!(matches!(error.kind, ErrorKind::BadRequest | ErrorKind::TooLarge), "{}", error.message),
            }
        }
    }
}

async fn upload_bytes(bench: &Bench, name: &str, content: Vec<u8>, fields: &[(&str, &str)]) -> Result<rpc::transfer::Uploaded, ApiError> {
    let mut upload = bench.begin();
    for (name, value) in fields {
        upload.field(name, (*value).to_owned())?;
    }
    upload.start_file(name).await?;
    upload.chunk(content.into()).await?;
    upload.finish(internal()).await
}

#[tokio::test]
async fn a_ufp_container_becomes_its_gcode_file() {
    let bench = Bench::new();
    bench.printer.free.store(true, Ordering::Relaxed);
    for slash in ["/", ""] {
        let members = [
            (format!("{slash}3D/model.gcode"), &b"G28"[..]),
            (format!("{slash}Metadata/thumbnail.png"), b"png"),
            ("../../evil".into(), b"x"),
        ];
        let zip = container(&members.each_ref().map(|(name, content)| (name.as_str(), *content)));
        let done = upload_bytes(&bench, "cube.v1.UFP", zip, &[("path", "sub"), ("print", "true")]).await.unwrap();
        assert_eq!(done.path, "gcodes/sub/cube.v1.gcode");
        assert_eq!((&json(&done)["item"]["size"], &json(&done)["print_started"]), (&json!(3), &json!(true)));
        assert_eq!((bench.read("gcodes/sub/cube.v1.gcode"), bench.read("gcodes/sub/.thumbs/cube.v1.png")), ("G28".into(), "png".into()));
        assert_eq!(fs::read_dir(bench.path("gcodes/sub")).unwrap().count(), 2);
        assert_eq!(bench.spooled(), 0);
        fs::remove_dir_all(bench.path("gcodes/sub")).unwrap();
    }
    let zip = container(&[("3D/model.gcode", b"G28")]);
    upload_bytes(&bench, "cube.ufp", zip.clone(), &[("root", "config")]).await.unwrap();
    assert_eq!(fs::read(bench.path("config/cube.ufp")).unwrap(), zip, "an ordinary file elsewhere");
}

#[tokio::test]
async fn a_broken_container_makes_nothing() {
    let bench = Bench::with(|settings| settings.max_upload_size = 10_000);
    let good = container(&[("3D/model.gcode", &[b'x'; 5000])]);
    let mut damaged = good.clone();
    damaged[40..60].fill(0xff);
    for (content, kind) in [
        (b"no zip at all".to_vec(), ErrorKind::BadRequest),
        (Vec::new(), ErrorKind::BadRequest),
        (good[..good.len() - 30].to_vec(), ErrorKind::BadRequest),
        (damaged, ErrorKind::BadRequest),
        (container(&[("model.gcode", b"x")]), ErrorKind::BadRequest),
        (container(&[("3D/model.gcode", &[b'x'; 10_001])]), ErrorKind::TooLarge),
    ] {
        let error = upload_bytes(&bench, "cube.ufp", content, &[]).await.unwrap_err();
        assert_eq!(error.kind, kind, "{}", error.message);
        assert_eq!(bench.spooled(), 0);
    }
    assert_eq!(fs::read_dir(bench.path("gcodes")).unwrap().count(), 1, "only the hidden folder");
    assert!(bench.notifications().is_empty());
}

#[tokio::test]
async fn an_upload_to_another_file_system_arrives_whole() {
    // Memory is usually a file system of its own; where it is not, the plain rename is checked once more.
    let media = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let bench = Bench::with(|settings| settings.link_targets = vec![media.path().to_owned()]);
    bench.link("gcodes/usb", media.path());
    let content = "G1 X1\n".repeat(50_000);
    for _ in 0..2 {
        bench.upload("a.gcode", &content, &[("path", "usb/sub")]).await.unwrap();
        assert_eq!(fs::read_to_string(media.path().join("sub/a.gcode")).unwrap(), content);
    }
    assert_eq!(fs::read_dir(media.path().join("sub")).unwrap().count(), 1, "no hidden folder stays there");
    assert_eq!(bench.spooled(), 0);
}
