//! Reaching the broker: TCP, TLS, and its welcome.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::codec::{self, ConnAck, Packet};
use super::reader::{MAX_INCOMING, Reader};
use super::socket::{Rest, Socket};
use super::{MqttOptions, Version};
use crate::chance;
use crate::tls::secure;

/// Bytes of the longest client name that every broker must take.
const MAX_CLIENT_ID: usize = 23;

/// A connection of either kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection on which the broker has welcomed us.
pub(super) struct Welcome {
    pub(super) stream: Box<dyn Stream>,
    pub(super) rest: Rest,
    pub(super) reader: Reader,
    pub(super) limits: ConnAck,
}

/// Connects. The text of a failure is for people.
pub(super) async fn dial(options: &MqttOptions, client_id: &str) -> Result<Welcome, String> {
    let host = options.address.trim_matches(['[', ']']);
    let tcp = TcpStream::connect((host, options.port)).await.map_err(|error| error.to_string())?;
    let _ = tcp.set_nodelay(true);
    let (socket, rest) = Socket::new(tcp);
    let mut stream: Box<dyn Stream> = if options.tls { Box::new(secure(host, socket).await?) } else { Box::new(socket) };
    let mut out = BytesMut::new();
    codec::connect(options, client_id, MAX_INCOMING as u32, &mut out);
    let mut reader = Reader::new(options.version);
    let limits = greet(&mut stream, &mut reader, &out).await.map_err(|error| error.to_string())?;
    match limits.reason {
        0 => Ok(Welcome { stream, rest, reader, limits }),
        reason => Err(format!("the broker refused the connection: {}", refusal(options.version, reason))),
    }
}

async fn greet(stream: &mut Box<dyn Stream>, reader: &mut Reader, connect: &[u8]) -> io::Result<ConnAck> {
    stream.write_all(connect).await?;
    stream.flush().await?;
    loop {
        match reader.next() {
            Ok(Some(Packet::ConnAck(answer))) => return Ok(answer),
            Ok(None) => {}
            _ => return Err(io::Error::other("what answers there is no MQTT broker")),
        }
        if stream.read_buf(&mut reader.buffer).await? == 0 {
            return Err(io::Error::other("the broker closed the connection without an answer"));
        }
    }
}

/// What a reason code of a CONNACK means.
fn refusal(version: Version, reason: u8) -> String {
    let text = match (version, reason) {
        (Version::V5, 0x84) | (Version::V31 | Version::V311, 1) => "it does not speak this version of MQTT (mqtt_protocol)",
        (Version::V5, 0x85) | (Version::V31 | Version::V311, 2) => "it does not take this client_id",
        (Version::V5, 0x88) | (Version::V31 | Version::V311, 3) => "it is not available",
        (Version::V5, 0x86) | (Version::V31 | Version::V311, 4) => "wrong username or password",
        (Version::V5, 0x87) | (Version::V31 | Version::V311, 5) => "not authorised: check username and password",
        (Version::V5, 0x8a) => "this client is banned",
        _ => return format!("reason {reason}"),
    };
    text.to_owned()
}

/// A client name that nobody else has.
pub(super) fn made_up_client_id() -> String {
    let mut name = format!("bowsprit{:016x}", chance::number());
    name.truncate(MAX_CLIENT_ID);
    name
}
