//! The task that keeps the connection.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, interval_at, sleep, sleep_until, timeout};

use super::calm::{Calm, Haul};
use super::client::{Link, Publication, Shared, Ticket};
use super::codec::{self, KEEP_ALIVE};
use super::dial::{self, Stream, Welcome};
use super::reader::{Arrived, Reader};
use super::session::{Effect, Session};
use super::socket::Rest;
use super::{Message, MqttError, MqttOptions, Qos};
use crate::chance;

/// Time to reach the MQTT broker and to be welcomed.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time to say goodbye to the MQTT broker.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Time without any progress of writing after which the connection counts as lost.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes that wait to be written before the queue has to wait.
const WRITE_FIRST: usize = 256 * 1024;

/// Filters in one packet.
const FILTERS_PER_PACKET: usize = 64;

/// A connection that lasted so long had been all right.
const LASTED: Duration = Duration::from_secs(10);

/// The task behind [`super::Mqtt`].
#[must_use = "nothing happens before it runs"]
pub struct Worker {
    options: MqttOptions,
    client_id: String,
    shared: Arc<Shared>,
    queue: mpsc::Receiver<Publication>,
}

/// Why a connection ended.
enum End {
    /// We were told to stop, or nobody holds the handle any more.
    Stopped,
    /// For this reason.
    Lost(String),
}

impl Worker {
    pub(super) fn new(options: MqttOptions, shared: Arc<Shared>, queue: mpsc::Receiver<Publication>) -> Self {
        let client_id = if options.client_id.is_empty() { dial::made_up_client_id() } else { options.client_id.clone() };
        Self { options, client_id, shared, queue }
    }

    /// Keeps the connection until `stop` is ready or nobody holds the handle any more; says goodbye then.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut failures = 0;
        loop {
            let dialled = tokio::select! {
                dialled = timeout(CONNECT_TIMEOUT, dial::dial(&self.options, &self.client_id)) => dialled,
                () = &mut stop => return self.stopped(),
            };
            let reason = match dialled {
                Ok(Ok(welcome)) => {
                    let start = Instant::now();
                    match self.serve(welcome, &mut stop).await {
                        End::Stopped => return self.stopped(),
                        End::Lost(reason) => {
                            failures = if start.elapsed() > LASTED { 0 } else { failures };
                            reason
                        }
                    }
                }
                Ok(Err(reason)) => reason,
                Err(_) => format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()),
            };
            failures += 1;
            self.offline(&reason);
            let Some(pause) = self.options.retry.pause_after(failures) else { return };
            tokio::select! {
                () = sleep(pause + chance::below(pause / 4)) => {}
                () = &mut stop => return,
            }
        }
    }

    /// Serves one connection until its end.
    async fn serve(&mut self, welcome: Welcome, stop: &mut (impl Future<Output = ()> + Unpin)) -> End {
        let period = Duration::from_secs(welcome.limits.keep_alive.filter(|seconds| *seconds > 0).unwrap_or(KEEP_ALIVE).into()) / 2;
        let mut talk = Talk::new(&self.options, welcome);
        if let Some(birth) = self.options.birth.clone() {
            talk.session.publish(birth, None);
        }
        // What slipped in since the last connection was meant for that time.
        self.refuse_queued();
        self.shared.listeners.lock().begin();
        self.subscribe(&mut talk);
        tracing::info!(broker = self.options.address, "connected to the MQTT broker");
        self.shared.link.send_replace(Link::Online);
        let end = self.pump(&mut talk, period, stop).await;
        if matches!(end, End::Stopped) {
            self.say_goodbye(&mut talk).await;
        }
        talk.fail_the_rest();
        end
    }

    async fn pump(&mut self, talk: &mut Talk, period: Duration, stop: &mut (impl Future<Output = ()> + Unpin)) -> End {
        let mut pings = interval_at(Instant::now() + period, period);
        let (mut heard, mut rest_end) = (Instant::now(), Instant::now());
        // The broker may have sent more than its welcome.
        if let Err(reason) = self.arrived(talk) {
            return End::Lost(reason);
        }
        loop {
            if talk.session.awaits_nothing()
                && let Some(end) = talk.calm.pause(Instant::now())
                && (self.options.may_pause)()
            {
                talk.rest.begin();
                rest_end = end;
            }
            let has_room = talk.session.takes_more() && talk.session.out.len() < WRITE_FIRST;
            tokio::select! {
                biased;
                // What is rare comes first, so that a flood of messages cannot keep it waiting; a subscription precedes what is published after it.
                () = &mut *stop => return End::Stopped,
                () = self.shared.changed.notified() => self.subscribe(talk),
                _ = pings.tick() => {
                    if heard.elapsed() > period * 2 {
                        return End::Lost("the broker fell silent".to_owned());
                    }
                    if !talk.session.out.is_empty() && talk.progress.elapsed() > WRITE_TIMEOUT {
                        return End::Lost("the broker takes nothing any more".to_owned());
                    }
                    codec::put_ping(&mut talk.session.out);
                }
                written = talk.output.write_buf(&mut talk.session.out), if !talk.session.out.is_empty() => {
                    if talk.wrote(written).await.is_err() {
                        return End::Lost("the connection broke while writing".to_owned());
                    }
                }
                () = sleep_until(rest_end), if talk.rest.is_resting() => talk.rest.end(),
                read = talk.reader.read_from(&mut talk.input), if !talk.rest.is_resting() => {
                    let arrived = match read {
                        Ok(Arrived { bytes: 0, .. }) => return End::Lost("the broker closed the connection".to_owned()),
                        Ok(arrived) => arrived,
                        Err(error) => return End::Lost(error.to_string()),
                    };
                    heard = Instant::now();
                    match self.arrived(talk) {
                        Ok(haul) => talk.calm.heard(arrived.bytes, haul, arrived.is_all, heard),
                        Err(reason) => return End::Lost(reason),
                    }
                    if !arrived.is_all {
                        // Listeners must have a chance to take what fills their queues.
                        yield_now().await;
                    }
                    if has_room && let Ok(publication) = self.queue.try_recv() {
                        self.subscribe(talk);
                        self.publish(talk, publication);
                    }
                }
                publication = self.queue.recv(), if has_room => {
                    let Some(publication) = publication else { return End::Stopped };
                    self.publish(talk, publication);
                }
            }
        }
    }

    fn publish(&self, talk: &mut Talk, publication: Publication) {
        let Publication { message, done } = publication;
        self.shared.queued_bytes.fetch_sub(message.payload.len(), Ordering::Relaxed);
        talk.calm.hurry(Instant::now());
        match talk.session.publish(message, done) {
            Some((ticket, Ok(()))) => talk.written.push(ticket),
            Some((ticket, fault)) => finish(ticket, fault),
            None => {}
        }
    }

    fn subscribe(&self, talk: &mut Talk) {
        let changes = self.shared.listeners.lock().changes();
        if !changes.subscribe.is_empty() {
            // Messages that the broker has kept follow.
            talk.calm.hurry(Instant::now());
        }
        changes.subscribe.chunks(FILTERS_PER_PACKET).for_each(|filters| talk.session.subscribe(filters));
        changes.unsubscribe.chunks(FILTERS_PER_PACKET).for_each(|filters| talk.session.unsubscribe(filters));
    }

    fn arrived(&self, talk: &mut Talk) -> Result<Haul, String> {
        let broken = |fault: codec::Malformed| format!("the broker sent {}", fault.0);
        let mut haul = Haul::Nothing;
        while let Some(packet) = talk.reader.next().map_err(broken)? {
            match talk.session.take(packet).map_err(broken)? {
                Some(Effect::Deliver(message)) => haul = haul.max(self.deliver(&message)),
                Some(Effect::Finished(ticket, result)) => finish(ticket, result),
                Some(Effect::NotSubscribed(filters)) => tracing::warn!(?filters, "the MQTT broker refused subscriptions"),
                Some(Effect::Ended(reason)) => return Err(format!("the broker ended the connection (reason {reason})")),
                None => {}
            }
        }
        Ok(haul)
    }

    fn deliver(&self, message: &Message) -> Haul {
        let audience = self.shared.listeners.lock().interested(message);
        audience.callbacks.iter().for_each(|callback| callback(message));
        match audience.patience {
            None => Haul::Nothing,
            Some(false) => Haul::Urgent,
            // Brokers send only so many before they are acknowledged: to pause after them would pile up the others there.
            Some(true) if message.qos > Qos::AtMostOnce => Haul::Nothing,
            Some(true) => Haul::Patient,
        }
    }

    /// Sends what waits, the last words and the orderly end.
    async fn say_goodbye(&mut self, talk: &mut Talk) {
        while let Ok(publication) = self.queue.try_recv() {
            self.publish(talk, publication);
        }
        if let Some(will) = self.options.will.clone() {
            // Nobody waits for an acknowledgement any more.
            talk.session.publish(Message { qos: Qos::AtMostOnce, ..will }, None);
        }
        codec::put_disconnect(&mut talk.session.out);
        let goodbye = async {
            talk.output.write_all_buf(&mut talk.session.out).await?;
            talk.output.shutdown().await
        };
        if timeout(STOP_TIMEOUT, goodbye).await.is_ok_and(|said| said.is_ok()) {
            talk.all_written();
        }
    }

    /// The end, which is nobody's fault.
    fn stopped(&mut self) {
        self.shared.link.send_replace(Link::Offline("the server stops".to_owned()));
        self.refuse_queued();
    }

    /// From now on nothing is taken. A new reason is worth a line in the log.
    fn offline(&mut self, reason: &str) {
        let link = Link::Offline(reason.to_owned());
        if self.shared.link.send_replace(link.clone()) != link {
            tracing::warn!(broker = self.options.address, reason, "not connected to the MQTT broker");
        }
        self.refuse_queued();
    }

    fn refuse_queued(&mut self) {
        while let Ok(publication) = self.queue.try_recv() {
            self.shared.queued_bytes.fetch_sub(publication.message.payload.len(), Ordering::Relaxed);
            finish(publication.done, Err(MqttError::Offline));
        }
    }
}

/// The parts of one connection.
struct Talk {
    session: Session<Ticket>,
    reader: Reader,
    input: ReadHalf<Box<dyn Stream>>,
    output: WriteHalf<Box<dyn Stream>>,
    rest: Rest,
    calm: Calm,
    /// Publications that are done as soon as they are written.
    written: Vec<Ticket>,
    /// When something could be written last.
    progress: Instant,
}

impl Talk {
    fn new(options: &MqttOptions, welcome: Welcome) -> Self {
        let Welcome { stream, rest, reader, limits } = welcome;
        let (input, output) = tokio::io::split(stream);
        let (session, calm) = (Session::new(options.version, limits), Calm::new(options.patience));
        Self { session, reader, input, output, rest, calm, written: Vec::new(), progress: Instant::now() }
    }

    /// Some bytes of what waits have been written.
    async fn wrote(&mut self, written: io::Result<usize>) -> io::Result<()> {
        if written? == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.progress = Instant::now();
        if self.session.out.is_empty() {
            // TLS keeps what is not flushed.
            timeout(WRITE_TIMEOUT, self.output.flush()).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
            self.all_written();
        }
        Ok(())
    }

    fn all_written(&mut self) {
        self.written.drain(..).for_each(|ticket| finish(ticket, Ok(())));
    }

    fn fail_the_rest(self) {
        self.written.into_iter().chain(self.session.unfinished()).for_each(|ticket| finish(ticket, Err(MqttError::Lost)));
    }
}

fn finish(ticket: Ticket, result: Result<(), MqttError>) {
    if let Some(waiting) = ticket {
        // Whoever asked may have given up waiting.
        let _ = waiting.send(result);
    }
}
