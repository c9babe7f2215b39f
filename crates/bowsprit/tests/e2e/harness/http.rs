//! A small HTTP/1 client over plain TCP, so that tests decide about every byte.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::form::Form;
use super::wait::within;

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// A header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in answer {} {}", self.status, self.text()))
    }

    /// The result of an operation that must have succeeded.
    pub(crate) fn result(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()["result"].take()
    }

    /// Status and message of an operation that must have failed; checks the shape of the error body.
    pub(crate) fn error(&self) -> (u16, String) {
        let body = self.json();
        assert_eq!(body["error"]["code"], self.status, "{body}");
        (self.status, body["error"]["message"].as_str().unwrap_or_else(|| panic!("no message in {body}")).to_owned())
    }
}

/// One connection. Requests may be sent ahead of their answers.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) async fn open(port: u16) -> Self {
        Self(BufReader::new(within("connect", TcpStream::connect(("127.0.0.1", port))).await.unwrap()))
    }

    /// Sends bytes as they are; false when the server has closed the connection.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> bool {
        within("send", self.0.get_mut().write_all(bytes)).await.is_ok()
    }

    /// Reads an answer (without body after HEAD); `None` when the connection ended instead.
    pub(crate) async fn reply(&mut self, is_head: bool) -> Option<Reply> {
        within("an HTTP answer", self.read_reply(is_head)).await
    }

    /// Reads an interim answer (1xx), which has neither headers nor a body.
    pub(crate) async fn interim(&mut self) -> Option<u16> {
        let status = within("an interim answer", self.line()).await?.split(' ').nth(1)?.parse().ok()?;
        self.line().await?;
        Some(status)
    }

    async fn read_reply(&mut self, is_head: bool) -> Option<Reply> {
        let status = self.line().await?.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        if is_head || matches!(status, 101 | 204 | 304) {
            return Some(reply);
        }
        if reply.header("transfer-encoding") == Some("chunked") {
            reply.body = self.chunks().await?;
        } else if let Some(length) = reply.header("content-length") {
            reply.body = vec![0; length.parse().ok()?];
            self.0.read_exact(&mut reply.body).await.ok()?;
        } else {
            self.0.read_to_end(&mut reply.body).await.ok()?;
        }
        Some(reply)
    }

    async fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(self.line().await?.trim(), 16).ok()?;
            let start = body.len();
            body.resize(start + length, 0);
            self.0.read_exact(&mut body[start..]).await.ok()?;
            self.line().await?;
            if length == 0 {
                return Some(body);
            }
        }
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line).await {
            Ok(length) if length > 0 => Some(line.trim_end().to_owned()),
            _ => None,
        }
    }
}

/// A client that opens a connection per request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Http {
    pub(crate) port: u16,
}

impl Http {
    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.send("GET", target, &[], b"").await
    }

    pub(crate) async fn post(&self, target: &str) -> Reply {
        self.send("POST", target, &[], b"").await
    }

    pub(crate) async fn post_json(&self, target: &str, body: &Value) -> Reply {
        self.send("POST", target, &[("Content-Type", "application/json")], body.to_string().as_bytes()).await
    }

    pub(crate) async fn delete(&self, target: &str) -> Reply {
        self.send("DELETE", target, &[], b"").await
    }

    pub(crate) async fn upload(&self, form: Form) -> Reply {
        self.send("POST", "/server/files/upload", &[("Content-Type", &Form::content_type())], &form.body()).await
    }

    /// A call of JSON-RPC over HTTP; the whole answer document.
    pub(crate) async fn rpc(&self, document: &Value) -> Value {
        self.post_json("/server/jsonrpc", document).await.json()
    }

    /// Any request.
    pub(crate) async fn send(&self, verb: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.try_send(verb, target, headers, body).await.unwrap_or_else(|| panic!("{verb} {target}: no answer"))
    }

    /// Any request, to a server that may not answer.
    pub(crate) async fn try_send(&self, verb: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Reply> {
        let mut head = format!("{verb} {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", self.port);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if verb != "GET" && verb != "HEAD" {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        let mut request = format!("{head}\r\n").into_bytes();
        request.extend_from_slice(body);
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.ok()?;
        let mut connection = Connection(BufReader::new(stream));
        connection.send(&request).await;
        connection.reply(verb == "HEAD").await
    }

    /// Sends bytes as they are on a new connection and reads one answer.
    pub(crate) async fn raw(&self, request: &[u8]) -> Option<Reply> {
        let mut connection = self.connection().await;
        connection.send(request).await;
        connection.reply(request.starts_with(b"HEAD")).await
    }

    /// A connection for several requests.
    pub(crate) async fn connection(&self) -> Connection {
        Connection::open(self.port).await
    }
}
