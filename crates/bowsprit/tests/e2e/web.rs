//! A front end from a folder: what is served, what is not, and what stays with the API.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::harness::TestServer;
use crate::harness::server::Builder;

const ROOT: &str = "[web]\nroot: {data_path}/ui";

/// What a browser sends when somebody opens an address.
const OPENING: &[(&str, &str)] = &[("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")];

fn front_end(folder: &Path) {
    let ui = folder.join("ui");
    for (path, text) in [("index.html", "<html>front end</html>"), ("config.json", "{}"), ("assets/app-DiwrgTda.js", "script")] {
        std::fs::create_dir_all(ui.join(path).parent().unwrap()).unwrap();
        std::fs::write(ui.join(path), text).unwrap();
    }
    std::fs::write(ui.join(".env"), "hidden").unwrap();
    symlink(folder.join("config"), ui.join("config-link")).unwrap();
}

fn server() -> Builder {
    TestServer::builder().without_printer().config(ROOT).prepare(front_end)
}

#[tokio::test]
async fn a_front_end_is_served_beside_the_api() {
    let server = server().start().await;
    let http = server.http();
    let page = http.send("GET", "/", OPENING, b"").await;
    assert_eq!((page.status, page.text().as_str()), (200, "<html>front end</html>"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let script = http.get("/assets/app-DiwrgTda.js").await;
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    assert_eq!(script.header("cache-control"), Some("public, max-age=31536000, immutable"));
    let tag = script.header("etag").unwrap();
    assert_eq!(http.send("GET", "/assets/app-DiwrgTda.js", &[("If-None-Match", tag)], b"").await.status, 304);
    let head = http.send("HEAD", "/config.json", &[], b"").await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("2")));

    for route in ["/console", "/settings/machine", "/machine"] {
        assert_eq!(http.send("GET", route, OPENING, b"").await.text(), "<html>front end</html>", "{route}");
    }
    for (target, headers) in [("/console", &[][..]), ("/assets/gone.js", OPENING)] {
        assert_eq!(http.send("GET", target, headers, b"").await.error().0, 404, "{target}");
    }
    assert_eq!(http.get("/server/info").await.result()["klippy_state"], "disconnected");
    for route in ["/server/none", "/printer/none/at/all", "/access/x", "/machine/x", "/api/none"] {
        assert_eq!(http.send("GET", route, OPENING, b"").await.error().0, 404, "{route}");
    }
    assert!(http.get("/docs").await.text().contains("<html"), "the interface is described beside any front end");
    assert_eq!(http.post("/").await.error().0, 405);
}

#[tokio::test]
async fn nothing_outside_of_the_folder_is_served() {
    let server = server().start().await;
    for target in [
        "/.env",
        "/config-link/bowsprit.conf",
        "/../config/bowsprit.conf",
        "/%2e%2e/config/bowsprit.conf",
        "/assets/..%2f..%2fconfig/bowsprit.conf",
        "//config/bowsprit.conf",
        "/assets/%00",
    ] {
        let reply = server.http().get(target).await;
        assert_eq!(reply.status, 404, "{target}: {}", reply.text());
    }
}

#[tokio::test]
async fn strangers_get_the_page_but_no_answers() {
    let server = server().authorization("").start().await;
    let http = server.http();
    assert_eq!(http.send("GET", "/console", OPENING, b"").await.status, 200);
    assert_eq!(http.get("/gone.js").await.error().0, 404);
    assert_eq!(http.get("/server/info").await.error().0, 401);
    assert_eq!(http.send("GET", "/server/none", OPENING, b"").await.error().0, 401);
}

#[tokio::test]
async fn below_a_prefix() {
    let server = TestServer::builder().without_printer().config("route_prefix: one").config(ROOT).prepare(front_end).start().await;
    let http = server.http();
    assert_eq!(http.get("/one/").await.text(), "<html>front end</html>");
    assert_eq!(http.get("/one").await.header("location"), Some("one/"));
    assert_eq!(http.send("GET", "/one/console", OPENING, b"").await.status, 200);
    assert_eq!(http.send("GET", "/console", OPENING, b"").await.error().0, 404);
}

#[tokio::test]
async fn without_a_readable_folder_the_built_in_page_is_shown_and_a_warning() {
    let server = TestServer::builder().without_printer().config(ROOT).start().await;
    assert!(server.http().get("/").await.text().contains("Bowsprit"));
    let warnings = server.info().await["warnings"].to_string();
    assert!(warnings.contains("[web] root:") && warnings.contains("bowsprit.conf:6"), "{warnings}");
    front_end(&server.path(""));
    assert_eq!(server.http().get("/").await.text(), "<html>front end</html>", "as soon as it is there");
}

#[tokio::test]
async fn without_any_page_there_is_a_word_of_welcome() {
    let server = TestServer::builder().without_printer().config("[web]\nbuiltin_page: no").start().await;
    let welcome = server.http().get("/").await;
    assert_eq!(welcome.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(welcome.text().contains("/docs"), "{}", welcome.text());
}

#[tokio::test]
async fn big_files_are_streamed() {
    const SIZE: u64 = 256 * 1024 * 1024;
    let big = |folder: &Path| {
        front_end(folder);
        std::fs::File::create(folder.join("ui/big.bin")).unwrap().set_len(SIZE).unwrap();
    };
    let server = TestServer::builder().without_printer().config(ROOT).prepare(big).start().await;
    let before = server.resident_kib();
    let http = server.http();
    let reply = http.get("/big.bin").await;
    assert_eq!((reply.status, reply.body.len() as u64), (200, SIZE));
    assert!(server.resident_kib() < before + 32 * 1024, "from {before} to {} KiB", server.resident_kib());
    let end = http.send("GET", "/big.bin", &[("Range", "bytes=-5")], b"").await;
    assert_eq!((end.status, end.body.len()), (206, 5));
}
