//! Pictures of cameras, passed on: one connection to the camera for all viewers, none without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::harness::web::{Page, Web};
use crate::harness::{TestServer, wait, within};

/// Bytes of a picture: enough that a viewer who does not read holds back what is sent to it.
const PICTURE: usize = 200 * 1024;

/// Pause between pictures.
const PERIOD: Duration = Duration::from_millis(10);

/// A camera that streams numbered pictures, and counts.
struct Camera {
    port: u16,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    is_broken: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Camera {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (connections, open, is_broken) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (all, now, broken) = (connections.clone(), open.clone(), is_broken.clone());
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                all.fetch_add(1, Ordering::Relaxed);
                now.fetch_add(1, Ordering::Relaxed);
                let (now, broken) = (now.clone(), broken.clone());
                tokio::spawn(async move {
                    let _ = stream(socket, &broken).await;
                    now.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Self { port, connections, open, is_broken, task }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?action=stream", self.port)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn stream(mut socket: TcpStream, is_broken: &AtomicBool) -> std::io::Result<()> {
    let mut request = [0; 4096];
    if socket.read(&mut request).await? == 0 {
        return Ok(());
    }
    socket.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=cam\r\n\r\n--cam\r\n").await?;
    for number in 0_u64.. {
        if is_broken.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut picture = number.to_be_bytes().to_vec();
        picture.resize(PICTURE, 0);
        socket.write_all(format!("Content-Type: image/jpeg\r\nContent-Length: {PICTURE}\r\n\r\n").as_bytes()).await?;
        socket.write_all(&picture).await?;
        socket.write_all(b"\r\n--cam\r\n").await?;
        tokio::time::sleep(PERIOD).await;
    }
    Ok(())
}

/// Somebody who watches.
struct Viewer(BufReader<TcpStream>);

impl Viewer {
    /// Opens a stream, whose head must be as it should.
    async fn open(server: &TestServer, target: &str) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
        stream.write_all(format!("GET {target} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut viewer = Self(BufReader::new(stream));
        let head = viewer.head().await;
        assert!(head.starts_with("http/1.0 200") || head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("content-type: multipart/x-mixed-replace; boundary=picture\r\n"), "{head}");
        viewer
    }

    async fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(within("a line", self.0.read_line(&mut head)).await.unwrap() > 0, "the end after {head:?}");
        }
        head.to_lowercase()
    }

    /// The number of the next picture.
    async fn picture(&mut self) -> u64 {
        let head = self.head().await;
        assert!(head.contains(&format!("content-type: image/jpeg\r\ncontent-length: {PICTURE}\r\n")), "{head}");
        let mut picture = vec![0; PICTURE];
        within("a picture", self.0.read_exact(&mut picture)).await.unwrap();
        let mut end = [0; 2];
        within("its end", self.0.read_exact(&mut end)).await.unwrap();
        u64::from_be_bytes(picture[..8].try_into().unwrap())
    }
}

async fn server_with(camera: &Camera) -> TestServer {
    let server = TestServer::builder()
        .without_printer()
        .config(&format!("[web]\nwebcam_streamers: http://127.0.0.1:{}\nwebcam_base: http://127.0.0.1:1", camera.port))
        .start()
        .await;
    for (name, url) in [("complete", camera.url()), ("path", "/webcam/?action=stream".to_owned()), ("off", "/other?x".to_owned())] {
        let made = json!({"name": name, "stream_url": url});
        assert_eq!(server.http().post_json("/server/webcams/item", &made).await.status, 200);
    }
    server
}

#[tokio::test]
async fn viewers_share_one_connection_and_the_last_one_closes_it() {
    let camera = Camera::start().await;
    let server = server_with(&camera).await;
    let targets = [
        "/server/webcams/stream?name=complete",
        "/server/webcams/stream?name=complete",
        "/server/webcams/stream?name=complete",
        "/server/webcams/stream?name=path",
        "/webcam/?action=stream",
    ];
    let mut viewers = Vec::new();
    for target in targets {
        viewers.push(Viewer::open(&server, target).await);
    }
    for viewer in &mut viewers {
        let mut last = viewer.picture().await;
        for _ in 0..20 {
            let next = viewer.picture().await;
            assert!(next > last, "{next} after {last}");
            last = next;
        }
    }
    // Address and path are written in two ways, but it is one camera.
    assert_eq!((camera.connections(), camera.open()), (1, 1));
    drop(viewers);
    wait::until("the camera is left", async || camera.open(), |open| *open == 0).await;
    Viewer::open(&server, targets[0]).await.picture().await;
    assert_eq!(camera.connections(), 2, "asked again when somebody looks again");
}

#[tokio::test]
async fn a_slow_viewer_holds_nobody_up_and_sees_the_newest_picture() {
    let camera = Camera::start().await;
    let server = server_with(&camera).await;
    let mut slow = Viewer::open(&server, "/webcam/?action=stream").await;
    let first = slow.picture().await;
    let mut quick = Viewer::open(&server, "/webcam/?action=stream").await;
    let mut newest = 0;
    for _ in 0..200 {
        newest = quick.picture().await;
    }
    // What is on its way already is all that the slow one gets of the past.
    let mut seen = vec![first];
    while *seen.last().unwrap() < newest {
        seen.push(slow.picture().await);
    }
    assert!((seen.len() as u64) < newest - first, "it got all of them: {} from {first} to {newest}", seen.len());
}

#[tokio::test]
async fn a_camera_that_breaks_off_is_asked_again() {
    let camera = Camera::start().await;
    let server = server_with(&camera).await;
    let mut viewer = Viewer::open(&server, "/webcam/?action=stream").await;
    viewer.picture().await;
    camera.is_broken.store(true, Ordering::Relaxed);
    wait::until("the end of the stream", async || camera.open(), |open| *open == 0).await;
    camera.is_broken.store(false, Ordering::Relaxed);
    let before = camera.connections();
    wait::until("another connection", async || camera.connections(), |connections| *connections > before).await;
    for _ in 0..20 {
        viewer.picture().await;
    }
}

#[tokio::test]
async fn single_pictures_are_fetched_once_for_all() {
    let (camera, web) = (Camera::start().await, Web::start().await);
    let server = server_with(&camera).await;
    let http = server.http();
    web.set("/picture.jpg", Page::Typed { content_type: "image/jpeg".into(), body: b"picture".to_vec() });
    web.set("/secret.html", Page::Typed { content_type: "text/html".into(), body: b"secret".to_vec() });
    for (name, path) in [("one", "/picture.jpg"), ("two", "/secret.html"), ("three", "/none")] {
        let made = json!({"name": name, "stream_url": web.url(path), "snapshot_url": web.url(path)});
        assert_eq!(http.post_json("/server/webcams/item", &made).await.status, 200);
    }
    let replies = futures_util::future::join_all((0..5).map(|_| http.get("/server/webcams/snapshot?name=one"))).await;
    for reply in replies {
        assert_eq!((reply.status, reply.text().as_str(), reply.header("content-type")), (200, "picture", Some("image/jpeg")));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    assert!(web.requests("/picture.jpg").len() < 5, "each asked by itself");
    for (name, reason) in [("two", "no picture"), ("three", "status 404"), ("off", "no connection")] {
        let (status, message) = http.get(&format!("/server/webcams/snapshot?name={name}")).await.error();
        assert!(status == 503 && message.contains(reason), "{name}: {message}");
        assert!(!message.contains("secret"));
    }
    let (status, message) = http.get("/server/webcams/stream?name=two").await.error();
    assert!(status == 503 && message.contains("no stream of pictures"), "{message}");
    assert_eq!(http.get("/server/webcams/snapshot?name=nobody").await.error().0, 404);
    let of_stream = http.get("/server/webcams/snapshot?name=complete").await;
    assert_eq!((of_stream.status, of_stream.body.len()), (200, PICTURE), "a camera with a stream only");
}

#[tokio::test]
async fn only_those_who_may_look_and_never_ourselves() {
    let camera = Camera::start().await;
    let strangers = TestServer::builder().without_printer().authorization("").start().await;
    for target in ["/server/webcams/stream?name=a", "/server/webcams/snapshot?name=a", "/webcam/?action=stream"] {
        assert_eq!(strangers.http().get(target).await.error().0, 401, "{target}");
    }
    let server = server_with(&camera).await;
    let own = format!("http://127.0.0.1:{}/webcam/?action=stream", server.port);
    server.http().post_json("/server/webcams/item", &json!({"name": "own", "stream_url": own})).await.result();
    let (status, message) = server.http().get("/server/webcams/stream?name=own").await.error();
    assert!(status == 503 && message.contains("leads back to this server"), "{message}");
    assert_eq!(camera.connections(), 0);
}

#[tokio::test]
async fn a_stop_ends_streams_at_once() {
    let camera = Camera::start().await;
    let mut server = server_with(&camera).await;
    let mut viewer = Viewer::open(&server, "/webcam/?action=stream").await;
    viewer.picture().await;
    assert_eq!(server.stop().await, Some(0), "{}", server.stderr());
    wait::until("the camera is left", async || camera.open(), |open| *open == 0).await;
}
