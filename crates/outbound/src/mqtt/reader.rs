//! Packets out of a stream of bytes. What is too large is skipped, not kept.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::Version;
use super::codec::{Malformed, PUBLISH, Packet, decode, publish_head};

/// Bytes of an MQTT packet that is taken in; larger messages are skipped.
pub const MAX_INCOMING: usize = 1024 * 1024;

/// Room for bytes that arrive: most packets are complete after one look.
const READ_AT_ONCE: usize = 2 * 1024;

/// What one look brought.
pub(super) struct Arrived {
    /// 0 at the end of the stream.
    pub(super) bytes: usize,
    /// There was room for more.
    pub(super) is_all: bool,
}

/// Bytes that have arrived, on their way to packets.
#[derive(Debug)]
pub(super) struct Reader {
    version: Version,
    pub(super) buffer: BytesMut,
    /// Bytes of an MQTT packet that is too large which are still to come.
    skipping: usize,
}

impl Reader {
    pub(super) fn new(version: Version) -> Self {
        Self { version, buffer: BytesMut::new(), skipping: 0 }
    }

    /// Waits for bytes and takes them in. Nothing is lost when this is dropped.
    pub(super) async fn read_from(&mut self, input: &mut (impl AsyncRead + Unpin)) -> io::Result<Arrived> {
        self.buffer.reserve(READ_AT_ONCE);
        let bytes = input.read_buf(&mut self.buffer).await?;
        Ok(Arrived { bytes, is_all: self.buffer.len() < self.buffer.capacity() })
    }

    /// The next packet, when it is there.
    pub(super) fn next(&mut self) -> Result<Option<Packet>, Malformed> {
        let skipped = self.skipping.min(self.buffer.len());
        self.buffer.advance(skipped);
        self.skipping -= skipped;
        if self.skipping > 0 {
            return Ok(None);
        }
        let Some((first, header, length)) = self.header()? else { return Ok(None) };
        if length > MAX_INCOMING {
            return self.skip(first, header, length);
        }
        if self.buffer.len() < header + length {
            self.buffer.reserve(header + length - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(header);
        decode(self.version, first, self.buffer.split_to(length).freeze()).map(Some)
    }

    /// First byte, length of the fixed header, length of what follows it.
    fn header(&self) -> Result<Option<(u8, usize, usize)>, Malformed> {
        let Some((first, rest)) = self.buffer.split_first() else { return Ok(None) };
        let mut length = 0;
        for (at, byte) in rest.iter().take(4).enumerate() {
            length |= usize::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(Some((*first, at + 2, length)));
            }
        }
        if rest.len() >= 4 { Err(Malformed("a length of more than four bytes")) } else { Ok(None) }
    }

    fn skip(&mut self, first: u8, header: usize, length: usize) -> Result<Option<Packet>, Malformed> {
        if first >> 4 != PUBLISH {
            return Err(Malformed("a packet that is too large"));
        }
        let Some((qos, id)) = publish_head(first, self.buffer.get(header..).unwrap_or_default())? else { return Ok(None) };
        let here = self.buffer.len().min(header + length);
        self.buffer.advance(here);
        self.skipping = header + length - here;
        Ok(Some(Packet::Skipped { qos, id }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mqtt::{Message, Qos, codec};
    use proptest::prelude::*;

    fn read_all(bytes: &[u8], step: usize, version: Version) -> Vec<Packet> {
        let mut reader = Reader::new(version);
        let mut packets = Vec::new();
        for chunk in bytes.chunks(step) {
            reader.buffer.extend_from_slice(chunk);
            while let Some(packet) = reader.next().unwrap() {
                packets.push(packet);
            }
        }
        packets
    }

    fn message(payload: &[u8], qos: Qos) -> Message {
        Message { topic: "a/b".into(), payload: payload.to_vec().into(), qos, retain: true }
    }

    #[test]
    fn a_message_that_is_too_large_is_skipped_and_the_next_one_is_read() {
        let mut bytes = BytesMut::new();
        codec::put_publish(Version::V311, &message(&vec![7; MAX_INCOMING], Qos::AtLeastOnce), 9, usize::MAX, &mut bytes).unwrap();
        codec::put_publish(Version::V311, &message(b"small", Qos::AtMostOnce), 0, usize::MAX, &mut bytes).unwrap();
        let expected =
            vec![Packet::Skipped { qos: Qos::AtLeastOnce, id: 9 }, Packet::Publish { message: message(b"small", Qos::AtMostOnce), id: 0 }];
        assert_eq!(read_all(&bytes, 4096, Version::V311), expected);
        assert_eq!(read_all(&bytes, 3, Version::V311), expected);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again_however_it_arrives(payload in prop::collection::vec(any::<u8>(), 0..300), qos in 0..3_i64, id in 1..9_u16, step in 1..64_usize, five in any::<bool>()) {
            let version = if five { Version::V5 } else { Version::V31 };
            let qos = Qos::from_number(qos).unwrap();
            let mut bytes = BytesMut::new();
            codec::put_publish(version, &message(&payload, qos), id, usize::MAX, &mut bytes).unwrap();
            codec::put_ack(codec::PUBREL, id, &mut bytes);
            let id_of_message = if qos == Qos::AtMostOnce { 0 } else { id };
            let expected = vec![Packet::Publish { message: message(&payload, qos), id: id_of_message }, Packet::PubRel { id }];
            prop_assert_eq!(read_all(&bytes, step, version), expected);
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200), five in any::<bool>()) {
            let mut reader = Reader::new(if five { Version::V5 } else { Version::V311 });
            reader.buffer.extend_from_slice(&bytes);
            while let Ok(Some(_)) = reader.next() {}
        }
    }
}
