//! The loop of one connection: messages in, what they and the rest of the server cause out. Knows no socket; tests run it over channels.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use protocol::Frame;
use rpc::{CloseReason, Connection, Dispatcher};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::limits::{CLOSE_TIMEOUT, PING_INTERVAL, READ_BATCH, SILENCE_LIMIT, WRITE_BATCH, WRITE_TIMEOUT};

/// Something that arrived.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A whole message.
    Message(Bytes),
    /// A sign of life without content.
    Alive,
    /// The peer is gone, or broke a limit of the codec.
    End,
}

/// A codec over some socket.
pub(crate) trait MessageStream: Send {
    /// The next arrival; nothing is lost when the future is dropped.
    fn next(&mut self) -> impl Future<Output = Arrival> + Send;
    /// Writes all messages and flushes.
    fn send(&mut self, frames: &[Frame]) -> impl Future<Output = std::io::Result<()>> + Send;
    /// Asks the peer for a sign of life; nothing where the socket itself tells.
    fn ping(&mut self) -> impl Future<Output = std::io::Result<()>> + Send;
    /// Says goodbye.
    fn close(&mut self, reason: CloseReason) -> impl Future<Output = ()> + Send;
    /// True when silence means that the peer is dead.
    const EXPECTS_PONGS: bool;
}

/// Runs a connection until either side ends it.
pub(crate) async fn run<S: MessageStream>(mut stream: S, connection: &Arc<Connection>, dispatcher: &Arc<Dispatcher>) {
    if let Some(reason) = serve(&mut stream, connection, dispatcher).await {
        let _ = timeout(CLOSE_TIMEOUT, stream.close(reason)).await;
    }
}

/// Serves until the end; the reason, when it is ours.
async fn serve<S: MessageStream>(stream: &mut S, connection: &Arc<Connection>, dispatcher: &Arc<Dispatcher>) -> Option<CloseReason> {
    let outbox = connection.outbox.clone();
    let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            arrival = stream.next() => {
                heard = Instant::now();
                if !receive(stream, arrival, connection, dispatcher) {
                    return None;
                }
            }
            () = outbox.filled() => {}
            _ = pings.tick(), if S::EXPECTS_PONGS => {
                if heard.elapsed() > SILENCE_LIMIT {
                    return None;
                }
                within(WRITE_TIMEOUT, stream.ping()).await.ok()?;
            }
        }
        if !write(stream, connection).await {
            return None;
        }
        if let Some(reason) = outbox.closed() {
            return Some(reason);
        }
    }
}

/// Handles what arrived, and what has arrived with it, before anything is written: answers of a burst then leave in one go.
fn receive<S: MessageStream>(stream: &mut S, first: Arrival, connection: &Arc<Connection>, dispatcher: &Arc<Dispatcher>) -> bool {
    let mut arrival = first;
    for _ in 0..READ_BATCH {
        match arrival {
            Arrival::Message(text) => dispatcher.message(connection, &text),
            Arrival::Alive => {}
            Arrival::End => return false,
        }
        match stream.next().now_or_never() {
            Some(next) => arrival = next,
            None => return true,
        }
    }
    // The burst goes on; what was taken last must not be lost.
    match arrival {
        Arrival::Message(text) => dispatcher.message(connection, &text),
        Arrival::Alive => {}
        Arrival::End => return false,
    }
    true
}

async fn write<S: MessageStream>(stream: &mut S, connection: &Arc<Connection>) -> bool {
    let mut batch = Vec::new();
    while connection.outbox.take(&mut batch, WRITE_BATCH) {
        if within(WRITE_TIMEOUT, stream.send(&batch)).await.is_err() {
            tracing::info!(connection = connection.id.0, "a client does not take its messages and is disconnected");
            return false;
        }
        batch.clear();
    }
    true
}

async fn within<T>(limit: Duration, work: impl Future<Output = std::io::Result<T>>) -> std::io::Result<T> {
    timeout(limit, work).await.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc::{Access, ConnectionKind, Connections, Identity, Registry};
    use tokio::sync::mpsc;
    use tokio_util::task::TaskTracker;

    struct Channel {
        incoming: mpsc::Receiver<Bytes>,
        outgoing: mpsc::Sender<Frame>,
        closed: Arc<parking_lot_free::Slot>,
    }

    /// A slot for the close reason, without another dependency.
    mod parking_lot_free {
        #[derive(Default)]
        pub(super) struct Slot(std::sync::Mutex<Option<rpc::CloseReason>>);
        impl Slot {
            pub(super) fn set(&self, reason: rpc::CloseReason) {
                *self.0.lock().unwrap() = Some(reason);
            }
            pub(super) fn get(&self) -> Option<rpc::CloseReason> {
                *self.0.lock().unwrap()
            }
        }
    }

    impl MessageStream for Channel {
        const EXPECTS_PONGS: bool = true;

        async fn next(&mut self) -> Arrival {
            self.incoming.recv().await.map_or(Arrival::End, Arrival::Message)
        }
        async fn send(&mut self, frames: &[Frame]) -> std::io::Result<()> {
            for frame in frames {
                self.outgoing.send(frame.clone()).await.map_err(|_| std::io::ErrorKind::BrokenPipe)?;
            }
            Ok(())
        }
        async fn ping(&mut self) -> std::io::Result<()> {
            Ok(())
        }
        async fn close(&mut self, reason: CloseReason) {
            self.closed.set(reason);
        }
    }

    struct Fixture {
        to_server: mpsc::Sender<Bytes>,
        from_server: mpsc::Receiver<Frame>,
        connection: Arc<Connection>,
        closed: Arc<parking_lot_free::Slot>,
        running: tokio::task::JoinHandle<()>,
    }

    fn start(capacity: usize) -> Fixture {
        struct Service;
        let mut registry = Registry::default();
        registry.op("a.now").access(Access::View).answer(&Arc::new(Service), |_, _, (): ()| Ok("now"));
        let dispatcher = Arc::new(Dispatcher { operations: Arc::new(registry.build().unwrap()), tasks: TaskTracker::new() });
        let registered = Arc::new(Connections::default()).register(ConnectionKind::Websocket, Identity::Local, None);
        let connection = registered.connection.clone();
        let (to_server, incoming) = mpsc::channel(1000);
        let (outgoing, from_server) = mpsc::channel(capacity);
        let closed = Arc::new(parking_lot_free::Slot::default());
        let stream = Channel { incoming, outgoing, closed: closed.clone() };
        let running = tokio::spawn(async move {
            run(stream, &registered.connection, &dispatcher).await;
        });
        Fixture { to_server, from_server, connection, closed, running }
    }

    fn call(id: usize) -> Bytes {
        format!(r#"{{"jsonrpc":"2.0","method":"a.now","id":{id}}}"#).into()
    }

    #[tokio::test]
    async fn a_burst_is_answered_whole_and_in_order() {
        let mut fixture = start(1000);
        for id in 0..300 {
            fixture.to_server.send(call(id)).await.unwrap();
        }
        for id in 0..300 {
            let frame = fixture.from_server.recv().await.unwrap();
            assert_eq!(&frame[..], format!(r#"{{"jsonrpc":"2.0","result":"now","id":{id}}}"#).as_bytes());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_let_go() {
        let fixture = start(1);
        for _ in 0..10 {
            fixture.connection.outbox.push(Frame::from_static(b"{}"));
        }
        timeout(Duration::from_secs(60), fixture.running).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_connection() {
        let fixture = start(10);
        let start = Instant::now();
        fixture.running.await.unwrap();
        assert!(start.elapsed() >= SILENCE_LIMIT);
        drop(fixture.to_server);
    }

    #[tokio::test]
    async fn what_was_queued_before_the_end_is_still_sent() {
        let mut fixture = start(10);
        fixture.connection.outbox.push(Frame::from_static(b"last"));
        fixture.connection.outbox.close(CloseReason::Shutdown);
        assert_eq!(&fixture.from_server.recv().await.unwrap()[..], b"last");
        fixture.running.await.unwrap();
        assert_eq!(fixture.closed.get(), Some(CloseReason::Shutdown));
    }
}
