//! A tiny client: writes raw frames, reads messages.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// Longest wait for anything in a test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    stream: UnixStream,
    bytes: Vec<u8>,
    next_id: u64,
    /// Messages that were read while waiting for an answer.
    pub(crate) pushed: Vec<Value>,
}

impl Client {
    pub(crate) async fn connect(path: &Path) -> Self {
        Self::try_connect(path).await.unwrap()
    }

    pub(crate) async fn try_connect(path: &Path) -> std::io::Result<Self> {
        Ok(Self { stream: UnixStream::connect(path).await?, bytes: Vec::new(), next_id: 0, pushed: Vec::new() })
    }

    /// Connects as soon as somebody listens.
    pub(crate) async fn reconnect(path: &Path) -> Self {
        let attempt = async {
            loop {
                match Self::try_connect(path).await {
                    Ok(client) => return client,
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        timeout(DEADLINE, attempt).await.unwrap()
    }

    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends a request without waiting; returns its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let mut frame = json!({ "id": self.next_id, "method": method, "params": params }).to_string().into_bytes();
        frame.push(3);
        self.send_raw(&frame).await;
        self.next_id
    }

    /// The next frame without its ETX; `None` at the end of the stream.
    pub(crate) async fn frame(&mut self) -> Option<Vec<u8>> {
        let read = async {
            loop {
                if let Some(end) = self.bytes.iter().position(|b| *b == 3) {
                    let mut frame: Vec<u8> = self.bytes.drain(..=end).collect();
                    frame.pop();
                    return Some(frame);
                }
                match self.stream.read_buf(&mut self.bytes).await {
                    Ok(0) | Err(_) => return None,
                    Ok(_) => {}
                }
            }
        };
        timeout(DEADLINE, read).await.expect("nothing comes")
    }

    /// Bytes of an unfinished frame at the end of the stream.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) async fn message(&mut self) -> Option<Value> {
        self.frame().await.map(|frame| serde_json::from_slice(&frame).unwrap())
    }

    /// The answer to a request; other messages are kept.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.wait_for(|message| message["id"] == json!(id)).await
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.send(method, params).await;
        let mut answer = self.answer(id).await;
        match answer["error"]["message"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["result"].take()),
        }
    }

    pub(crate) async fn gcode(&mut self, script: &str) -> Result<Value, String> {
        self.call("gcode/script", json!({ "script": script })).await
    }

    /// Reads until a message is as wanted; earlier ones are kept.
    pub(crate) async fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.pushed.iter().position(&wanted) {
            return self.pushed.remove(at);
        }
        loop {
            let message = self.message().await.expect("closed before the message");
            if wanted(&message) {
                return message;
            }
            self.pushed.push(message);
        }
    }

    /// Reads to the end of the stream.
    pub(crate) async fn drain(&mut self) -> Vec<Value> {
        let mut messages = std::mem::take(&mut self.pushed);
        while let Some(message) = self.message().await {
            messages.push(message);
        }
        messages
    }

    /// Nothing comes for a while.
    pub(crate) async fn is_silent(&mut self, ms: u64) -> bool {
        let before = self.bytes.len();
        let mut byte = [0; 1024];
        match timeout(Duration::from_millis(ms), self.stream.read(&mut byte)).await {
            Ok(Ok(size)) => {
                self.bytes.extend_from_slice(&byte[..size]);
                false
            }
            Ok(Err(_)) => false,
            Err(_) => before == self.bytes.len(),
        }
    }
}
