//! A secured connection that can also be read and written without waiting, as a plain one can.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A secured connection.
#[derive(Debug)]
pub struct Stream(TlsStream<TcpStream>);

/// The connection below, on which everything happens at once or not at all.
struct AtOnce<'a>(&'a TcpStream);

impl Read for AtOnce<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for AtOnce<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    pub(crate) fn new(stream: TlsStream<TcpStream>) -> Self {
        Self(stream)
    }

    /// Ready when there may be something to read.
    ///
    /// # Errors
    /// When the connection is broken.
    pub async fn readable(&mut self) -> io::Result<()> {
        let (tcp, session) = self.0.get_mut();
        let state = session.process_new_packets().map_err(io::Error::other)?;
        if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
            return Ok(());
        }
        tcp.readable().await
    }

    /// Ready when something can be written again.
    ///
    /// # Errors
    /// When the connection is broken.
    pub async fn writable(&self) -> io::Result<()> {
        self.0.get_ref().0.writable().await
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there.
    pub fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (tcp, session) = self.0.get_mut();
        loop {
            match session.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Peers often leave without the goodbye of TLS; messages of a websocket cannot be cut off unnoticed.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            // The end of the connection is seen by the next look at the session.
            session.read_tls(&mut AtOnce(tcp))?;
            session.process_new_packets().map_err(io::Error::other)?;
        }
    }

    /// Writes what fits.
    ///
    /// # Errors
    /// `WouldBlock` when nothing fits.
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_flush()?;
        let written = self.0.get_mut().1.writer().write(bytes)?;
        match self.try_flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(written),
        }
    }

    /// Sends what is encrypted already.
    ///
    /// # Errors
    /// `WouldBlock` when not all of it could be sent.
    pub fn try_flush(&mut self) -> io::Result<()> {
        let (tcp, session) = self.0.get_mut();
        while session.wants_write() {
            session.write_tls(&mut AtOnce(tcp))?;
        }
        Ok(())
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::{Acceptor, SelfMade, Source};

    /// A secured pair: our end, and a client that trusts exactly our certificate.
    async fn pair() -> (Stream, tokio_rustls::client::TlsStream<TcpStream>) {
        let folder = tempfile::tempdir().unwrap();
        let made = SelfMade { folder: folder.path().to_owned(), host: "printer".into(), names: Vec::new() };
        let acceptor = Acceptor::new(Source::SelfMade(made.clone())).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(made.certificate()).unwrap()).unwrap();
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let connecting = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("printer.local").unwrap(), tcp);
        let accepting = async { acceptor.accept(listener.accept().await.unwrap().0).await.unwrap() };
        let (ours, theirs) = tokio::join!(accepting, connecting);
        (ours, theirs.unwrap())
    }

    async fn read(stream: &mut Stream, size: usize) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), [0; 1000]);
        while all.len() < size {
            stream.readable().await.unwrap();
            match stream.try_read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => all.extend_from_slice(&buffer[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        all
    }

    #[tokio::test]
    async fn bytes_arrive_without_waiting() {
        let (mut ours, mut theirs) = pair().await;
        assert_eq!(ours.try_read(&mut [0; 10]).unwrap_err().kind(), ErrorKind::WouldBlock);
        let sent: Vec<u8> = (0..100_000_u32).map(|index| index as u8).collect();
        let (received, ()) = tokio::join!(read(&mut ours, sent.len()), async {
            theirs.write_all(&sent).await.unwrap();
            theirs.flush().await.unwrap();
        });
        assert_eq!(received, sent);
        // One record, read in two pieces: the rest is there without anything new from the network.
        theirs.write_all(b"two pieces").await.unwrap();
        theirs.flush().await.unwrap();
        let mut piece = [0; 3];
        ours.readable().await.unwrap();
        while ours.try_read(&mut piece).is_err() {
            ours.readable().await.unwrap();
        }
        assert_eq!(&piece, b"two");
        assert_eq!(read(&mut ours, 7).await, b" pieces");
        theirs.shutdown().await.unwrap();
        assert_eq!(read(&mut ours, 1).await, b"", "the end");
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_blocks_and_nothing_is_lost() {
        let (mut ours, mut theirs) = pair().await;
        let piece = [7; 4096];
        let mut sent = 0;
        loop {
            match ours.try_write(&piece) {
                Ok(count) => sent += count,
                Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            assert!(sent < 100_000_000, "it never blocks");
        }
        let mut all = vec![0; sent];
        let (_, ()) = tokio::join!(theirs.read_exact(&mut all), async {
            while ours.try_flush().is_err() {
                ours.writable().await.unwrap();
            }
        });
        assert!(all.iter().all(|byte| *byte == 7));
    }
}
