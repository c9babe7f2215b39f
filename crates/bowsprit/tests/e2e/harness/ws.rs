//! Websockets from the client's side: the primary one and the bridge.

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};

use super::rpc::{Channel, Rpc, STATISTICS};
use super::wait::within;

/// The channel.
pub(crate) struct Frames {
    stream: WebSocketStream<TcpStream>,
    close_code: Option<u16>,
}

/// A client on the primary websocket.
pub(crate) type Ws = Rpc<Frames>;

/// A client on a bridge websocket: raw documents of the firmware host.
pub(crate) struct Bridge(pub(crate) Frames);

/// The frame with which a client ends an orderly connection.
pub(crate) fn goodbye() -> Message {
    Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() }))
}

impl Frames {
    /// Opens a websocket; a refusal gives its HTTP status.
    pub(crate) async fn open(port: u16, path: &str, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let mut request = format!("ws://127.0.0.1:{port}{path}").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let stream = within("connect", TcpStream::connect(("127.0.0.1", port))).await.unwrap();
        match within("websocket", tokio_tungstenite::client_async(request, stream)).await {
            Ok((stream, _)) => Ok(Self { stream, close_code: None }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("websocket: {error}"),
        }
    }

    /// Sends a frame of any kind.
    pub(crate) async fn frame(&mut self, message: Message) -> Result<(), Error> {
        within("send", self.stream.send(message)).await
    }

    /// The next frame of any kind, but for the statistics that come each second.
    pub(crate) async fn next_frame(&mut self) -> Option<Message> {
        loop {
            match within("a frame", self.stream.next()).await {
                Some(Ok(Message::Text(text))) if text.contains(STATISTICS) => {}
                Some(Ok(message)) => return Some(message),
                _ => return None,
            }
        }
    }

    /// Waits for the end; gives the close code, if there was one.
    pub(crate) async fn closed(&mut self) -> Option<u16> {
        within("the end of the websocket", async { while self.receive().await.is_some() {} }).await;
        self.close_code
    }
}

impl Channel for Frames {
    async fn send(&mut self, text: &str) {
        self.stream.send(Message::text(text)).await.unwrap();
    }

    async fn receive(&mut self) -> Option<String> {
        loop {
            match self.stream.next().await? {
                Ok(Message::Text(text)) => return Some(text.as_str().to_owned()),
                Ok(Message::Close(frame)) => self.close_code = frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

impl Ws {
    /// Sends a document in a binary frame.
    pub(crate) async fn send_binary(&mut self, text: &str) {
        self.channel.frame(Message::Binary(Bytes::copy_from_slice(text.as_bytes()))).await.unwrap();
    }

    /// Waits for the end; gives the close code.
    pub(crate) async fn closed(&mut self) -> Option<u16> {
        self.channel.closed().await
    }
}

impl Bridge {
    /// Asks the firmware host and waits for the document that fits.
    pub(crate) async fn ask(&mut self, request: &Value, fits: impl Fn(&Value) -> bool) -> Value {
        self.0.send(&request.to_string()).await;
        self.wait_for(fits).await
    }

    /// Waits for a document of the firmware host.
    pub(crate) async fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        within("a document of the firmware host", async {
            loop {
                let text = self.0.receive().await.expect("the bridge ended");
                let document: Value = serde_json::from_str(&text).unwrap();
                if fits(&document) {
                    return document;
                }
            }
        })
        .await
    }
}
