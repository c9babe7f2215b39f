//! A connection to a client, plain or secured.

use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection of either kind. One type, so that everything above exists once.
#[derive(Debug)]
pub(crate) enum Wire {
    /// TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Secure(Box<tls::Stream>),
}

impl Wire {
    /// Ready when there may be something to read.
    pub(crate) async fn readable(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.readable().await,
            Self::Secure(stream) => stream.readable().await,
        }
    }

    /// Ready when something can be written again.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.writable().await,
            Self::Secure(stream) => stream.writable().await,
        }
    }
}

/// A connection on which everything happens at once or not at all.
pub(crate) struct AtOnce<'a>(pub(crate) &'a mut Wire);

impl Read for AtOnce<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0 {
            Wire::Plain(tcp) => tcp.try_read(buffer),
            Wire::Secure(stream) => stream.try_read(buffer),
        }
    }
}

impl Write for AtOnce<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0 {
            Wire::Plain(tcp) => tcp.try_write(bytes),
            Wire::Secure(stream) => stream.try_write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {
            Wire::Plain(_) => Ok(()),
            Wire::Secure(stream) => stream.try_flush(),
        }
    }
}

/// Both kinds in one arm: what is done is the same.
macro_rules! either {
    ($wire:expr, $stream:ident => $work:expr) => {
        match $wire.get_mut() {
            Wire::Plain(tcp) => {
                let $stream = Pin::new(tcp);
                $work
            }
            Wire::Secure(secured) => {
                let $stream = Pin::new(&mut **secured);
                $work
            }
        }
    };
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(tcp) => tcp.is_write_vectored(),
            Self::Secure(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}
