//! The task that owns the queue: it steps the model, keeps the queue on disk, tells clients, and carries out loads.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use protocol::jobs::{QueueAction, QueueChange, QueuedJob};
use protocol::{ApiError, Event};
use runtime::StopToken;
use tokio::time::{Instant, sleep, sleep_until};

use super::model::{Effect, Input, MAX_QUEUED_JOBS, Model, Waiting};
use super::service::{Message, Queue, QueueStatus, too_long};
use super::table::{self, Places};
use crate::clock;
use crate::history::to_api;
use crate::ports::FileStamp;

/// Notifications leave this long after the change, so that they follow the answer to the request that made it.
const AFTER_ANSWER: Duration = Duration::from_millis(50);

/// Something under way whose end is an input.
type Step = Pin<Box<dyn Future<Output = Input> + Send>>;

struct Worker {
    queue: Arc<Queue>,
    model: Model,
    places: Places,
    /// Delay or transition gcode; forgotten by a pause.
    load: Option<Step>,
    /// A start that was sent; its end is always waited for.
    launch: Option<Step>,
    /// In order of their time.
    telling: VecDeque<(Instant, Event)>,
}

/// Works until `stop`.
pub(crate) async fn run(queue: Arc<Queue>, stop: StopToken) {
    let mut inbox = queue.inbox.lock().await;
    let (jobs, places) = match queue.store.read(table::load).await {
        Ok(kept) => kept,
        Err(error) => {
            tracing::error!(%error, "the job queue could not be read");
            (VecDeque::new(), Places::new())
        }
    };
    let model = Model::new(queue.options.rules(), jobs);
    let mut worker = Worker { queue: queue.clone(), model, places, load: None, launch: None, telling: VecDeque::new() };
    loop {
        let input = tokio::select! {
            () = stop.cancelled() => return,
            received = inbox.recv() => match received {
                Some(Message::Ask { input, reply }) => {
                    // The caller may have gone away; what was done stays done.
                    let _ = reply.send(worker.asked(input).await);
                    continue;
                }
                Some(Message::Event(input)) => input,
                None => return,
            },
            input = ended(&mut worker.load) => {
                worker.load = None;
                input
            }
            input = ended(&mut worker.launch) => {
                worker.launch = None;
                input
            }
            () = due(worker.telling.front()) => {
                if let Some((_, event)) = worker.telling.pop_front() {
                    queue.connections.emit(&event);
                }
                continue;
            }
        };
        if let Err(error) = worker.step(input).await {
            tracing::warn!(%error, "the job queue could not be kept");
        }
    }
}

async fn ended(step: &mut Option<Step>) -> Input {
    match step {
        Some(step) => step.await,
        None => pending().await,
    }
}

async fn due(next: Option<&(Instant, Event)>) {
    match next {
        Some((at, _)) => sleep_until(*at).await,
        None => pending().await,
    }
}

impl Worker {
    async fn asked(&mut self, input: Option<Input>) -> Result<QueueStatus, ApiError> {
        match &input {
            Some(Input::Jump { id }) if !self.model.jobs.iter().any(|job| job.id == *id) => {
                return Err(ApiError::bad_request(format!("Invalid job id: {id:.64}")));
            }
            Some(Input::Add { jobs, reset }) => {
                let before = if *reset { 0 } else { self.model.jobs.len() };
                if before + jobs.len() > MAX_QUEUED_JOBS {
                    return Err(too_long());
                }
            }
            _ => {}
        }
        if let Some(input) = input {
            let before = (self.model.clone(), self.places.clone());
            if let Err(error) = self.step(input).await {
                (self.model, self.places) = before;
                return Err(error);
            }
        }
        let awaits_bed_clear = self.queue.options.confirm_bed_clear.then_some(self.model.awaits_bed);
        Ok(QueueStatus { queued_jobs: self.shown(), queue_state: self.model.state, awaits_bed_clear })
    }

    /// Takes a step and carries out what follows. An error means that the queue could not be kept; then nothing else of it happened.
    async fn step(&mut self, input: Input) -> Result<(), ApiError> {
        let mut failed = Ok(());
        let is_request = !matches!(input, Input::Started { .. });
        for effect in self.model.step(input) {
            match effect {
                Effect::Keep => {
                    let changes = table::changes(&mut self.places, &self.model.jobs);
                    let written = self.queue.store.write(move |conn| table::write(conn, &changes)).await.map_err(to_api);
                    match written {
                        Err(error) if is_request => return Err(error),
                        // The print runs: it leaves the queue all the same.
                        other => failed = other,
                    }
                }
                Effect::Tell(QueueAction::StateChanged) => self.tell(QueueAction::StateChanged, None),
                Effect::Tell(action) => {
                    if action == QueueAction::JobsAdded {
                        self.queue.added();
                    }
                    self.tell(action, Some(self.shown()));
                }
                // Clients take the array whatever the action is.
                Effect::TellOrder => self.tell(QueueAction::StateChanged, Some(self.shown())),
                Effect::Forget => self.load = None,
                Effect::Wait(delay) => self.load = Some(self.wait(delay)),
                Effect::Transition => self.load = Some(self.transition()),
                Effect::Launch(job) => self.launch = Some(self.start(job)),
            }
        }
        failed
    }

    fn wait(&self, delay: Duration) -> Step {
        let queue = self.queue.clone();
        Box::pin(async move {
            sleep(delay).await;
            Input::Due { printer_free: queue.starter.is_free().await }
        })
    }

    fn transition(&self) -> Step {
        let queue = self.queue.clone();
        Box::pin(async move {
            let script = queue.options.job_transition_gcode.trim();
            let result = if script.is_empty() { Ok(()) } else { queue.host.gcode(script, false).await };
            if let Err(error) = &result {
                tracing::warn!(%error, "the transition gcode of the job queue failed; the queue is paused");
            }
            Input::Transitioned { ok: result.is_ok() }
        })
    }

    fn start(&self, job: Waiting) -> Step {
        let queue = self.queue.clone();
        Box::pin(async move {
            let there = queue.files.unchanged(vec![FileStamp { filename: job.filename.clone(), ..FileStamp::default() }]).await;
            let result = match there.unchanged.first() {
                Some(true) => queue.starter.start(job.filename.clone(), job.user).await,
                _ => Err(ApiError::bad_request("the file does not exist any more")),
            };
            if let Err(error) = &result {
                tracing::warn!(%error, file = job.filename, "the next job could not be started; the queue is paused");
            }
            Input::Started { ok: result.is_ok() }
        })
    }

    fn tell(&mut self, action: QueueAction, updated_queue: Option<Vec<QueuedJob>>) {
        let change = QueueChange { action, updated_queue, queue_state: self.model.state };
        self.telling.push_back((Instant::now() + AFTER_ANSWER, Event::JobQueueChanged(change)));
    }

    fn shown(&self) -> Vec<QueuedJob> {
        let now = clock::now();
        let shown = |job: &Waiting| QueuedJob {
            filename: job.filename.clone(),
            job_id: job.id.clone(),
            time_added: job.time_added,
            time_in_queue: (now - job.time_added).max(0.0),
        };
        self.model.jobs.iter().map(shown).collect()
    }
}
