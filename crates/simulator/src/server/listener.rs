//! The listening socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::host::Event;

/// Pause after a failed accept (too many open files), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds the socket; a file left by an earlier process is removed first.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    UnixListener::bind(path)
}

/// Hands connections to the host until the token is cancelled. The socket file stays.
pub(crate) async fn accept(listener: UnixListener, events: mpsc::Sender<Event>, token: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = token.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                if events.send(Event::Connected(stream)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
