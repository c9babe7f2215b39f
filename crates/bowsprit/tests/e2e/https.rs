//! HTTPS: certificates of the owner and of our own making, changed while the server runs, and what is wrong with them.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures_util::{SinkExt, StreamExt};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::server::free_port;
use crate::harness::{TestServer, wait, within};

/// A secured connection that trusts nothing but this certificate.
async fn connect(port: u16, certificate: &Path) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = TcpStream::connect(("127.0.0.1", port)).await?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    within("a secured connection", connector.connect(ServerName::try_from("localhost").unwrap(), tcp)).await
}

async fn ask(mut stream: TlsStream<TcpStream>, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = Vec::new();
    within("an answer", stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

async fn info(stream: TlsStream<TcpStream>) -> String {
    ask(stream, "GET /server/info HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await
}

/// A certificate as an owner brings one.
fn write_certificate(certificate: &Path, key: &Path) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::create_dir_all(certificate.parent().unwrap()).unwrap();
    std::fs::write(certificate, made.cert.pem()).unwrap();
    std::fs::write(key, made.signing_key.serialize_pem()).unwrap();
}

#[tokio::test]
async fn everything_works_with_a_certificate_of_our_own_making() {
    let port = free_port();
    let options = format!("ssl_port: {port}\nself_made_certificate: yes\nredirect_to_https: yes");
    let mut server = TestServer::builder().without_printer().config(&options).start().await;
    let certificate = server.path("certs/self-made.cert");
    assert!(info(connect(port, &certificate).await.unwrap()).await.starts_with("HTTP/1.1 200 OK"));
    assert_eq!(server.http().get("/server/info").await.status, 200, "programs on this machine may stay with HTTP");
    assert_eq!(server.http().get("/server/config").await.result()["config"]["server"]["ssl_port"], port);

    let body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.gcode\"\r\n\r\nG28\r\n--b--\r\n";
    let head = format!(
        "POST /server/files/upload HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=b\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let uploaded = ask(connect(port, &certificate).await.unwrap(), &format!("{head}{body}")).await.to_lowercase();
    assert!(uploaded.contains(&format!("location: https://localhost:{port}/server/files/gcodes/a.gcode")), "{uploaded}");

    let before = std::fs::read(&certificate).unwrap();
    server.restart().await;
    assert_eq!(std::fs::read(&certificate).unwrap(), before, "it stays the same");
    assert!(info(connect(port, &certificate).await.unwrap()).await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn websockets_are_secured_too() {
    let port = free_port();
    let options = format!("ssl_port: {port}\nself_made_certificate: yes");
    let server = TestServer::builder().config(&options).start().await;
    let stream = connect(port, &server.path("certs/self-made.cert")).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(format!("wss://localhost:{port}/websocket"), stream).await.unwrap();
    let mut answer = async |request: &str| {
        socket.send(Message::text(request)).await.unwrap();
        loop {
            match within("an answer", socket.next()).await.unwrap().unwrap() {
                Message::Text(text) if text.contains("\"id\":") => return text.to_string(),
                _ => {}
            }
        }
    };
    // Small, large, and many: through pieces of records and several of them at once.
    let long = "x".repeat(300_000);
    let stored = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"server.database.post_item","params":{{"namespace":"t","key":"k","value":"{long}"}}}}"#
    );
    assert!(answer(&stored).await.contains(&long));
    for id in 2..100 {
        let reply = answer(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"server.info"}}"#)).await;
        assert!(reply.contains("\"klippy_connected\":true") && reply.contains(&format!("\"id\":{id}")), "{reply}");
    }
    let all =
        r#"{"jsonrpc":"2.0","id":100,"method":"printer.objects.subscribe","params":{"objects":{"toolhead":null,"print_stats":null}}}"#;
    assert!(answer(all).await.contains("toolhead"));
}

#[tokio::test]
async fn changed_files_are_used_without_a_restart() {
    let port = free_port();
    let prepare = |folder: &Path| write_certificate(&folder.join("certs/moonraker.cert"), &folder.join("certs/moonraker.key"));
    let server = TestServer::builder().without_printer().config(&format!("ssl_port: {port}")).prepare(prepare).start().await;
    let (certificate, key) = (server.path("certs/moonraker.cert"), server.path("certs/moonraker.key"));
    let open = connect(port, &certificate).await.unwrap();
    std::fs::write(&certificate, "half a cert").unwrap();
    wait::until("the warning", async || server.stderr(), |log| log.contains("the former one stays in use")).await;
    write_certificate(&certificate, &key);
    wait::until("the new certificate", async || connect(port, &certificate).await.is_ok(), |works| *works).await;
    assert!(info(open).await.starts_with("HTTP/1.1 200 OK"), "open connections go on");
}

#[tokio::test]
async fn faults_are_named_and_http_goes_on() {
    let prepare = |folder: &Path| {
        write_certificate(&folder.join("certs/a.pem"), &folder.join("certs/a.key"));
        write_certificate(&folder.join("certs/b.pem"), &folder.join("certs/b.key"));
    };
    let port = free_port();
    let options = format!("ssl_port: {port}\nssl_certificate_path: {{data_path}}/certs/a.pem\nssl_key_path: {{data_path}}/certs/b.key");
    let mut server = TestServer::builder().without_printer().config(&options).prepare(prepare).start().await;
    let warnings = server.info().await["warnings"].to_string();
    assert!(warnings.contains("There is no HTTPS") && warnings.contains("certs/b.key cannot be used"), "{warnings}");
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    server.write_config(|text| text.replace("b.key", "none.key"));
    server.restart().await;
    let warnings = server.info().await["warnings"].to_string();
    assert!(warnings.contains("certs/none.key: No such file"), "{warnings}");
    server.write_config(|text| text.replace("b.key", "a.key").replace(&format!("ssl_port: {port}"), &format!("ssl_port: {}", server.port)));
    server.restart().await;
    let warnings = server.info().await["warnings"].to_string();
    assert!(warnings.contains("is the port of HTTP"), "{warnings}");
}

#[tokio::test]
async fn half_a_pair_is_a_warning_beside_the_certificate_of_our_own_making() {
    let port = free_port();
    let prepare = |folder: &Path| {
        write_certificate(&folder.join("certs/core.cert"), &folder.join("certs/moonraker.key"));
    };
    let options = format!("ssl_port: {port}\nself_made_certificate: yes");
    let server = TestServer::builder().without_printer().config(&options).prepare(prepare).start().await;
    let warnings = server.info().await["warnings"].to_string();
    assert!(
        warnings.contains("core.cert is not used: its key") && warnings.contains("moonraker.key is not used: its certificate"),
        "{warnings}"
    );
    assert!(info(connect(port, &server.path("certs/self-made.cert")).await.unwrap()).await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn peers_that_speak_something_else_hold_nobody_up() {
    let port = free_port();
    let options = format!("ssl_port: {port}\nself_made_certificate: yes");
    let server = TestServer::builder().without_printer().config(&options).start().await;
    let (begin, mut silent) = (Instant::now(), Vec::new());
    // More than may be open or on their way.
    for _ in 0..700 {
        silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    let mut plain = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    plain.write_all(b"GET /server/info HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = within("the end", plain.read_to_end(&mut rest)).await;
    assert!(!rest.starts_with(b"HTTP"), "no answer without TLS");
    assert!(info(connect(port, &server.path("certs/self-made.cert")).await.unwrap()).await.starts_with("HTTP/1.1 200 OK"));
    assert!(begin.elapsed() < tls::HANDSHAKE_TIMEOUT, "others were served only when the silent ones had had their time");
    drop(silent);
}

#[tokio::test]
async fn as_many_connect_as_websockets_are_allowed() {
    let port = free_port();
    let options = format!("ssl_port: {port}\nself_made_certificate: yes\nmax_websocket_connections: 600");
    // It also allows itself as many open files.
    let few_files = |_: &Path| ["prlimit", "--nofile=256:8192"].map(str::to_owned).to_vec();
    let server = TestServer::builder().without_printer().config(&options).under(few_files).start().await;
    let certificate = server.path("certs/self-made.cert");
    let mut open = Vec::new();
    for _ in 0..60 {
        open.extend(futures_util::future::join_all((0..10).map(|_| connect(port, &certificate))).await);
    }
    assert!(open.iter().all(Result::is_ok));
    assert!(info(open.pop().unwrap().unwrap()).await.starts_with("HTTP/1.1 200 OK"));
    assert!(info(connect(port, &certificate).await.unwrap()).await.starts_with("HTTP/1.1 200 OK"));
}
