use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::root::{Permissions, Reserved};
use crate::testing::Bench;

async fn paths(bench: &Bench, root: &str) -> Vec<String> {
    bench.files.list(root.into()).await.unwrap().into_iter().map(|file| file.path).collect()
}

#[tokio::test]
async fn gcodes_holds_gcode_only_sorted_without_regard_to_case() {
    let bench = Bench::new();
    for file in ["b.gcode", "A.NC", "sub/c.g", "sub/readme.txt", "a.gcode.bak", ".hidden/x.gcode", "Sub2/z.ufp", ".bowsprit-upload/1.gcode"]
    {
        bench.write(&format!("gcodes/{file}"), "G28");
    }
    assert_eq!(paths(&bench, "gcodes").await, [".hidden/x.gcode", "A.NC", "b.gcode", "sub/c.g", "Sub2/z.ufp"]);
    bench.write("config/printer.cfg", "");
    assert_eq!(paths(&bench, "config").await, ["printer.cfg"]);
    let error = bench.files.list("nope".into()).await.unwrap_err();
    assert_eq!(error.message, "Failed to build file list, invalid path: nope");
}

#[tokio::test]
async fn linked_folders_are_followed_once_and_only_inside() {
    let bench = Bench::new();
    bench.write("gcodes/real/x.gcode", "1234");
    bench.write("outside/y.gcode", "");
    bench.link("gcodes/a-link", "real");
    bench.link("gcodes/real/up", "..");
    bench.link("gcodes/out", bench.path("outside"));
    bench.link("gcodes/broken.gcode", "nowhere");
    bench.link("gcodes/file.gcode", "real/x.gcode");
    let files = bench.files.list("gcodes".into()).await.unwrap();
    let seen: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.size, file.permissions)).collect();
    assert_eq!(seen, [("file.gcode", 4, Permissions::Read), ("real/x.gcode", 4, Permissions::ReadWrite)]);
}

#[tokio::test]
async fn reserved_folders_and_git_are_not_listed() {
    let bench = Bench::with(|settings| {
        let path = settings.data_path.join("config/private");
        settings.reserved.push(Reserved { name: "private".into(), path, readable: false });
        let path = settings.data_path.join("config/shown");
        settings.reserved.push(Reserved { name: "shown".into(), path, readable: true });
    });
    for file in ["private/key", "shown/a.cfg", ".git/HEAD", "sub/.git/HEAD", "b.cfg"] {
        bench.write(&format!("config/{file}"), "");
    }
    let files = bench.files.list("config".into()).await.unwrap();
    let seen: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.permissions)).collect();
    assert_eq!(seen, [("b.cfg", Permissions::ReadWrite), ("shown/a.cfg", Permissions::Read)]);
    let directory = bench.files.directory("config".into(), false).await.unwrap();
    let of = |name: &str| directory.dirs.iter().find(|folder| folder.dirname == name).map(|folder| folder.permissions);
    assert_eq!(of("private"), Some(Permissions::Nothing));
    assert_eq!(of("shown"), Some(Permissions::Read));
    assert_eq!(of(".git"), Some(Permissions::Nothing));
    assert_eq!(of("sub"), Some(Permissions::ReadWrite));
}

#[tokio::test]
async fn names_that_no_request_could_carry_are_left_out() {
    let bench = Bench::new();
    fs::write(bench.path("gcodes").join(std::ffi::OsStr::from_bytes(b"\xff.gcode")), "").unwrap();
    bench.write("gcodes/new\nline \"q\".gcode", "");
    assert_eq!(paths(&bench, "gcodes").await, ["new\nline \"q\".gcode"]);
}

#[tokio::test]
async fn a_directory_shows_everything_directly_in_it() {
    let bench = Bench::new();
    for file in ["a.gcode", "readme.txt", "sub/b.gcode", ".thumbs/a.png", ".bowsprit-upload/1.part"] {
        bench.write(&format!("gcodes/{file}"), "12345");
    }
    let directory = bench.files.directory("gcodes".into(), false).await.unwrap();
    let mut dirs: Vec<_> = directory.dirs.iter().map(|folder| folder.dirname.as_str()).collect();
    dirs.sort_unstable();
    let mut files: Vec<_> = directory.files.iter().map(|file| (file.filename.as_str(), file.size)).collect();
    files.sort_unstable();
    assert_eq!(dirs, [".thumbs", "sub"]);
    assert_eq!(files, [("a.gcode", 5), ("readme.txt", 5)]);
    assert!(directory.files.iter().all(|file| file.modified > 1.6e9));
    assert_eq!((directory.root_info.name.as_str(), directory.root_info.permissions), ("gcodes", Permissions::ReadWrite));
    let usage = directory.disk_usage;
    assert!(usage.total > 0 && usage.used <= usage.total && usage.free <= usage.total);
    assert_eq!(bench.files.directory("gcodes/sub/".into(), false).await.unwrap().files[0].filename, "b.gcode");
}

#[tokio::test]
async fn a_directory_that_is_none() {
    let bench = Bench::new();
    bench.write("gcodes/a.gcode", "");
    for (path, text) in [
        ("gcodes/none", "Directory does not exist (gcodes/none)"),
        ("gcodes/a.gcode", "Directory does not exist (gcodes/a.gcode)"),
        ("nope", "Invalid root path (nope)"),
    ] {
        assert_eq!(bench.files.directory(path.into(), false).await.unwrap_err().message, text);
    }
    assert_eq!(bench.files.directory("gcodes/.bowsprit-upload".into(), false).await.unwrap_err().kind, protocol::ErrorKind::Forbidden);
}

#[tokio::test]
async fn two_thousand_files_are_a_short_list() {
    let bench = Bench::new();
    for index in 0..2000 {
        fs::write(bench.path(&format!("gcodes/{index}.gcode")), "").unwrap();
    }
    assert_eq!(paths(&bench, "gcodes").await.len(), 2000);
}
