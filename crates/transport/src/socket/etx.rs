//! Cutting a byte stream at ETX (0x03), which ends every message on unix sockets.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The byte that ends a message.
pub(crate) const ETX: u8 = 0x03;

/// Bytes that arrived and are not handed out yet.
pub(crate) struct EtxBuffer {
    bytes: BytesMut,
    /// Bytes at the start that hold no ETX: a long message is scanned once.
    scanned: usize,
    chunk: usize,
    limit: usize,
}

impl EtxBuffer {
    /// Reads about `chunk` bytes at a time, messages of at most `limit` bytes.
    pub(crate) fn new(chunk: usize, limit: usize) -> Self {
        Self { bytes: BytesMut::new(), scanned: 0, chunk, limit }
    }

    /// The next whole message that has arrived, without its ETX.
    pub(crate) fn message(&mut self) -> Option<Bytes> {
        if let Some(end) = memchr::memchr(ETX, &self.bytes[self.scanned..]) {
            let mut message = self.bytes.split_to(self.scanned + end + 1);
            message.truncate(message.len() - 1);
            self.scanned = 0;
            return Some(message.freeze());
        }
        self.scanned = self.bytes.len();
        None
    }

    /// Reads once. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// At the end of the stream, and when a message is too long.
    pub(crate) async fn read(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
        self.prepare()?;
        ended(stream.read_buf(&mut self.bytes).await?)
    }

    /// Reads once without waiting.
    ///
    /// # Errors
    /// As [`EtxBuffer::read`], and `WouldBlock` when nothing has arrived.
    pub(crate) fn try_read(&mut self, read: impl FnOnce(&mut BytesMut) -> io::Result<usize>) -> io::Result<()> {
        self.prepare()?;
        ended(read(&mut self.bytes)?)
    }

    fn prepare(&mut self) -> io::Result<()> {
        if self.bytes.len() > self.limit {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "message too long"));
        }
        self.bytes.reserve(self.chunk);
        Ok(())
    }
}

fn ended(read: usize) -> io::Result<()> {
    if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}
