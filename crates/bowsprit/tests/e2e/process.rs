//! The process: exit codes, messages, signals, restarts, commands.

use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::json;

use crate::harness::server::{BOWSPRIT, free_port};
use crate::harness::wait::until;
use crate::harness::{TestServer, within};

/// Runs a command of the program to its end.
async fn run(args: &[&str]) -> Output {
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    let running = tokio::task::spawn_blocking(move || Command::new(BOWSPRIT).args(args).output().unwrap());
    within("the command ends", running).await.unwrap()
}

/// Exit code, standard output and standard error.
fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A data folder with this configuration.
fn data_folder(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("config")).unwrap();
    std::fs::write(folder.path().join("config/bowsprit.conf"), config).unwrap();
    folder
}

#[tokio::test]
async fn a_port_in_use_is_told() {
    let server = TestServer::without_printer().await;
    let folder = data_folder(&format!("[server]\nhost: 127.0.0.1\nport: {}\n", server.port));
    let (code, _, errors) = outcome(&run(&["serve", "-n", "-d", folder.path().to_str().unwrap()]).await);
    assert_eq!(code, Some(1));
    let message = format!("cannot listen on 127.0.0.1 port {}", server.port);
    assert!(errors.contains(&message), "{errors}");
}

#[tokio::test]
async fn a_data_folder_has_one_server() {
    let server = TestServer::without_printer().await;
    let (code, _, errors) = outcome(&run(&["serve", "-n", "-d", server.path("").to_str().unwrap()]).await);
    assert_eq!(code, Some(1));
    assert!(errors.contains("another server uses the data folder"), "{errors}");
    assert_eq!(server.http().get("/server/info").await.status, 200);
}

#[tokio::test]
async fn check_config_reports_every_problem_with_its_line() {
    let folder = data_folder("[server]\nport: many\nprot: 1\n[authorization]\ntrusted_clients\n[file_manager]\nnonsense: 1\n");
    let (code, report, _) = outcome(&run(&["check-config", "-d", folder.path().to_str().unwrap()]).await);
    assert_eq!(code, Some(64), "{report}");
    for expected in ["bowsprit.conf:2:", "port", "prot: 1", "nonsense", "bowsprit.conf:5:", "4 problems"] {
        assert!(report.contains(expected), "{expected} is not in {report}");
    }
}

#[tokio::test]
async fn check_config_is_content_with_a_good_file() {
    let folder = data_folder("[server]\nport: 7125\n");
    let (code, report, errors) = outcome(&run(&["check-config", "-d", folder.path().to_str().unwrap()]).await);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(report.contains("no problems"), "{report}");
}

#[tokio::test]
async fn sigterm_ends_everything_in_order() {
    let mut server = TestServer::start().await;
    let (mut first, mut second) = (server.ws().await, server.ws().await);
    first.ok("printer.objects.subscribe", json!({"objects": {"toolhead": null}})).await;
    let (code, first, second) = tokio::join!(server.stop(), first.closed(), second.closed());
    assert_eq!((code, first, second), (Some(0), Some(1001), Some(1001)), "{}", server.stderr());
    assert!(std::fs::metadata(server.path("database/bowsprit.db")).is_ok());
    server.start_again().await;
    assert_eq!(server.info().await["warnings"], json!([]));
}

#[tokio::test]
async fn sigterm_does_not_wait_for_a_script() {
    let mut server = TestServer::builder().speed(1.0).start().await;
    let mut ws = server.ws().await;
    ws.begin("printer.gcode.script", json!({"script": "G4 P600000"})).await;
    ws.ok("printer.info", json!({})).await;
    let start = std::time::Instant::now();
    assert_eq!(tokio::join!(server.stop(), ws.closed()), (Some(0), Some(1001)));
    assert!(start.elapsed().as_secs_f64() < 6.0, "{:?}", start.elapsed());
}

/// Browsers open connections in advance; others wait in the middle of a request.
#[tokio::test]
async fn sigterm_does_not_wait_for_idle_clients() {
    let mut server = TestServer::builder().speed(1.0).start().await;
    let http = server.http();
    let script = tokio::spawn(async move { http.try_send("POST", "/printer/gcode/script?script=G4%20P600000", &[], b"").await });
    let mut connections = Vec::new();
    for start in [&b""[..], b"GET /ser", b"GET /server/info HTTP/1.1\r\nHost: x\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"]
    {
        let mut connection = http.connection().await;
        connection.send(start).await;
        connections.push(connection);
    }
    server.ws().await.ok("printer.info", json!({})).await;
    let start = std::time::Instant::now();
    assert_eq!(server.stop().await, Some(0));
    assert!(start.elapsed().as_secs_f64() < 4.0, "{:?}", start.elapsed());
    let answer = within("the end of the script", script).await.unwrap();
    assert!(answer.is_none_or(|answer| answer.status == 503));
}

#[tokio::test]
async fn sigint_ends_it_too() {
    let mut server = TestServer::without_printer().await;
    server.signal(Signal::INT);
    assert_eq!(server.ended().await, Some(0));
}

#[tokio::test]
async fn a_restart_reads_the_configuration_again() {
    let mut server = TestServer::start().await;
    let mut ws = server.ws().await;
    server.write_config(|text| text.replace("[server]", "[server]\nmax_upload_size: 7"));
    assert_eq!(ws.ok("server.restart", json!({})).await, "ok");
    assert_eq!(ws.closed().await, Some(1001));
    let back = || async { server.http().try_send("GET", "/server/config", &[], b"").await.map(|reply| reply.result()) };
    let seen = until("the server is back", back, Option::is_some).await.unwrap();
    assert_eq!(seen["config"]["server"]["max_upload_size"], 7);
    server.wait_for_state("ready").await;
    assert!(server.is_alive(), "the same process");
    assert_eq!(server.ws().await.ok("printer.info", json!({})).await["state"], "ready");
}

#[tokio::test]
async fn a_restart_into_a_used_port_keeps_the_old_one() {
    let mut server = TestServer::without_printer().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (old, new) = (server.port, taken.local_addr().unwrap().port());
    server.write_config(|text| text.replace(&format!("port: {old}"), &format!("port: {new}")));
    assert_eq!(server.ws().await.ok("server.restart", json!({})).await, "ok");
    let warned = || async {
        let reply = server.http().try_send("GET", "/server/info", &[], b"").await?;
        reply.result()["warnings"].to_string().contains("listening on 127.0.0.1").then_some(())
    };
    until("the server is back and says so", warned, Option::is_some).await.unwrap();
    assert!(server.is_alive(), "the same process");
}

#[tokio::test]
async fn restarts_leave_nothing_behind() {
    let server = TestServer::start().await;
    let count = |folder: &str| std::fs::read_dir(format!("/proc/{}/{folder}", server.pid())).unwrap().count();
    let restart = async || {
        let mut ws = server.ws().await;
        ws.ok("server.restart", json!({})).await;
        ws.closed().await;
        let back = || async { server.http().try_send("GET", "/server/info", &[], b"").await };
        until("it is back", back, Option::is_some).await;
        server.wait_for_state("ready").await;
    };
    restart().await;
    let (files, memory) = (count("fd"), server.resident_kib());
    for _ in 0..5 {
        restart().await;
    }
    assert!(count("fd") <= files + 3, "{files} files open before, {} after", count("fd"));
    assert!(server.resident_kib() < memory + 4096, "{memory} KiB before, {} after", server.resident_kib());
}

#[tokio::test]
async fn the_incumbents_flags_work_without_a_command() {
    let folder = data_folder(&format!("[server]\nhost: 127.0.0.1\nport: {}\n", free_port()));
    let mut child = Command::new(BOWSPRIT).arg("-n").arg("-d").arg(folder.path()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let socket = folder.path().join("comms/moonraker.sock");
    let connect = || async { tokio::net::UnixStream::connect(&socket).await.is_ok() };
    let is_up = until("the socket", connect, |up| *up).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_up);
}
