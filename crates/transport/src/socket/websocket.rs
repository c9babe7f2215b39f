//! From an opening request to a websocket.

use std::sync::Arc;

use access::Admission;
use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use protocol::{ApiError, ErrorKind};
use rpc::{Connection, ConnectionKind};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use super::frames::Primary;
use super::looped::run;
use crate::gateway::Gateway;
use crate::http::{Body, Request, Response};
use crate::limits::{MAX_STRANGER_MESSAGE, MAX_STRANGERS, MAX_STRANGERS_PER_ADDRESS, MAX_WEBSOCKET_MESSAGE, READ_BUFFER};
use crate::wire::Wire;

/// Bytes gathered before a write; a burst of small messages leaves in one system call.
const WRITE_BUFFER: usize = 16 * 1024;

/// A bridge websocket; the primary one has a codec of its own ([`Primary`]).
pub(crate) type Socket = WebSocketStream<Wire>;

/// Answers the opening request of a primary websocket and runs the connection behind it.
pub(crate) fn upgrade(gateway: &Arc<Gateway>, admission: &Admission, mut request: Request) -> Result<Response, ApiError> {
    refuse_origin(admission)?;
    let (response, opening) = accept(&mut request)?;
    if !has_room(gateway, admission) {
        return Err(ApiError::unavailable("Too many websockets are open"));
    }
    let registered = gateway.connections.register(ConnectionKind::Websocket, admission.identity.clone(), Some(admission.peer()));
    gateway.accounts.confirm(&registered.connection);
    let dispatcher = gateway.dispatcher.clone();
    gateway.dispatcher.tasks.spawn(async move {
        let Some((stream, read)) = opening.opened().await else { return };
        run(Primary::new(stream, read, config(MAX_STRANGER_MESSAGE)), &registered.connection, &dispatcher).await;
    });
    Ok(response)
}

fn has_room(gateway: &Gateway, admission: &Admission) -> bool {
    let websockets = gateway.connections.count_where(|connection| connection.kind == ConnectionKind::Websocket);
    if websockets + gateway.bridge.open_count() >= gateway.settings.max_websockets {
        return false;
    }
    if admission.identity.is_authorised() {
        return true;
    }
    let strangers = gateway.connections.count_where(|connection| !connection.is_authorised());
    let here = |connection: &Connection| connection.peer.is_some_and(|peer| peer.address == admission.address);
    let of_address = gateway.connections.count_where(|connection| !connection.is_authorised() && here(connection));
    strangers < MAX_STRANGERS && of_address < MAX_STRANGERS_PER_ADDRESS
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
    /// The open socket of a bridge; `None` when the peer left meanwhile.
    pub(crate) async fn socket(self) -> Option<Socket> {
        let (stream, read) = self.opened().await?;
        Some(WebSocketStream::from_partially_read(stream, read, Role::Server, Some(config(MAX_WEBSOCKET_MESSAGE))).await)
    }

    /// The stream below, and what has been read from it already.
    async fn opened(self) -> Option<(Wire, Vec<u8>)> {
        let parts = self.0.await.ok()?.downcast::<TokioIo<Wire>>().ok()?;
        Some((parts.io.into_inner(), parts.read_buf.to_vec()))
    }
}

fn config(max_message: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(max_message))
        .max_frame_size(Some(max_message))
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

/// Sends a close frame and waits for the peer's.
pub(crate) async fn close(socket: &mut Socket, code: CloseCode, reason: &'static str) {
    let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
    if WebSocketStream::close(socket, Some(frame)).await.is_ok() {
        let _ = SinkExt::flush(socket).await;
        while let Some(Ok(_)) = StreamExt::next(socket).await {}
    }
}
