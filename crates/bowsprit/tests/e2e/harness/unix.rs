//! The unix socket from the client's side: documents ended by ETX.

use std::path::Path;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::rpc::{Channel, Rpc};
use super::wait::until;

const ETX: u8 = 0x03;

/// The channel.
pub(crate) struct Etx(BufReader<UnixStream>);

/// A client on the unix socket.
pub(crate) type Unix = Rpc<Etx>;

impl Unix {
    pub(crate) async fn connect(path: &Path) -> Self {
        // A server that restarts has none for a moment.
        let connect = || async { UnixStream::connect(path).await.ok() };
        let stream = until("unix socket", connect, Option::is_some).await.unwrap();
        Rpc::over(Etx(BufReader::new(stream)))
    }
}

impl Channel for Etx {
    async fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).await.unwrap();
        self.0.get_mut().write_all(&[ETX]).await.unwrap();
    }

    async fn receive(&mut self) -> Option<String> {
        let mut message = Vec::new();
        self.0.read_until(ETX, &mut message).await.ok()?;
        (message.pop()? == ETX).then(|| String::from_utf8(message).unwrap())
    }
}
