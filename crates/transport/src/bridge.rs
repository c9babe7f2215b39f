//! The bridge websocket: raw passage to the firmware host for high-volume dumps. Nothing is decoded; ETX is added and taken off.
//! Document 1 *Transports*, wire/1-core.md section 3.6.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use access::Admission;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use protocol::{ApiError, Form};
use rpc::{Access, Call, ConnectionKind, Identity};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{Instant, interval_at, timeout};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::gateway::Gateway;
use crate::http::{Request, Response};
use crate::limits::{CLOSE_TIMEOUT, MAX_UNIX_MESSAGE, PING_INTERVAL, SILENCE_LIMIT, WRITE_TIMEOUT};
use crate::socket::etx::{ETX, EtxBuffer};
use crate::socket::{Socket, accept, close, refuse_origin};

/// Reads of the firmware host's stream.
const CHUNK: usize = 16 * 1024;

/// Where bridges lead.
pub struct BridgeTarget {
    /// The firmware host's socket.
    pub socket: PathBuf,
    /// Whether the service itself is connected to the firmware host.
    pub connected: watch::Receiver<bool>,
    open: Arc<AtomicUsize>,
}

impl BridgeTarget {
    /// Bridges to `socket` while `connected` says so.
    #[must_use]
    pub fn new(socket: PathBuf, connected: watch::Receiver<bool>) -> Self {
        Self { socket, connected, open: Arc::default() }
    }

    /// Bridges open now.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

/// Counts a bridge while it lives.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers the opening request of a bridge and runs it.
pub(crate) async fn upgrade(gateway: &Arc<Gateway>, admission: &Admission, mut request: Request) -> Result<Response, ApiError> {
    refuse_origin(admission)?;
    // What passes is not decoded, and the firmware host obeys all of it.
    admission.identity.check(Access::Control)?;
    let (response, opening) = accept(&mut request)?;
    let target = &gateway.bridge;
    let websockets = gateway.connections.count_where(|connection| connection.kind == ConnectionKind::Websocket);
    if websockets + target.open_count() >= gateway.settings.max_websockets {
        return Err(ApiError::unavailable("Too many websockets are open"));
    }
    let absent = || ApiError::unavailable("Klippy Host not connected");
    if !*target.connected.borrow() {
        return Err(absent());
    }
    let host = UnixStream::connect(&target.socket).await.map_err(|_| absent())?;
    // What passes later is not decoded, so this is all that can be noted.
    let call = Call::http(admission.identity.clone(), Form::Neutral, Some(admission.peer()));
    gateway.dispatcher.operations.note(&call, "fwhostsocket", None, &Ok(()));
    target.open.fetch_add(1, Ordering::Relaxed);
    let counted = Counted(target.open.clone());
    let (gateway_of_task, identity) = (gateway.clone(), admission.identity.clone());
    gateway.dispatcher.tasks.spawn(async move {
        if let Some(socket) = opening.socket().await {
            pump(&gateway_of_task, &identity, socket, host).await;
        }
        drop(counted);
    });
    Ok(response)
}

/// Copies both ways until one side ends, or whoever opened it may not any more.
async fn pump(gateway: &Gateway, identity: &Identity, mut socket: Socket, mut host: UnixStream) {
    let mut connected = gateway.bridge.connected.clone();
    let mut buffer = EtxBuffer::new(CHUNK, MAX_UNIX_MESSAGE);
    let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    let mut heard = Instant::now();
    let revoked = || !gateway.accounts.is_current(identity);
    let reason = loop {
        tokio::select! {
            frame = socket.next() => {
                heard = Instant::now();
                let text: Bytes = match frame {
                    Some(Ok(Message::Text(text))) => text.into(),
                    Some(Ok(Message::Binary(bytes))) => bytes,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break None,
                    Some(Ok(_)) => continue,
                };
                if revoked() {
                    break Some("Unauthorized");
                }
                match timeout(WRITE_TIMEOUT, write(&mut host, &text)).await {
                    Ok(Ok(())) => {}
                    _ => break Some("Klippy Disconnected"),
                }
            }
            read = buffer.read(&mut host) => {
                if read.is_err() {
                    break Some("Klippy Disconnected");
                }
                if revoked() {
                    break Some("Unauthorized");
                }
                match timeout(WRITE_TIMEOUT, forward(&mut socket, &mut buffer)).await {
                    Ok(true) => {}
                    _ => break None,
                }
            }
            _ = pings.tick() => {
                if revoked() {
                    break Some("Unauthorized");
                }
                let ping = timeout(WRITE_TIMEOUT, socket.send(Message::Ping(Bytes::new()))).await;
                if heard.elapsed() > SILENCE_LIMIT || !matches!(ping, Ok(Ok(()))) {
                    break None;
                }
            }
            () = gone(&mut connected) => break Some("Klippy Disconnected"),
            () = gateway.stop.cancelled() => break Some("Server Shutdown"),
        }
    };
    match reason {
        Some(reason) => drop(timeout(CLOSE_TIMEOUT, close(&mut socket, CloseCode::Away, reason)).await),
        // The answer to the client's own goodbye leaves with this.
        None => drop(timeout(CLOSE_TIMEOUT, socket.flush()).await),
    }
}

async fn write(host: &mut UnixStream, text: &[u8]) -> io::Result<()> {
    host.write_all(text).await?;
    host.write_all(&[ETX]).await
}

/// Waits until the service has lost the firmware host.
async fn gone(connected: &mut watch::Receiver<bool>) {
    let _ = connected.wait_for(|connected| !connected).await;
}

/// Sends every whole message of the buffer; false when the client is gone.
async fn forward(socket: &mut Socket, buffer: &mut EtxBuffer) -> bool {
    while let Some(message) = buffer.message() {
        // The firmware host writes UTF-8; should it not, the tool that asked for raw data gets raw data.
        let frame = Utf8Bytes::try_from(message.clone()).map_or(Message::Binary(message), Message::Text);
        if socket.feed(frame).await.is_err() {
            return false;
        }
    }
    socket.flush().await.is_ok()
}
