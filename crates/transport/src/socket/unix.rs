//! The unix socket: JSON documents, each ended by ETX (0x03), both ways. wire/1-core.md section 3.7.

use std::io;
use std::path::Path;
use std::sync::Arc;

use protocol::Frame;
use rpc::{ConnectionKind, Identity};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::etx::{ETX, EtxBuffer};
use super::looped::{Arrival, Goodbye, MessageStream, run};
use crate::gateway::Gateway;
use crate::limits::{MAX_UNIX_CONNECTIONS, MAX_UNIX_MESSAGE, READ_BUFFER};

/// Opens the socket, replacing a stale file.
///
/// # Errors
/// When the file cannot be made, or another process answers on it.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server answers on this socket"));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(path)
}

/// Serves until the gateway stops.
pub async fn serve(gateway: Arc<Gateway>, listener: UnixListener) {
    let slots = Arc::new(Semaphore::new(MAX_UNIX_CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = gateway.stop.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            continue;
        };
        if let Ok(peer) = stream.peer_cred() {
            tracing::debug!(pid = peer.pid(), uid = peer.uid(), "unix socket connected");
        }
        let gateway = gateway.clone();
        gateway.dispatcher.tasks.clone().spawn(async move {
            let registered = gateway.connections.register(ConnectionKind::Unix, Identity::Local, None);
            run(Etx::new(stream), &registered.connection, &gateway.dispatcher).await;
            drop(slot);
        });
    }
}

/// The codec.
struct Etx {
    stream: UnixStream,
    incoming: EtxBuffer,
    out: Vec<u8>,
}

impl Etx {
    fn new(stream: UnixStream) -> Self {
        Self { stream, incoming: EtxBuffer::new(READ_BUFFER, MAX_UNIX_MESSAGE), out: Vec::new() }
    }
}

impl MessageStream for Etx {
    /// The kernel tells when a local peer is gone.
    const EXPECTS_PONGS: bool = false;

    async fn ready(&mut self) {
        let _ = self.stream.readable().await;
    }

    fn take(&mut self) -> Option<Arrival> {
        loop {
            if let Some(message) = self.incoming.message() {
                return Some(Arrival::Message(message));
            }
            match self.incoming.try_read(|buffer| self.stream.try_read_buf(buffer)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => return Some(Arrival::Gone),
            }
        }
    }

    async fn send(&mut self, frames: &[Frame]) -> io::Result<()> {
        self.out.clear();
        for frame in frames {
            self.out.extend_from_slice(frame);
            self.out.push(ETX);
        }
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        self.out.shrink_to(READ_BUFFER);
        Ok(())
    }

    async fn ping(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self, _: Goodbye) {
        let _ = self.stream.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(codec: &mut Etx) -> Arrival {
        loop {
            match codec.take() {
                Some(arrival) => return arrival,
                None => codec.ready().await,
            }
        }
    }

    #[tokio::test]
    async fn messages_are_cut_at_etx_wherever_reads_end() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_, mut write) = theirs.into_split();
        let mut codec = Etx::new(ours);
        write.write_all(b"{\"a\":1}\x03{\"b\"").await.unwrap();
        assert!(matches!(next(&mut codec).await, Arrival::Message(text) if &text[..] == b"{\"a\":1}"));
        assert!(codec.take().is_none());
        write.write_all(b":2}\x03\x03").await.unwrap();
        assert!(matches!(next(&mut codec).await, Arrival::Message(text) if &text[..] == b"{\"b\":2}"));
        assert!(matches!(next(&mut codec).await, Arrival::Message(text) if text.is_empty()));
        drop(write);
        assert!(matches!(next(&mut codec).await, Arrival::Gone));
    }

    #[tokio::test]
    async fn a_message_without_end_is_bounded() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let writer = tokio::spawn(async move {
            let block = vec![b'x'; 1024 * 1024];
            while theirs.write_all(&block).await.is_ok() {}
        });
        let mut codec = Etx::new(ours);
        assert!(matches!(next(&mut codec).await, Arrival::Gone));
        drop(codec);
        writer.await.unwrap();
    }

    #[tokio::test]
    async fn a_stale_socket_file_is_replaced_and_a_living_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        drop(listen(&path).unwrap());
        let living = listen(&path).unwrap();
        assert_eq!(listen(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(living);
    }
}
