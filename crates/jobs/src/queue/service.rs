//! The handle that operations and other components hold.

use std::sync::{Arc, OnceLock};

use fwhost::{FwHost, HostEvent};
use protocol::ApiError;
use protocol::jobs::{QueueState, QueuedJob};
use rpc::Connections;
use runtime::Supervisor;
use schemars::JsonSchema;
use serde::Serialize;
use store::Store;
use tokio::sync::{mpsc, oneshot};

use super::model::{Input, MAX_QUEUED_JOBS, Waiting};
use super::options::JobQueueOptions;
use super::worker;
use crate::clock;
use crate::history::History;
use crate::ports::{FileStamp, JobFiles, PrintStarter};

/// Requests and events that wait for the queue's task.
const MAX_WAITING: usize = 256;

/// Copies of each file that one request may add.
const MAX_COPIES: u32 = 1000;

/// Names by which gcode macros call.
const REMOTE_METHODS: [&str; 3] = ["pause_job_queue", "start_job_queue", "confirm_bed_clear"];

/// Result of every queue operation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueueStatus {
    /// Jobs in the order in which they will be printed.
    pub queued_jobs: Vec<QueuedJob>,
    /// What the queue does.
    pub queue_state: QueueState,
    /// The next job waits for a clear bed. Only there with `confirm_bed_clear`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits_bed_clear: Option<bool>,
}

/// What the queue's task is sent.
pub(crate) enum Message {
    /// Somebody asks for something; answered when it is done and kept.
    Ask { input: Option<Input>, reply: oneshot::Sender<Result<QueueStatus, ApiError>> },
    /// Something happened.
    Event(Input),
}

/// The job queue.
pub struct Queue {
    pub(crate) host: FwHost,
    pub(crate) store: Store,
    pub(crate) files: Arc<dyn JobFiles>,
    pub(crate) starter: Arc<dyn PrintStarter>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) options: JobQueueOptions,
    pub(crate) inbox: tokio::sync::Mutex<mpsc::Receiver<Message>>,
    on_added: OnceLock<Box<dyn Fn() + Send + Sync>>,
    messages: mpsc::Sender<Message>,
}

impl Queue {
    /// A queue that is kept in `store` and follows the jobs of `history`; [`Queue::start_task`] lets it work.
    #[must_use]
    pub fn new(options: JobQueueOptions, history: &History, starter: Arc<dyn PrintStarter>) -> Arc<Self> {
        let (messages, inbox) = mpsc::channel(MAX_WAITING);
        let tell = move |messages: &mpsc::Sender<Message>, input: Input| {
            if messages.try_send(Message::Event(input)).is_err() {
                tracing::error!("the job queue does not keep up and misses an event");
            }
        };
        let sender = messages.clone();
        history.on_event(move |event| tell(&sender, Input::Job(event)));
        let sender = messages.clone();
        history.host.on_event(move |event| match event {
            HostEvent::Ready => tell(&sender, Input::HostReady),
            HostEvent::Shutdown | HostEvent::Disconnected => tell(&sender, Input::HostShutdown),
            _ => {}
        });
        Arc::new(Self {
            host: history.host.clone(),
            store: history.store.clone(),
            files: history.files.clone(),
            starter,
            connections: history.connections.clone(),
            options,
            inbox: tokio::sync::Mutex::new(inbox),
            on_added: OnceLock::new(),
            messages,
        })
    }

    /// Begins to work.
    pub fn start_task(self: &Arc<Self>, supervisor: &Supervisor) {
        let queue = self.clone();
        supervisor.spawn("job queue", move |stop| worker::run(queue.clone(), stop));
        for name in REMOTE_METHODS {
            let (queue, tasks) = (self.clone(), supervisor.tracker().clone());
            let called = self.host.register_remote_method(name, move |_| {
                let queue = queue.clone();
                tasks.spawn(async move { queue.called(name).await });
            });
            if let Err(error) = called {
                tracing::warn!(%error, name, "macros cannot call the job queue");
            }
        }
    }

    /// Calls `listener` whenever jobs were added. The first listener stays the only one.
    pub fn on_added(&self, listener: impl Fn() + Send + Sync + 'static) {
        // A second one cannot be: the server is built once.
        let _ = self.on_added.set(Box::new(listener));
    }

    pub(crate) fn added(&self) {
        if let Some(listener) = self.on_added.get() {
            listener();
        }
    }

    /// Lets go of everything that would keep the server's parts alive.
    pub fn close(&self) {
        REMOTE_METHODS.iter().for_each(|name| self.host.unregister_remote_method(name));
    }

    async fn called(&self, name: &str) {
        let done = match name {
            "pause_job_queue" => self.ask(Some(Input::Pause)).await,
            "start_job_queue" => self.start().await,
            _ => self.ask(Some(Input::BedClear)).await,
        };
        if let Err(error) = done {
            tracing::warn!(%error, name, "a macro called the job queue in vain");
        }
    }

    /// The queue as it is.
    pub(crate) async fn status(&self) -> Result<QueueStatus, ApiError> {
        self.ask(None).await
    }

    /// Lets the queue go on.
    pub(crate) async fn start(&self) -> Result<QueueStatus, ApiError> {
        let printer_free = self.starter.is_free().await;
        self.ask(Some(Input::Start { printer_free })).await
    }

    /// Adds jobs at the end; every file must be there.
    ///
    /// # Errors
    /// 400 when a file does not exist or the queue would be too long; then nothing is added.
    pub async fn add(&self, filenames: Vec<String>, copies: u32, reset: bool, user: Option<&str>) -> Result<(), ApiError> {
        self.enqueue(filenames, copies, reset, user).await.map(drop)
    }

    pub(crate) async fn enqueue(
        &self,
        filenames: Vec<String>,
        copies: u32,
        reset: bool,
        user: Option<&str>,
    ) -> Result<QueueStatus, ApiError> {
        if !(1..=MAX_COPIES).contains(&copies) {
            return Err(ApiError::argument(format!("Invalid value for argument [copies]: {copies}, expected 1 to {MAX_COPIES}")));
        }
        if filenames.len().saturating_mul(copies as usize) > MAX_QUEUED_JOBS {
            return Err(too_long());
        }
        let names: Vec<String> = filenames.iter().map(|name| name.strip_prefix('/').unwrap_or(name).to_owned()).collect();
        let stamps = names.iter().map(|name| FileStamp { filename: name.clone(), ..FileStamp::default() }).collect();
        let exist = self.files.unchanged(stamps).await.unchanged;
        if let Some((missing, _)) = filenames.iter().zip(exist.iter().chain(std::iter::repeat(&false))).find(|(_, exists)| !**exists) {
            return Err(ApiError::bad_request(format!("G-Code File {missing:.200} does not exist")));
        }
        let time_added = clock::now();
        let user = user.map(str::to_owned);
        let jobs = names.iter().flat_map(|name| std::iter::repeat_n(name, copies as usize));
        let jobs = jobs.map(|filename| Waiting { id: new_id(), filename: filename.clone(), user: user.clone(), time_added }).collect();
        self.ask(Some(Input::Add { jobs, reset })).await
    }

    pub(crate) async fn ask(&self, input: Option<Input>) -> Result<QueueStatus, ApiError> {
        let (reply, answer) = oneshot::channel();
        let stopped = || ApiError::unavailable("The job queue is not running");
        self.messages.send(Message::Ask { input, reply }).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

pub(crate) fn too_long() -> ApiError {
    ApiError::bad_request(format!("The queue holds at most {MAX_QUEUED_JOBS} jobs"))
}

/// 16 upper-case hexadecimal digits.
fn new_id() -> String {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    format!("{:016X}", high ^ low)
}
