//! The task behind one strip: it alone talks to the controller, one thing after the other.

use std::sync::Arc;
use std::time::Duration;

use outbound::Client;
use parking_lot::Mutex;
use protocol::led::LedStatus;
use protocol::{ApiError, ErrorKind, Event};
use rpc::Connections;
use runtime::StopToken;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::link::Link;
use super::model::{Action, Change, Command, Model};
use super::options::LedOptions;

/// Changes that wait for one LED strip.
pub const MAX_WAITING: usize = 32;

/// First pause before an LED strip that could not be reached is tried again; it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// Longest pause before an LED strip that could not be reached is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A change may be several commands.
const COMMANDS: u32 = 2;

type Reply = oneshot::Sender<Result<LedStatus, ApiError>>;

pub(super) struct Message {
    change: Change,
    reply: Option<Reply>,
}

/// A strip.
pub(super) struct Strip {
    pub(super) name: String,
    pub(super) options: LedOptions,
    client: Client,
    connections: Arc<Connections>,
    shown: Mutex<LedStatus>,
    sender: mpsc::Sender<Message>,
    inbox: AsyncMutex<mpsc::Receiver<Message>>,
}

impl Strip {
    pub(super) fn new(name: String, options: LedOptions, client: Client, connections: Arc<Connections>) -> Self {
        let (sender, inbox) = mpsc::channel(MAX_WAITING);
        let shown = Mutex::new(Model::new(&options).status(&name, None));
        Self { name, options, client, connections, shown, sender, inbox: AsyncMutex::new(inbox) }
    }

    pub(super) fn status(&self) -> LedStatus {
        self.shown.lock().clone()
    }

    /// Carries a change out.
    ///
    /// # Errors
    /// 400 when the strip does not do it, 429 when too much waits, 504 when it is not its turn in time.
    pub(super) async fn change(&self, change: Change) -> Result<LedStatus, ApiError> {
        let (reply, answer) = oneshot::channel();
        self.tell(Message { change, reply: Some(reply) })?;
        match timeout(Link::patience(&self.options) * COMMANDS, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(ApiError::unavailable(format!("LED strip '{}': the server stops", self.name))),
            Err(_) => Err(ApiError::new(ErrorKind::Timeout, format!("LED strip '{}' is still busy with earlier changes", self.name))),
        }
    }

    /// The same for callers that wait for nothing.
    pub(super) fn note(&self, change: Change) -> Result<(), ApiError> {
        self.tell(Message { change, reply: None })
    }

    fn tell(&self, message: Message) -> Result<(), ApiError> {
        let full = |_| ApiError::new(ErrorKind::TooMany, format!("LED strip '{}': {MAX_WAITING} changes wait already", self.name));
        self.sender.try_send(message).map_err(full)
    }

    fn show(&self, model: &Model, error: Option<String>) -> LedStatus {
        let status = model.status(&self.name, error);
        let before = std::mem::replace(&mut *self.shown.lock(), status.clone());
        if before != status {
            self.connections.emit(&Event::LedChanged(status.clone()));
        }
        status
    }
}

/// Works until `stop`.
pub(super) async fn run(strip: Arc<Strip>, stop: StopToken) {
    let mut inbox = strip.inbox.lock().await;
    let mut worker = Worker {
        link: Link::new(&strip.options, &strip.client),
        model: Model::new(&strip.options),
        strip: &strip,
        greets_at: Some(Instant::now()),
    };
    let work = async {
        let mut pause = FIRST_PAUSE;
        loop {
            let greets_at = worker.greets_at;
            tokio::select! {
                message = inbox.recv() => {
                    let Some(Message { change, reply }) = message else { return };
                    let outcome = worker.carry_out(&change).await;
                    if let Some(reply) = reply {
                        let _ = reply.send(outcome);
                    }
                }
                () = sleep_until(greets_at.unwrap_or_else(Instant::now)), if greets_at.is_some() => {
                    worker.greet(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    };
    tokio::select! {
        () = work => {}
        () = stop.cancelled() => {}
    }
}

struct Worker<'s> {
    strip: &'s Arc<Strip>,
    link: Link,
    model: Model,
    /// When the initial state is tried, as long as nothing has reached the strip.
    greets_at: Option<Instant>,
}

impl Worker<'_> {
    /// Says hello and sets the initial state, or does so again after a pause.
    async fn greet(&mut self, pause: Duration) {
        let outcome = match self.link.send(&Command::greeting()).await {
            Ok(()) => self.carry_out(&Change::switch(Action::On)).await.map(drop),
            Err(error) => Err(self.failed(&error)),
        };
        if outcome.is_err() {
            self.greets_at = Some(Instant::now() + pause);
        }
    }

    async fn carry_out(&mut self, change: &Change) -> Result<LedStatus, ApiError> {
        let mut next = self.model.clone();
        let commands = next.apply(change);
        for command in &commands {
            if let Err(error) = self.link.send(command).await {
                return Err(self.failed(&error));
            }
        }
        self.model = next;
        if commands.is_empty() {
            // Nothing was learned about the strip: what was wrong with it still is.
            return Ok(self.strip.show(&self.model, self.strip.status().error));
        }
        // It is there and shows what somebody wants: the initial state is past.
        self.greets_at = None;
        Ok(self.strip.show(&self.model, None))
    }

    fn failed(&mut self, error: &str) -> ApiError {
        self.model.doubt();
        let before = self.strip.status().error;
        if before.as_deref() != Some(error) {
            tracing::warn!(strip = self.strip.name, error, "LED strip failed");
        }
        self.strip.show(&self.model, Some(error.to_owned()));
        ApiError::bad_request(format!("LED strip '{}': {error}", self.strip.name))
    }
}
