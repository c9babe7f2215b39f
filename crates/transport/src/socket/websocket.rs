//! The websocket codec and its upgrade.

use std::io;
use std::sync::Arc;

use access::Admission;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use protocol::{ApiError, ErrorKind, Frame};
use rpc::{CloseReason, ConnectionKind};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::looped::{Arrival, MessageStream, run};
use crate::gateway::Gateway;
use crate::http::{Body, Request, Response};
use crate::limits::{MAX_STRANGER_MESSAGE, MAX_STRANGERS, MAX_WEBSOCKET_MESSAGE, READ_BUFFER};

/// Bytes gathered before a write; a burst of small messages leaves in one system call.
const WRITE_BUFFER: usize = 16 * 1024;

/// A websocket over TCP.
pub(crate) type Socket = WebSocketStream<TcpStream>;

/// Answers the opening request of a primary websocket and runs the connection behind it.
pub(crate) fn upgrade(gateway: &Arc<Gateway>, admission: &Admission, mut request: Request) -> Result<Response, ApiError> {
    refuse_origin(admission)?;
    let (response, opened) = accept(&mut request)?;
    let websockets = gateway.connections.count_where(|connection| connection.kind == ConnectionKind::Websocket);
    let strangers = gateway.connections.count_where(|connection| !connection.is_authorised());
    let too_many = websockets + gateway.bridge.open_count() >= gateway.settings.max_websockets;
    if too_many || (!admission.identity.is_authorised() && strangers >= MAX_STRANGERS) {
        return Err(ApiError::unavailable("Too many websockets are open"));
    }
    let registered = gateway.connections.register(ConnectionKind::Websocket, admission.identity.clone(), Some(admission.address));
    let authorised = admission.identity.is_authorised();
    let dispatcher = gateway.dispatcher.clone();
    gateway.dispatcher.tasks.spawn(async move {
        let Some(socket) = opened.socket(if authorised { MAX_WEBSOCKET_MESSAGE } else { MAX_STRANGER_MESSAGE }).await else { return };
        run(socket, &registered.connection, &dispatcher).await;
    });
    Ok(response)
}

/// A page of another origin must be allowed before it may open a websocket: the browser itself would let it.
///
/// # Errors
/// 403.
pub(crate) fn refuse_origin(admission: &Admission) -> Result<(), ApiError> {
    if admission.cross_site && !admission.cors_allowed {
        return Err(ApiError::new(ErrorKind::Forbidden, "Cross origin websockets are not allowed for this origin; see cors_domains"));
    }
    Ok(())
}

/// A websocket that opens as soon as the answer is sent.
pub(crate) struct Opening(OnUpgrade);

impl Opening {
    /// The open socket; `None` when the peer left meanwhile.
    pub(crate) async fn socket(self, max_message: usize) -> Option<Socket> {
        let upgraded = self.0.await.ok()?;
        let parts = upgraded.downcast::<TokioIo<TcpStream>>().ok()?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_BUFFER)
            .max_message_size(Some(max_message))
            .max_frame_size(Some(max_message));
        let stream = parts.io.into_inner();
        Some(WebSocketStream::from_partially_read(stream, parts.read_buf.to_vec(), Role::Server, Some(config)).await)
    }
}

/// The 101 answer to a correct opening request.
///
/// # Errors
/// 400 when it is none.
pub(crate) fn accept(request: &mut Request) -> Result<(Response, Opening), ApiError> {
    let headers = request.headers();
    let wants = has_token(headers, header::CONNECTION, "upgrade") && has_token(headers, header::UPGRADE, "websocket");
    let version = headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes);
    let (true, true, Some(key)) = (wants, version, key) else {
        return Err(ApiError::bad_request("Expected a websocket opening request (Upgrade: websocket, version 13)"));
    };
    let accept_key = derive_accept_key(key);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(value) = HeaderValue::from_str(&accept_key) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, value);
    }
    Ok((response, Opening(hyper::upgrade::on(request))))
}

fn has_token(headers: &HeaderMap, name: header::HeaderName, token: &str) -> bool {
    let values = headers.get_all(name);
    values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(token))
}

impl MessageStream for Socket {
    const EXPECTS_PONGS: bool = true;

    async fn next(&mut self) -> Arrival {
        match StreamExt::next(self).await {
            Some(Ok(Message::Text(text))) => Arrival::Message(text.into()),
            Some(Ok(Message::Binary(bytes))) => Arrival::Message(bytes),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Arrival::Alive,
            Some(Err(error)) => {
                goodbye(self, &error).await;
                Arrival::End
            }
            Some(Ok(Message::Close(_))) | None => Arrival::End,
        }
    }

    async fn send(&mut self, frames: &[Frame]) -> io::Result<()> {
        for frame in frames {
            self.feed(text(frame.clone())?).await.map_err(io::Error::other)?;
        }
        SinkExt::flush(self).await.map_err(io::Error::other)
    }

    async fn ping(&mut self) -> io::Result<()> {
        SinkExt::send(self, Message::Ping(Bytes::new())).await.map_err(io::Error::other)
    }

    async fn close(&mut self, reason: CloseReason) {
        let code = match reason {
            CloseReason::Shutdown => CloseCode::Away,
            CloseReason::TooSlow | CloseReason::Unauthorised => CloseCode::Policy,
        };
        close(self, code, reason.text()).await;
    }
}

/// Sends a close frame and waits for the peer's.
pub(crate) async fn close(socket: &mut Socket, code: CloseCode, reason: &'static str) {
    if WebSocketStream::close(socket, Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })).await.is_ok() {
        while let Some(Ok(_)) = StreamExt::next(socket).await {}
    }
}

/// Tells a peer that broke the protocol why it is cut off.
async fn goodbye(socket: &mut Socket, error: &Error) {
    let (code, reason) = match error {
        Error::Capacity(_) => (CloseCode::Size, "message too large"),
        Error::Utf8(_) => (CloseCode::Invalid, "invalid UTF-8"),
        Error::Protocol(_) => (CloseCode::Protocol, "protocol error"),
        _ => return,
    };
    let _ = tokio::time::timeout(crate::limits::CLOSE_TIMEOUT, close(socket, code, reason)).await;
}

fn text(frame: Frame) -> io::Result<Message> {
    Utf8Bytes::try_from(frame).map(Message::Text).map_err(io::Error::other)
}
