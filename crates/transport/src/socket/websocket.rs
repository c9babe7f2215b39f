//! The websocket codec and its upgrade.

use std::io::{self, IoSlice};
use std::sync::Arc;

use access::Admission;
use bytes::Bytes;
use futures_util::{FutureExt, SinkExt, StreamExt};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use protocol::{ApiError, ErrorKind, Frame};
use rpc::{CloseReason, ConnectionKind};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::looped::{Arrival, Goodbye, MessageStream, run};
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
    let registered = gateway.connections.register(ConnectionKind::Websocket, admission.identity.clone(), Some(admission.peer()));
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

    async fn ready(&mut self) {
        // Not `next`: that clears a read buffer at every look.
        let _ = self.get_ref().readable().await;
    }

    fn take(&mut self) -> Option<Arrival> {
        Some(match StreamExt::next(self).now_or_never()? {
            Some(Ok(Message::Text(text))) => Arrival::Message(text.into()),
            Some(Ok(Message::Binary(bytes))) => Arrival::Message(bytes),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Arrival::Alive,
            Some(Ok(Message::Close(_))) => Arrival::Closing,
            None => Arrival::Gone,
            Some(Err(Error::Capacity(_))) => Arrival::Broken(Goodbye::TooLarge),
            Some(Err(Error::Utf8(_))) => Arrival::Broken(Goodbye::NotUtf8),
            Some(Err(Error::Protocol(fault))) if fault != ProtocolError::ResetWithoutClosingHandshake => Arrival::Broken(Goodbye::Protocol),
            Some(Err(_)) => Arrival::Gone,
        })
    }

    /// Writes past the library's buffer: a text that goes to many clients is neither copied nor checked again for each of them.
    async fn send(&mut self, frames: &[Frame]) -> io::Result<()> {
        // Whatever the library still holds (an answer to a ping) goes first, so that frames do not mix.
        SinkExt::flush(self).await.map_err(io::Error::other)?;
        let heads: Vec<Head> = frames.iter().map(|frame| Head::of_text(frame.len())).collect();
        let mut parts: Vec<IoSlice<'_>> =
            heads.iter().zip(frames).flat_map(|(head, frame)| [IoSlice::new(head.bytes()), IoSlice::new(frame)]).collect();
        let mut parts = parts.as_mut_slice();
        while !parts.is_empty() {
            let written = self.get_mut().write_vectored(parts).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut parts, written);
        }
        Ok(())
    }

    async fn ping(&mut self) -> io::Result<()> {
        SinkExt::send(self, Message::Ping(Bytes::new())).await.map_err(io::Error::other)
    }

    async fn close(&mut self, goodbye: Goodbye) {
        let (code, reason) = match goodbye {
            // The library has the answer ready; it only has to be sent.
            Goodbye::Answer => return drain(self).await,
            Goodbye::Ours(reason @ CloseReason::Shutdown) => (CloseCode::Away, reason.text()),
            Goodbye::Ours(reason) => (CloseCode::Policy, reason.text()),
            Goodbye::TooLarge => (CloseCode::Size, "message too large"),
            Goodbye::NotUtf8 => (CloseCode::Invalid, "invalid UTF-8"),
            Goodbye::Protocol => (CloseCode::Protocol, "protocol error"),
        };
        close(self, code, reason).await;
    }
}

/// Sends a close frame and waits for the peer's.
pub(crate) async fn close(socket: &mut Socket, code: CloseCode, reason: &'static str) {
    if WebSocketStream::close(socket, Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })).await.is_ok() {
        drain(socket).await;
    }
}

/// Sends what the library holds and reads to the end.
async fn drain(socket: &mut Socket) {
    let _ = SinkExt::flush(socket).await;
    while let Some(Ok(_)) = StreamExt::next(socket).await {}
}

/// The head of an unmasked, unfragmented text frame (RFC 6455 section 5.2).
struct Head {
    bytes: [u8; 10],
    length: usize,
}

impl Head {
    fn of_text(payload: usize) -> Self {
        let mut bytes = [0; 10];
        bytes[0] = 0x81;
        let length = match payload {
            0..=125 => {
                bytes[1] = payload.to_be_bytes()[size_of::<usize>() - 1];
                2
            }
            126..=0xffff => {
                bytes[1] = 126;
                bytes[2..4].copy_from_slice(&payload.to_be_bytes()[size_of::<usize>() - 2..]);
                4
            }
            _ => {
                bytes[1] = 127;
                bytes[2..].copy_from_slice(&(payload as u64).to_be_bytes());
                10
            }
        };
        Self { bytes, length }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    use tokio_tungstenite::tungstenite::protocol::frame::{Frame as Reference, FrameHeader};

    #[test]
    fn heads_are_those_of_the_library() {
        for length in [0usize, 1, 125, 126, 127, 255, 256, 65_535, 65_536, 1_000_000] {
            let header = FrameHeader { opcode: OpCode::Data(Data::Text), ..FrameHeader::default() };
            let mut expected = Vec::new();
            Reference::from_payload(header, vec![b'x'; length].into()).format(&mut expected).unwrap();
            assert_eq!(Head::of_text(length).bytes(), &expected[..expected.len() - length], "{length}");
        }
    }
}
