//! A small web server that tests run beside the program: feeds, pictures, and pages that do harm.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What is answered to a request for a path.
#[derive(Debug, Clone)]
pub(crate) enum Page {
    /// 200 with a body, or 304 when the caller has this entity tag.
    Body { etag: String, body: Vec<u8> },
    /// 200 with a body of this type.
    Typed { content_type: String, body: Vec<u8> },
    /// Another status and a header line, without a body.
    Status { status: u16, header: String },
    /// A body of this many zero bytes, announced or not.
    Long { length: u64, is_announced: bool },
    /// Nothing at all, for ever.
    Silence,
}

impl Page {
    pub(crate) fn body(body: impl Into<Vec<u8>>) -> Self {
        Self::Body { etag: String::new(), body: body.into() }
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self::Status { status: 302, header: format!("Location: {to}") }
    }
}

#[derive(Debug, Default)]
struct State {
    pages: Vec<(String, Page)>,
    /// Heads of the requests so far.
    requests: Vec<String>,
}

/// The server; it ends with this value.
#[derive(Debug)]
pub(crate) struct Web {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Web {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<Mutex<State>>::default();
        let shared = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(answer(socket, shared.clone()));
            }
        });
        Self { port, state, task }
    }

    /// The address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Sets what a path answers from now on; others answer 404.
    pub(crate) fn set(&self, path: &str, page: Page) {
        let mut state = self.state.lock();
        state.pages.retain(|(known, _)| known != path);
        state.pages.push((path.to_owned(), page));
    }

    /// Heads of the requests for a path so far, in lower case.
    pub(crate) fn requests(&self, path: &str) -> Vec<String> {
        let start = format!("get {} ", path.to_lowercase());
        self.state.lock().requests.iter().filter(|head| head.starts_with(&start)).cloned().collect()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(socket: TcpStream, state: Arc<Mutex<State>>) {
    let mut socket = BufReader::new(socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        match socket.read_line(&mut head).await {
            Ok(length) if length > 0 => {}
            _ => return,
        }
    }
    let path = head.split(' ').nth(1).unwrap_or("").to_owned();
    let page = {
        let mut state = state.lock();
        state.requests.push(head.to_lowercase());
        state.pages.iter().find(|(known, _)| *known == path).map(|(_, page)| page.clone())
    };
    // A caller that has enough goes away while we write.
    let _ = write(socket.get_mut(), page, &head.to_lowercase()).await;
}

async fn write(socket: &mut TcpStream, page: Option<Page>, head: &str) -> std::io::Result<()> {
    let close = "Connection: close\r\n\r\n";
    match page {
        None => socket.write_all(format!("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n{close}").as_bytes()).await,
        Some(Page::Body { etag, .. }) if !etag.is_empty() && head.contains(&format!("if-none-match: {}", etag.to_lowercase())) => {
            socket.write_all(format!("HTTP/1.1 304 Not Modified\r\n{close}").as_bytes()).await
        }
        Some(Page::Body { etag, body }) => {
            let tag = if etag.is_empty() { String::new() } else { format!("ETag: {etag}\r\n") };
            socket.write_all(format!("HTTP/1.1 200 OK\r\n{tag}Content-Length: {}\r\n{close}", body.len()).as_bytes()).await?;
            socket.write_all(&body).await
        }
        Some(Page::Typed { content_type, body }) => {
            socket
                .write_all(
                    format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{close}", body.len()).as_bytes(),
                )
                .await?;
            socket.write_all(&body).await
        }
        Some(Page::Status { status, header }) => {
            socket.write_all(format!("HTTP/1.1 {status} X\r\n{header}\r\nContent-Length: 0\r\n{close}").as_bytes()).await
        }
        Some(Page::Long { length, is_announced }) => {
            let announced = if is_announced { format!("Content-Length: {length}\r\n") } else { String::new() };
            socket.write_all(format!("HTTP/1.1 200 OK\r\n{announced}{close}").as_bytes()).await?;
            for _ in 0..length / 65536 {
                socket.write_all(&[0; 65536]).await?;
            }
            Ok(())
        }
        Some(Page::Silence) => std::future::pending().await,
    }
}
