//! The loop of one connection: messages in, what they and the rest of the server cause out. Knows no socket; tests run it over channels.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::Frame;
use rpc::{CloseReason, Connection, Dispatcher};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::limits::{CLOSE_TIMEOUT, PING_INTERVAL, READ_BATCH, SILENCE_LIMIT, STRANGER_TIMEOUT, WRITE_BATCH, WRITE_FIRST, WRITE_TIMEOUT};

/// Something that arrived.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A whole message.
    Message(Bytes),
    /// A sign of life without content.
    Alive,
    /// The peer is gone.
    Gone,
    /// The peer says goodbye.
    Closing,
    /// The peer broke a rule of the codec and is told so.
    Broken(Goodbye),
}

/// What a peer is told at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goodbye {
    /// The answer to the peer's own goodbye.
    Answer,
    /// The server ends the connection.
    Ours(CloseReason),
    /// A message was larger than the limit.
    TooLarge,
    /// A text was not UTF-8.
    NotUtf8,
    /// The framing was wrong.
    Protocol,
}

/// A codec over some socket.
pub(crate) trait MessageStream: Send {
    /// Waits until something may have arrived. Cheap: most wake-ups of a connection are for writing.
    fn ready(&mut self) -> impl Future<Output = ()> + Send;
    /// Tells whether the peer is somebody: strangers may send small messages only. Nothing where peers are always somebody.
    fn trust(&mut self, _is_authorised: bool) {}
    /// What has arrived, if anything has.
    fn take(&mut self) -> Option<Arrival>;
    /// Writes all messages and flushes.
    fn send(&mut self, frames: &[Frame]) -> impl Future<Output = std::io::Result<()>> + Send;
    /// Asks the peer for a sign of life; nothing where the socket itself tells.
    fn ping(&mut self) -> impl Future<Output = std::io::Result<()>> + Send;
    /// Says goodbye.
    fn close(&mut self, goodbye: Goodbye) -> impl Future<Output = ()> + Send;
    /// True when silence means that the peer is dead.
    const EXPECTS_PONGS: bool;
}

/// Runs a connection until either side ends it.
pub(crate) async fn run<S: MessageStream>(mut stream: S, connection: &Arc<Connection>, dispatcher: &Arc<Dispatcher>) {
    if let Some(goodbye) = serve(&mut stream, connection, dispatcher).await {
        let _ = timeout(CLOSE_TIMEOUT, stream.close(goodbye)).await;
    }
}

/// Serves until the end; what the peer is to be told, when it is still there.
async fn serve<S: MessageStream>(stream: &mut S, connection: &Arc<Connection>, dispatcher: &Arc<Dispatcher>) -> Option<Goodbye> {
    let outbox = connection.outbox.clone();
    let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    let mut known = Instant::now();
    // Most wake-ups are for writing; looking for arrivals costs a cleared buffer, so it waits until there is something.
    let mut readable = true;
    loop {
        // What has arrived together is answered together: answers of a burst leave in one go.
        let mut arrived = 0;
        while readable
            && arrived < READ_BATCH
            && outbox.queued_bytes() < WRITE_FIRST
            && let Some(arrival) = arrival(stream, connection)
        {
            arrived += 1;
            match arrival {
                Arrival::Message(text) => dispatcher.message(connection, &text),
                Arrival::Alive => {}
                Arrival::Gone => return None,
                Arrival::Closing => return Some(Goodbye::Answer),
                Arrival::Broken(goodbye) => return Some(goodbye),
            }
        }
        if arrived > 0 {
            heard = Instant::now();
        }
        let full = outbox.queued_bytes() >= WRITE_FIRST;
        if !write(stream, connection).await {
            return None;
        }
        if let Some(reason) = outbox.closed() {
            return Some(Goodbye::Ours(reason));
        }
        if full || arrived == READ_BATCH {
            continue;
        }
        readable = false;
        tokio::select! {
            () = stream.ready() => readable = true,
            () = outbox.filled() => {}
            _ = pings.tick(), if S::EXPECTS_PONGS => {
                if heard.elapsed() > SILENCE_LIMIT {
                    return None;
                }
                if connection.is_authorised() {
                    known = Instant::now();
                } else if known.elapsed() >= STRANGER_TIMEOUT {
                    return Some(Goodbye::Ours(CloseReason::Unauthorised));
                }
                within(WRITE_TIMEOUT, stream.ping()).await.ok()?;
            }
        }
    }
}

/// What has arrived. The message before it may have been a login or a logout.
fn arrival<S: MessageStream>(stream: &mut S, connection: &Connection) -> Option<Arrival> {
    stream.trust(connection.is_authorised());
    stream.take()
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
    use std::sync::Mutex;

    use rpc::{Access, ConnectionKind, Connections, Identity, Registry};
    use tokio::sync::mpsc;
    use tokio_util::task::TaskTracker;

    struct Channel {
        incoming: mpsc::Receiver<Bytes>,
        arrived: Option<Option<Bytes>>,
        outgoing: mpsc::Sender<Frame>,
        told: Arc<Mutex<Option<Goodbye>>>,
    }

    impl MessageStream for Channel {
        const EXPECTS_PONGS: bool = true;

        async fn ready(&mut self) {
            if self.arrived.is_none() {
                self.arrived = Some(self.incoming.recv().await);
            }
        }
        fn take(&mut self) -> Option<Arrival> {
            match self.arrived.take() {
                Some(message) => Some(message.map_or(Arrival::Gone, Arrival::Message)),
                None => self.incoming.try_recv().ok().map(Arrival::Message),
            }
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
        async fn close(&mut self, goodbye: Goodbye) {
            *self.told.lock().unwrap() = Some(goodbye);
        }
    }

    struct Fixture {
        to_server: mpsc::Sender<Bytes>,
        from_server: mpsc::Receiver<Frame>,
        connection: Arc<Connection>,
        told: Arc<Mutex<Option<Goodbye>>>,
        running: tokio::task::JoinHandle<()>,
    }

    fn start(capacity: usize) -> Fixture {
        start_as(Identity::Local, capacity)
    }

    fn start_as(identity: Identity, capacity: usize) -> Fixture {
        struct Service;
        let mut registry = Registry::default();
        registry.op("a.now").access(Access::View).answer(&Arc::new(Service), |_, _, (): ()| Ok("now"));
        let dispatcher = Arc::new(Dispatcher { operations: Arc::new(registry.build().unwrap()), tasks: TaskTracker::new() });
        let registered = Arc::new(Connections::default()).register(ConnectionKind::Websocket, identity, None);
        let connection = registered.connection.clone();
        let (to_server, incoming) = mpsc::channel(1000);
        let (outgoing, from_server) = mpsc::channel(capacity);
        let told = Arc::default();
        let stream = Channel { incoming, arrived: None, outgoing, told: Arc::clone(&told) };
        let running = tokio::spawn(async move {
            run(stream, &registered.connection, &dispatcher).await;
        });
        Fixture { to_server, from_server, connection, told, running }
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

    #[tokio::test(start_paused = true)]
    async fn strangers_have_limited_time_from_their_last_login_on() {
        let fixture = start_as(Identity::Stranger, 1000);
        let sign_of_life = async {
            loop {
                tokio::time::sleep(PING_INTERVAL).await;
                if fixture.to_server.send(call(0)).await.is_err() {
                    return;
                }
            }
        };
        let login = async {
            tokio::time::sleep(STRANGER_TIMEOUT / 2).await;
            fixture.connection.set_identity(Identity::Trusted);
            tokio::time::sleep(STRANGER_TIMEOUT * 2).await;
            fixture.connection.set_identity(Identity::Stranger);
        };
        let start = Instant::now();
        let (ended, (), ()) = tokio::join!(fixture.running, sign_of_life, login);
        ended.unwrap();
        assert_eq!(*fixture.told.lock().unwrap(), Some(Goodbye::Ours(CloseReason::Unauthorised)));
        assert!(start.elapsed() >= STRANGER_TIMEOUT * 7 / 2, "{:?}", start.elapsed());
        assert!(start.elapsed() <= STRANGER_TIMEOUT * 7 / 2 + PING_INTERVAL * 2, "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn what_was_queued_before_the_end_is_still_sent() {
        let mut fixture = start(10);
        fixture.connection.outbox.push(Frame::from_static(b"last"));
        fixture.connection.outbox.close(CloseReason::Shutdown);
        assert_eq!(&fixture.from_server.recv().await.unwrap()[..], b"last");
        fixture.running.await.unwrap();
        assert_eq!(*fixture.told.lock().unwrap(), Some(Goodbye::Ours(CloseReason::Shutdown)));
    }
}
