//! The codec of the primary websocket: frames over a socket that is read and written without waiting.
//!
//! The library's codec is used directly instead of its stream adaptor: only so can the limit for messages change while a connection lives, and a
//! look for arrivals costs neither a waker nor a cleared buffer.

use std::io::{self, ErrorKind, IoSlice};

use bytes::Bytes;
use protocol::Frame;
use rpc::CloseReason;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, WebSocketContext};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::looped::{Arrival, Goodbye, MessageStream};
use crate::limits::{MAX_STRANGER_MESSAGE, MAX_WEBSOCKET_MESSAGE, READ_BUFFER};
use crate::wire::{AtOnce, Wire};

/// A primary websocket.
pub(crate) struct Primary {
    stream: Wire,
    codec: WebSocketContext,
}

impl Primary {
    /// A websocket after its upgrade, and what was read behind the opening request.
    pub(crate) fn new(stream: Wire, read: Vec<u8>, config: WebSocketConfig) -> Self {
        Self { stream, codec: WebSocketContext::from_partially_read(read, Role::Server, Some(config)) }
    }

    fn read(&mut self) -> Result<Message, Error> {
        self.codec.read(&mut AtOnce(&mut self.stream))
    }

    /// Sends what the codec holds: pings, and answers to pings and goodbyes.
    async fn flush(&mut self) -> io::Result<()> {
        loop {
            match self.codec.flush(&mut AtOnce(&mut self.stream)) {
                Ok(()) => return Ok(()),
                Err(error) if would_block(&error) => self.stream.writable().await?,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Sends what the codec holds and throws away what still comes: the codec cannot go on after a fault, and a peer that finds its bytes
    /// refused may never read why.
    async fn discard(&mut self) {
        let _ = self.flush().await;
        let mut rest = [0; READ_BUFFER];
        while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }

    /// Sends what the codec holds and reads to the end.
    async fn drain(&mut self) {
        let _ = self.flush().await;
        loop {
            match self.read() {
                Ok(_) => {}
                Err(error) if would_block(&error) && self.stream.readable().await.is_ok() => {}
                Err(_) => return,
            }
        }
    }
}

fn would_block(error: &Error) -> bool {
    matches!(error, Error::Io(error) if error.kind() == ErrorKind::WouldBlock)
}

impl MessageStream for Primary {
    const EXPECTS_PONGS: bool = true;

    async fn ready(&mut self) {
        let _ = self.stream.readable().await;
    }

    fn trust(&mut self, is_authorised: bool) {
        let limit = Some(if is_authorised { MAX_WEBSOCKET_MESSAGE } else { MAX_STRANGER_MESSAGE });
        if self.codec.get_config().max_message_size != limit {
            self.codec.set_config(|config| (config.max_message_size, config.max_frame_size) = (limit, limit));
        }
    }

    fn take(&mut self) -> Option<Arrival> {
        Some(match self.read() {
            Ok(Message::Text(text)) => Arrival::Message(text.into()),
            Ok(Message::Binary(bytes)) => Arrival::Message(bytes),
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => Arrival::Alive,
            Ok(Message::Close(_)) => Arrival::Closing,
            Err(error) if would_block(&error) => return None,
            Err(Error::Capacity(_)) => Arrival::Broken(Goodbye::TooLarge),
            Err(Error::Utf8(_)) => Arrival::Broken(Goodbye::NotUtf8),
            Err(Error::Protocol(fault)) if fault != ProtocolError::ResetWithoutClosingHandshake => Arrival::Broken(Goodbye::Protocol),
            Err(_) => Arrival::Gone,
        })
    }

    /// Writes past the library's buffer: a text that goes to many clients is neither copied nor checked again for each of them.
    async fn send(&mut self, frames: &[Frame]) -> io::Result<()> {
        // Whatever the library still holds (an answer to a ping) goes first, so that frames do not mix.
        self.flush().await?;
        let heads: Vec<Head> = frames.iter().map(|frame| Head::of_text(frame.len())).collect();
        let mut parts: Vec<IoSlice<'_>> =
            heads.iter().zip(frames).flat_map(|(head, frame)| [IoSlice::new(head.bytes()), IoSlice::new(frame)]).collect();
        let mut parts = parts.as_mut_slice();
        while !parts.is_empty() {
            let written = self.stream.write_vectored(parts).await?;
            if written == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut parts, written);
        }
        // What is encrypted is not necessarily sent.
        self.stream.flush().await
    }

    async fn ping(&mut self) -> io::Result<()> {
        match self.codec.write(&mut AtOnce(&mut self.stream), Message::Ping(Bytes::new())) {
            Err(error) if !would_block(&error) => Err(io::Error::other(error)),
            _ => self.flush().await,
        }
    }

    async fn close(&mut self, goodbye: Goodbye) {
        let (code, reason) = match goodbye {
            // The library has the answer ready; it only has to be sent.
            Goodbye::Answer => return self.drain().await,
            Goodbye::Ours(reason @ CloseReason::Shutdown) => (CloseCode::Away, reason.text()),
            Goodbye::Ours(reason) => (CloseCode::Policy, reason.text()),
            Goodbye::TooLarge => (CloseCode::Size, "message too large"),
            Goodbye::NotUtf8 => (CloseCode::Invalid, "invalid UTF-8"),
            Goodbye::Protocol => (CloseCode::Protocol, "protocol error"),
        };
        // The frame is queued in any case; it is sent below.
        let _ = self.codec.close(&mut AtOnce(&mut self.stream), Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) }));
        match goodbye {
            Goodbye::Ours(_) | Goodbye::Answer => self.drain().await,
            Goodbye::TooLarge | Goodbye::NotUtf8 | Goodbye::Protocol => self.discard().await,
        }
    }
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
    use futures_util::{SinkExt, StreamExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    use tokio_tungstenite::tungstenite::protocol::frame::{Frame as Reference, FrameHeader};

    /// A websocket of ours and a client's end of it.
    async fn pair() -> (Primary, WebSocketStream<TcpStream>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let config = WebSocketConfig::default().read_buffer_size(4096).max_message_size(Some(1)).max_frame_size(Some(1));
        (Primary::new(Wire::Plain(server), Vec::new(), config), WebSocketStream::from_raw_socket(client, Role::Client, None).await)
    }

    async fn arrival(socket: &mut Primary) -> Arrival {
        loop {
            match socket.take() {
                Some(arrival) => return arrival,
                None => socket.ready().await,
            }
        }
    }

    #[tokio::test]
    async fn the_limit_for_messages_follows_the_trust() {
        let (mut ours, mut client) = pair().await;
        let big = Message::text("x".repeat(MAX_STRANGER_MESSAGE + 1));
        ours.trust(true);
        let (sent, arrived) = tokio::join!(client.send(big.clone()), arrival(&mut ours));
        sent.unwrap();
        assert!(matches!(arrived, Arrival::Message(text) if text.len() == MAX_STRANGER_MESSAGE + 1));
        ours.trust(false);
        let _ = client.send(big).await;
        assert!(matches!(arrival(&mut ours).await, Arrival::Broken(Goodbye::TooLarge)));
        let told = tokio::select! {
            told = client.next() => told,
            () = ours.close(Goodbye::TooLarge) => panic!("the client is still there"),
        };
        assert!(matches!(&told, Some(Ok(Message::Close(Some(frame)))) if frame.code == CloseCode::Size), "{told:?}");
    }

    #[tokio::test]
    async fn pieces_of_a_message_count_together() {
        let (mut ours, mut client) = pair().await;
        ours.trust(false);
        for last in [false, true] {
            let piece = vec![b'x'; MAX_STRANGER_MESSAGE * 2 / 3];
            let code = if last { OpCode::Data(Data::Continue) } else { OpCode::Data(Data::Text) };
            let _ = client.send(Message::Frame(Reference::message(piece, code, last))).await;
        }
        assert!(matches!(arrival(&mut ours).await, Arrival::Broken(Goodbye::TooLarge)));
    }

    #[tokio::test]
    async fn pings_and_goodbyes_are_answered() {
        let (mut ours, mut client) = pair().await;
        ours.trust(true);
        client.send(Message::Ping(Bytes::from_static(b"p"))).await.unwrap();
        assert!(matches!(arrival(&mut ours).await, Arrival::Alive));
        assert!(ours.take().is_none(), "the look that answers");
        assert!(matches!(client.next().await, Some(Ok(Message::Pong(text))) if &text[..] == b"p"));
        ours.ping().await.unwrap();
        assert!(matches!(client.next().await, Some(Ok(Message::Ping(_)))));
        client.close(None).await.unwrap();
        while !matches!(arrival(&mut ours).await, Arrival::Closing) {}
        ours.close(Goodbye::Answer).await;
        assert!(matches!(client.next().await, Some(Ok(Message::Close(_)))));
    }

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
