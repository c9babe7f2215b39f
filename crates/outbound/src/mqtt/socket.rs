//! A connection that can be left alone: while it rests, the kernel keeps what arrives, and nobody is woken for it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

enum State {
    Awake(TcpStream),
    /// Unknown to the loop that waits for all sockets.
    Resting(std::net::TcpStream),
    Broken,
}

impl State {
    fn awake(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        if let Self::Resting(_) = self
            && let Self::Resting(tcp) = std::mem::replace(self, Self::Broken)
        {
            *self = Self::Awake(TcpStream::from_std(tcp)?);
        }
        match self {
            Self::Awake(tcp) => Ok(Pin::new(tcp)),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// The connection.
pub(super) struct Socket(Arc<Mutex<State>>);

/// Lets a connection rest, also when it lies below TLS.
pub(super) struct Rest(Arc<Mutex<State>>);

impl Socket {
    pub(super) fn new(tcp: TcpStream) -> (Self, Rest) {
        let state = Arc::new(Mutex::new(State::Awake(tcp)));
        (Self(state.clone()), Rest(state))
    }
}

impl Rest {
    /// From now on nothing is read, until [`Rest::end`] or until something is written.
    pub(super) fn begin(&self) {
        let mut state = self.0.lock();
        *state = match std::mem::replace(&mut *state, State::Broken) {
            State::Awake(tcp) => tcp.into_std().map_or(State::Broken, State::Resting),
            other => other,
        };
    }

    /// What has arrived can be read. A connection that cannot be woken up shows it when it is read.
    pub(super) fn end(&self) {
        drop(self.0.lock().awake());
    }

    pub(super) fn is_resting(&self) -> bool {
        matches!(&*self.0.lock(), State::Resting(_))
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        match &*state {
            // Whoever ends the rest reads again.
            State::Resting(_) => Poll::Pending,
            _ => state.awake()?.poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().awake()?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().awake()?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().awake()?.poll_shutdown(context)
    }
}
