//! One connection to the firmware host: reads, dispatches, keeps the time limits, and carries out what the model decides.
//!
//! Everything that arrives passes through [`Session::handle`] in order. Nothing in here waits for anybody but the socket.

mod answers;
mod calls;

use std::sync::Arc;

use protocol::FwhostState;
use protocol::status::{StatusDiff, Text};
use runtime::beat;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::event::{HostEvent, JobWatch};
use crate::exchange::{Exchange, Purpose};
use crate::frame::{MAX_FRAME_BYTES, Splitter};
use crate::message::{self, Message, Rubbish};
use crate::model::{Effect, Input, Model, Phase};
use crate::quirks::Quirks;
use crate::shared::Shared;
use crate::socket::Change;
use crate::view::HostStatusView;

/// While nothing has to come from the host in time, the limits are looked at so many times less often.
const CALM: u32 = 4;

/// So many polls without running are a stall of our own process.
const STALL: u32 = 2 * CALM;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    /// The normal way: the host restarted or ended.
    #[error("closed by the host")]
    Closed,
    #[error("closed by the host in the middle of a message")]
    MidMessage,
    #[error("read failed: {0}")]
    Read(std::io::Error),
    #[error("write failed: {0}")]
    Write(std::io::Error),
    #[error("'{0}' was not answered in time")]
    Silent(Text),
    #[error("another host listens at the socket")]
    Replaced,
    #[error("it sent {0}")]
    Rubbish(&'static str),
    #[error("it sent a {0}")]
    TooLarge(#[from] crate::frame::TooLarge),
}

impl Lost {
    /// True when the next connection may well end the same way.
    pub(crate) fn is_fault(&self) -> bool {
        matches!(self, Self::MidMessage | Self::Silent(_) | Self::Rubbish(_) | Self::TooLarge(_))
    }

    /// For the log: one line per kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::MidMessage => "mid-message",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Silent(_) => "silent",
            Self::Replaced => "replaced",
            Self::Rubbish(kind) => kind,
            Self::TooLarge(_) => "too-large",
        }
    }
}

/// How a connection went.
pub(crate) struct Ending {
    pub(crate) lost: Lost,
    /// The start sequence was completed on it.
    pub(crate) settled: bool,
}

/// Parts of the start sequence that have not come yet.
#[derive(Debug, Default)]
struct Load {
    info: bool,
    endpoints: bool,
    objects: bool,
    /// First values of the objects that are to be followed.
    values: bool,
}

pub(crate) struct Session<'a> {
    shared: &'a Shared,
    quirks: &'a mut Quirks,
    model: Model,
    token: String,
    load: Load,
    settled: bool,
    /// The objects that are to be followed: one subscription, the standing one.
    standing: Arc<[Text]>,
    /// A subscription is under way. One at a time: the host answers them in its own order, and the last one to be answered stays.
    subscribing: bool,
    job: JobWatch,
    last_heard: Instant,
    info_asked: Instant,
    info_pending: bool,
    /// When the standing subscription is to be renewed, because the host may have fields that it did not have at first.
    second_look: Option<Instant>,
    last_kept: Instant,
}

impl<'a> Session<'a> {
    pub(crate) fn new(shared: &'a Shared, quirks: &'a mut Quirks) -> Self {
        let now = Instant::now();
        Self {
            shared,
            quirks,
            model: Model::new(),
            token: shared.renew_token(),
            load: Load::default(),
            settled: false,
            standing: Arc::default(),
            subscribing: false,
            job: JobWatch::default(),
            last_heard: now,
            info_asked: now,
            info_pending: false,
            second_look: None,
            last_kept: now,
        }
    }

    /// Talks to the host until the connection is lost. `changes` tells what happens to the socket file meanwhile.
    pub(crate) async fn serve<R, W>(mut self, reader: R, writer: W, changes: &mut mpsc::Receiver<Change>) -> Ending
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.step(Input::Connected);
        let drain = self.shared.options.timing.drain;
        let exchange = &self.shared.exchange;
        let lost = {
            let mut reading = std::pin::pin!(self.read(reader, changes));
            tokio::select! {
                lost = &mut reading => lost,
                // What the host said before it closed its end is still to be read: the answer to RESTART, for example.
                error = write(exchange, writer) => timeout(drain, &mut reading).await.unwrap_or(Lost::Write(error)),
            }
        };
        self.step(Input::Lost);
        Ending { lost, settled: self.settled }
    }

    async fn read<R: AsyncRead + Unpin>(&mut self, mut reader: R, changes: &mut mpsc::Receiver<Change>) -> Lost {
        let poll = self.shared.options.timing.poll;
        let (mut tick, mut calm_tick) = (beat::ticks(poll), beat::ticks(poll * CALM));
        let mut splitter = Splitter::new(MAX_FRAME_BYTES);
        loop {
            let outcome = tokio::select! {
                // Reading first: after a pause of our own process its answers must count before its silence does.
                biased;
                read = reader.read_buf(splitter.buffer()) => match read {
                    Ok(0) if splitter.unfinished() > 0 => Err(Lost::MidMessage),
                    Ok(0) => Err(Lost::Closed),
                    Ok(_) => self.received(&mut splitter),
                    Err(error) => Err(Lost::Read(error)),
                },
                Some(change) = changes.recv() => self.socket_changed(change),
                _ = calm_tick.tick() => self.keep(),
                _ = tick.tick(), if !self.is_calm() => self.keep(),
            };
            // A host that never stops talking must not stop the clock.
            let outcome = outcome.and_then(|()| if self.last_kept.elapsed() >= poll * 2 { self.keep() } else { Ok(()) });
            if let Err(lost) = outcome {
                return lost;
            }
        }
    }

    fn received(&mut self, splitter: &mut Splitter) -> Result<(), Lost> {
        self.last_heard = Instant::now();
        while let Some(frame) = splitter.next_frame()? {
            self.handle(frame)?;
        }
        Ok(())
    }

    fn handle(&mut self, frame: &[u8]) -> Result<(), Lost> {
        if frame.trim_ascii().is_empty() {
            return Ok(());
        }
        let repaired;
        let message = match message::parse(frame) {
            Err(Rubbish::NotJson) => {
                repaired = message::without_barewords(frame);
                repaired.as_deref().map_or(Err(Rubbish::NotJson), message::parse)
            }
            read => read,
        };
        match message {
            Ok(Message::Answer { id, outcome }) => self.answered(id, outcome),
            Ok(Message::Call { method, params }) => self.called(&method, params),
            // Nobody can be told which stream it belongs to: streams are for bridges, which have connections of their own.
            Ok(Message::Batch) => {
                self.quirks.warn("batch", &"ignored a batch of a streaming request; use the bridge websocket for those");
                Ok(())
            }
            Err(Rubbish::NotJson) => Err(Lost::Rubbish("a message that is not JSON")),
            Err(Rubbish::NotAMessage) => Err(Lost::Rubbish("a message that is neither answer nor call")),
        }
    }

    /// True while no answer has to come in time and nothing is about to be asked.
    fn is_calm(&self) -> bool {
        matches!(self.model.phase(), Phase::Settled(_)) && self.second_look.is_none() && !self.shared.exchange.has_deadline()
    }

    /// Time limits and the heart-beat.
    fn keep(&mut self) -> Result<(), Lost> {
        let now = Instant::now();
        let timing = &self.shared.options.timing;
        let gap = now.duration_since(std::mem::replace(&mut self.last_kept, now));
        if gap > timing.poll * STALL {
            // It was us who did not run (a paused machine, for example), so the silence proves nothing.
            self.shared.exchange.postpone(gap);
        }
        if let Some(endpoint) = self.shared.exchange.overdue(now) {
            return Err(Lost::Silent(endpoint));
        }
        for (endpoint, seconds) in self.shared.exchange.long_pending(now, timing.pending_log) {
            tracing::info!(fwhost.endpoint = &*endpoint, pending_s = seconds, "request to the firmware host is still pending");
        }
        let quiet = now.duration_since(self.last_heard) >= timing.heartbeat;
        let unsettled = !matches!(self.model.phase(), Phase::Settled(_)) && now.duration_since(self.info_asked) >= timing.heartbeat;
        if quiet || unsettled {
            self.ask_info();
        }
        if self.second_look.is_some_and(|due| due <= now) {
            self.second_look = None;
            self.follow(self.standing.clone());
        }
        Ok(())
    }

    fn socket_changed(&mut self, change: Change) -> Result<(), Lost> {
        if change == Change::Replaced {
            return Err(Lost::Replaced);
        }
        // Perhaps only its permissions: a host that is alive answers soon.
        self.ask_info();
        self.shared.exchange.hasten("info", self.shared.options.timing.probe_timeout);
        Ok(())
    }

    fn step(&mut self, input: Input) {
        let effects = self.model.step(input);
        let state = self.model.state();
        if self.shared.view.load().state != state {
            self.shared.update_view(|view| view.state = state);
        }
        for effect in effects {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Greet => self.greet(),
            Effect::Identified => {
                self.shared.exchange.open();
                self.shared.emit(&HostEvent::Connected);
            }
            Effect::AskInfo => self.ask_info(),
            Effect::Follow => self.follow([Text::from("webhooks")].into()),
            Effect::Load(host) => self.load(host),
            Effect::Started(host) => self.started(host),
            Effect::Ready => self.shared.emit(&HostEvent::Ready),
            Effect::Shutdown => {
                tracing::warn!(reason = %self.shared.view.load().state_message, "the firmware host has shut down");
                self.shared.emit(&HostEvent::Shutdown);
            }
            Effect::Teardown => self.tear_down(),
            Effect::Disconnected => self.shared.emit(&HostEvent::Disconnected),
        }
    }

    /// All first requests in one go; they work in every state of the host and survive its start.
    fn greet(&mut self) {
        self.shared.exchange.greet();
        let options = &self.shared.options;
        let client = serde_json::json!({ "client_info": { "program": options.program, "version": options.version } }).to_string();
        self.ask_info_with(Some(&client));
        let output = serde_json::json!({ "response_template": self.shared.template("output") }).to_string();
        self.ask("gcode/subscribe_output", Some(&output), Purpose::Plain);
        for name in self.shared.remote.names() {
            self.shared.offer_remote_method(&name);
        }
        self.ask("list_endpoints", None, Purpose::Endpoints);
    }

    fn load(&mut self, host: FwhostState) {
        self.load = Load { info: true, endpoints: true, objects: true, values: true };
        self.second_look = None;
        self.ask_info();
        self.ask("list_endpoints", None, Purpose::Endpoints);
        self.ask("objects/list", None, Purpose::Objects);
        tracing::debug!(fwhost.state = host.as_str(), "firmware host has started");
    }

    fn started(&mut self, host: FwhostState) {
        self.settled = true;
        if host == FwhostState::Ready {
            self.second_look = Some(Instant::now() + self.shared.options.timing.second_look);
            tracing::info!("firmware host ready");
        } else {
            tracing::warn!(fwhost.state = host.as_str(), "firmware host not ready: {}", self.shared.view.load().state_message.trim());
        }
        self.shared.emit(&HostEvent::Started(host));
    }

    fn tear_down(&mut self) {
        self.shared.update_view(|view| *view = HostStatusView { endpoints: view.endpoints.clone(), ..HostStatusView::default() });
        self.shared.exchange.close();
        *self.shared.last_job.lock() = self.shared.print_stats();
        self.shared.mirror.lock().clear();
    }

    fn ask_info(&mut self) {
        if !self.info_pending {
            self.ask_info_with(None);
        }
    }

    fn ask_info_with(&mut self, params: Option<&str>) {
        self.info_pending = true;
        self.info_asked = Instant::now();
        self.shared.exchange.ask_own("info", params, Purpose::Info, self.shared.options.timing.info_timeout);
    }

    /// Makes `objects` the standing subscription, as soon as the one before was answered.
    fn follow(&mut self, objects: Arc<[Text]>) {
        self.standing = objects;
        if !self.subscribing {
            self.subscribing = true;
            let all: serde_json::Map<String, serde_json::Value> =
                self.standing.iter().map(|name| (name.to_string(), serde_json::Value::Null)).collect();
            let params = serde_json::json!({ "objects": all, "response_template": self.shared.template("status") }).to_string();
            self.ask("objects/subscribe", Some(&params), Purpose::Standing(self.standing.clone()));
        }
    }

    fn ask(&self, endpoint: &str, params: Option<&str>, purpose: Purpose) {
        self.shared.exchange.ask_own(endpoint, params, purpose, self.shared.options.timing.subscribe_timeout);
    }

    /// Derives what follows from a change of the cache.
    fn changed(&mut self, diff: Option<&StatusDiff>) {
        let Some(diff) = diff else { return };
        let has = |name: &str| diff.objects.iter().any(|object| &*object.name == name);
        if has("webhooks") {
            self.host_state_changed();
        }
        // After the host's state: a shutdown explains what happens to the job.
        if has("print_stats")
            && let Some(change) = self.shared.print_stats().and_then(|stats| self.job.observe(stats))
        {
            self.shared.emit(&HostEvent::PrintStats(change));
        }
    }

    fn host_state_changed(&mut self) {
        let (state, text) = {
            let mirror = self.shared.mirror.lock();
            (mirror.field("webhooks", "state"), mirror.field("webhooks", "state_message"))
        };
        if let Some(text) = text.as_deref().and_then(message::decode) {
            self.shared.update_view(|view| view.state_message = text.as_ref().into());
        }
        if let Some(state) = state.as_deref().and_then(message::decode) {
            self.step(Input::Host(FwhostState::from_host(&state)));
        }
    }
}

impl Drop for Session<'_> {
    /// The task was stopped in the middle: whoever waits must not wait for ever. No event, because nothing happened to the host.
    fn drop(&mut self) {
        if self.model.phase() != Phase::Away {
            self.tear_down();
        }
    }
}

/// Writes requests until that fails.
async fn write<W: AsyncWrite + Unpin>(exchange: &Exchange, mut writer: W) -> std::io::Error {
    loop {
        let frame = exchange.next_write().await;
        if let Err(error) = writer.write_all(&frame).await {
            return error;
        }
        if let Err(error) = writer.flush().await {
            return error;
        }
        exchange.written();
    }
}

#[cfg(test)]
mod tests;
