//! Paths that lead elsewhere, in every spelling, on every operation and transport: refused, and nothing outside is touched or told.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Form, Rpc, TestServer, ws::Ws};

const SECRET: &str = "nobody may read this";

/// Paths that begin with a root, as JSON-RPC gives them: nothing is decoded any more.
fn bad_paths() -> Vec<String> {
    let mut paths: Vec<String> = [
        "",
        ".",
        "..",
        "../outside",
        "/etc/passwd",
        "gcodes/../../outside",
        "gcodes//..//./../outside",
        "gcodes/a/../../../outside",
        "nope/x",
        "GCODES/keep.gcode",
        "gcodes\\..\\outside",
        "%2e%2e/outside",
        "gcodes%2f..%2f..%2foutside",
        "gcodes/\0",
        "gcodes/keep.gcode\0.png",
        "config/.git",
        "config/.git/HEAD",
        "config/sub/.git/HEAD",
        "config/./.git/HEAD",
        "gcodes/.bowsprit-upload",
        "gcodes/.bowsprit-upload/x",
        "gcodes/out/secret",
        "gcodes/out/../out/secret",
        "config/out.cfg",
        "gcodes/up/outside",
        "config/safe/key",
        "config/safe",
        "gcodes/base/x",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push(format!("gcodes/{}", "x".repeat(256)));
    paths.push(format!("gcodes/{}", "x/".repeat(200)));
    paths.push(format!("gcodes/{}", "y".repeat(5000)));
    paths
}

/// What lies outside of the roots, inside of reserved folders, and inside, with links from one to the other.
fn prepare(folder: &Path) {
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for path in ["outside", "elsewhere/secret", "certs/key", "database/base", "config/.git/HEAD", "config/sub/.git/HEAD"] {
        write(path, SECRET);
    }
    write("gcodes/keep.gcode", "G28\n");
    write("config/keep.cfg", "x");
    for (link, target) in [
        ("gcodes/out", "../elsewhere"),
        ("gcodes/up", ".."),
        ("gcodes/base", "../database"),
        ("config/out.cfg", "../outside"),
        ("config/safe", "../certs"),
    ] {
        std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
    }
}

/// Everything that must stay as it is, with its content.
fn state(folder: &Path) -> BTreeMap<String, String> {
    fn walk(folder: &Path, into: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.to_string_lossy().into_owned();
            if entry.is_symlink() {
                into.insert(name, std::fs::read_link(&entry).unwrap().to_string_lossy().into_owned());
            } else if entry.is_dir() {
                into.insert(format!("{name}/"), String::new());
                walk(&entry, into);
            } else if entry.is_file() && !name.contains("/bowsprit.db") && !name.ends_with("stderr.txt") {
                into.insert(name, std::fs::read_to_string(&entry).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, &mut found);
    // Made with the first upload, refused or not.
    found.retain(|name, _| !name.ends_with("/.bowsprit-upload/") && !name.contains("/comms/"));
    found
}

async fn start() -> (TestServer, BTreeMap<String, String>) {
    let server = TestServer::builder().without_printer().prepare(prepare).start().await;
    let before = state(&server.path(""));
    (server, before)
}

/// Every operation with this path in every place that takes one.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("get_directory", json!({"path": path})),
        ("post_directory", json!({"path": path})),
        ("delete_directory", json!({"path": path, "force": true})),
        ("delete_file", json!({"path": path})),
        ("move", json!({"source": path, "dest": "gcodes/stolen.gcode"})),
        ("move", json!({"source": "gcodes/keep.gcode", "dest": path})),
        ("copy", json!({"source": path, "dest": "gcodes/stolen.gcode"})),
        ("copy", json!({"source": "gcodes/keep.gcode", "dest": path})),
        ("copy", json!({"source": "config/sub", "dest": path})),
        ("zip", json!({"items": [path], "dest": "gcodes/stolen.zip"})),
        ("zip", json!({"items": ["gcodes/keep.gcode"], "dest": path})),
        ("list", json!({"root": path})),
    ]
}

async fn refused(ws: &mut Ws, method: &str, params: Value) {
    let shown = params.to_string().chars().take(120).collect::<String>();
    let error = Rpc::call(ws, &format!("server.files.{method}"), params).await;
    let error = error.err().unwrap_or_else(|| panic!("{method} {shown} was done"));
    assert!(matches!(error.code, 400 | 403 | 405 | -32601), "{method} {shown}: {error:?}");
    assert!(!error.message.is_empty() && !error.message.contains(SECRET), "{error:?}");
}

#[tokio::test]
async fn by_json_rpc() {
    let (server, before) = start().await;
    let mut ws = server.ws().await;
    for path in bad_paths() {
        for (method, params) in calls(&path) {
            refused(&mut ws, method, params).await;
        }
    }
    // Relative to `gcodes`.
    for name in ["../outside", "/../outside", "a/../../outside", "out/secret", "up/outside", "base/x", "keep.gcode\0", &"x".repeat(300)] {
        for method in ["metadata", "metascan", "thumbnails"] {
            refused(&mut ws, method, json!({"filename": name})).await;
        }
    }
    assert_eq!(state(&server.path("")), before);
}

#[tokio::test]
async fn by_http() {
    let (server, before) = start().await;
    let http = server.http();
    for spelled in [
        "..",
        "%2e%2e/outside",
        "gcodes/..%2f..%2foutside",
        "gcodes/%2e%2e/%2e%2e/outside",
        "gcodes/%252e%252e/%252e%252e/outside",
        "gcodes/%c0%ae%c0%ae/%c0%ae%c0%ae/outside",
        "gcodes/..%5c..%5coutside",
        "gcodes/%00",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "gcodes/out/secret",
        "config/out.cfg",
        "config/.git/HEAD",
        "config/%2egit/HEAD",
        "gcodes/base/bowsprit.db",
        "gcodes/up/outside",
        "config/safe/key",
        "gcodes/keep.gcode%00.png",
        "gcodes/..;/..;/outside",
        "gcodes/....//....//outside",
        "config/../gcodes/keep.gcode",
    ] {
        for verb in ["GET", "HEAD", "DELETE"] {
            let reply = http.send(verb, &format!("/server/files/{spelled}"), &[], b"").await;
            assert!(matches!(reply.status, 400 | 403 | 404 | 405), "{verb} {spelled}: {}", reply.status);
            assert!(!reply.text().contains(SECRET), "{verb} {spelled}");
        }
        // A backslash is part of a name, and operations may name one root by way of another.
        if spelled.contains("%5c") || spelled.contains("config/../") {
            continue;
        }
        for (verb, target) in [
            ("GET", format!("/server/files/metadata?filename=../{spelled}")),
            ("POST", format!("/server/files/metascan?filename=../{spelled}")),
            ("POST", format!("/server/files/directory?path={spelled}")),
            ("DELETE", format!("/server/files/directory?force=true&path={spelled}")),
            ("POST", format!("/server/files/copy?source={spelled}&dest=gcodes/stolen")),
            ("POST", format!("/server/files/move?source=gcodes/keep.gcode&dest={spelled}")),
        ] {
            let reply = http.send(verb, &target, &[], b"").await;
            assert!(matches!(reply.status, 400 | 403 | 404 | 405), "{verb} {target}: {} {}", reply.status, reply.text());
        }
    }
    for (folder, name) in [
        ("../..", "x"),
        ("", "../../outside"),
        ("out", "secret"),
        ("up", "outside"),
        ("base", "x"),
        (".bowsprit-upload", "x"),
        (".git", "x"),
        ("", "keep.gcode/x"),
        ("keep.gcode", "x"),
        ("..\\..", "../x"),
    ] {
        let reply = http.upload(Form::default().field("path", folder).file(name, b"G1\n")).await;
        assert!(matches!(reply.status, 400 | 403 | 500), "{folder:?} {name:?}: {} {}", reply.status, reply.text());
    }
    assert_eq!(state(&server.path("")), before);
}

#[tokio::test]
async fn names_that_are_only_strange() {
    let server = TestServer::without_printer().await;
    let (http, mut ws) = (server.http(), server.ws().await);
    for name in ["a\nb", "a\rb", "a\u{7}", "\u{1b}[31m", "\u{85}"] {
        refused(&mut ws, "post_directory", json!({"path": format!("gcodes/{name}")})).await;
        server.upload("keep.gcode", "G28\n").await;
        refused(&mut ws, "move", json!({"source": "gcodes/keep.gcode", "dest": format!("gcodes/{name}")})).await;
        refused(&mut ws, "zip", json!({"items": ["gcodes/keep.gcode"], "dest": format!("gcodes/{name}")})).await;
    }
    for name in [
        "it's \"quoted\".gcode",
        "A.gcode",
        "a.gcode",
        "a.GCODE",
        "\u{202e}edocg.gcode",
        "e\u{301}.gcode",
        "é.gcode",
        "-rf.gcode",
        "$(x);|&.gcode",
    ] {
        ws.ok("server.files.copy", json!({"source": "gcodes/keep.gcode", "dest": format!("gcodes/{name}")})).await;
        assert!(server.path("gcodes").join(name).is_file(), "{name}");
        let found = ws.ok("server.files.metadata", json!({"filename": name})).await;
        assert_eq!(found["filename"], name);
        let escaped: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let reply = http.get(&format!("/server/files/gcodes/{escaped}")).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "G28\n"), "{name}");
        let disposition = reply.header("content-disposition").unwrap();
        assert!(disposition.is_ascii() && !disposition.contains("\"quoted\""), "{disposition}");
        ws.ok("server.files.delete_file", json!({"path": format!("gcodes/{name}")})).await;
    }
}

#[tokio::test]
async fn archives_hold_files_and_nothing_else() {
    let server = TestServer::builder().without_printer().prepare(prepare).start().await;
    std::fs::write(server.path("config/quote\".cfg"), "x").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, server.path("config/pipe"), rustix::fs::Mode::RWXU).unwrap();
    std::os::unix::fs::symlink("keep.cfg", server.path("config/again.cfg")).unwrap();
    std::os::unix::fs::symlink("nowhere", server.path("config/broken.cfg")).unwrap();
    server
        .ws()
        .await
        .ok("server.files.zip", json!({"items": ["config", "config/keep.cfg"], "dest": "gcodes/x.zip", "store_only": true}))
        .await;
    let archive = std::fs::read(server.path("gcodes/x.zip")).unwrap();
    let holds = |text: &str| archive.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(
        holds("config/quote\".cfg") && holds("config/keep.cfg") != holds("config/again.cfg"),
        "a file that is reached twice is there once"
    );
    for absent in [SECRET, "pipe", "broken", ".git", "safe", "sub/"] {
        assert!(!holds(absent), "{absent}");
    }
}
