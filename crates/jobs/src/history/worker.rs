//! The task that follows the printer and writes the records. It alone writes records in progress, one step after the other; a step that cannot
//! be written is tried again before the next one.

use std::sync::Arc;
use std::time::Duration;

use fwhost::{PrintState, PrintStats};
use protocol::jobs::{HistoryAction, HistoryChange, JobStatus};
use protocol::{Event, FwhostState};
use runtime::{LogThrottle, StopToken};
use store::rusqlite::Connection;
use store::{ErrorKind, StoreError};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

use super::entry;
use super::input::{Input, process_of};
use super::reconcile::{AFTER_SHUTDOWN, Absence, Step, reconcile, unseen_end};
use super::record::{JobId, Mark, Numbers, Record, wire_id};
use super::service::History;
use super::table::{self, Finish, NewJob};
use crate::clock;
use crate::state::{JobEvent, events};

/// How often the counters of a running job are kept: what a power cut can cost at most. Not more often, because memory cards wear.
pub const SAVE_INTERVAL: Duration = Duration::from_secs(10);

/// After our start a job that was under way waits this long for its firmware host; then its record is closed. Should the host come back with it
/// later, the record goes on.
const HOST_GRACE: Duration = Duration::from_secs(60);

/// How often a database that cannot be written is told of.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Pause before a step that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// The job that is under way.
#[derive(Debug, Clone)]
struct Current {
    id: JobId,
    filename: String,
    start_time: f64,
    numbers: Numbers,
    paused: bool,
}

impl Current {
    /// Takes newer numbers over. Those of another file, and counters that were reset, say nothing about this job.
    fn learn(&mut self, stats: &PrintStats) {
        if *stats.filename == *self.filename && stats.total_duration >= self.numbers.total_duration {
            self.numbers = Numbers::of(stats);
        }
    }
}

pub(crate) struct Worker {
    history: Arc<History>,
    current: Option<Current>,
    /// What was last seen and is kept.
    mark: Option<Mark>,
    /// An earlier run of the service left this record open, and the printer was not seen since.
    orphan: Option<JobId>,
    log: LogThrottle<&'static str>,
    stop: StopToken,
}

/// Follows the printer until `stop`.
pub(crate) async fn run(history: Arc<History>, stop: StopToken) {
    // Held for the life of the task: a task that is started again after a fault goes on with what waits here.
    let mut inputs = history.inbox.lock().await;
    let Some(mut worker) = Worker::begin(history.clone(), stop.clone()).await else { return };
    let grace = Instant::now() + HOST_GRACE;
    let mut save = interval(SAVE_INTERVAL);
    save.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            received = inputs.recv() => {
                let Some(received) = received else { break };
                worker.handle(received).await;
                if history.take_overflow() {
                    worker.look_again().await;
                }
            }
            _ = save.tick(), if worker.current.as_ref().is_some_and(|job| !job.paused) => worker.save(false).await,
            _ = timeout_at(grace, std::future::pending::<()>()), if worker.orphan.is_some() => worker.give_up().await,
        }
    }
    worker.save(true).await;
}

impl Worker {
    /// Reads what an earlier run left.
    async fn begin(history: Arc<History>, stop: StopToken) -> Option<Self> {
        let mut worker = Self { history, current: None, mark: None, orphan: None, log: LogThrottle::new(LOG_INTERVAL), stop };
        let read = |conn: &Connection| Ok((table::mark(conn)?, table::open(conn)?));
        let (mark, open) = worker.written(read).await?;
        let of_mark = mark.as_ref().and_then(|mark| mark.job);
        worker.orphan = open.iter().copied().find(|id| Some(*id) == of_mark);
        for id in open.into_iter().filter(|id| Some(*id) != of_mark) {
            // Cannot be, as record and mark are written together; but a record must never be stuck.
            worker.finish(id, |numbers| Finish { numbers, ..ending(JobStatus::Interrupted, None) }).await;
        }
        worker.mark = mark;
        if worker.history.host.status().state == FwhostState::Ready {
            worker.look_again().await;
        }
        Some(worker)
    }

    /// Looks at the printer as if for the first time: events may have been missed.
    async fn look_again(&mut self) {
        if let Some(now) = self.history.host.print_stats() {
            let host = process_of(&self.history.host);
            self.sight(&now, host).await;
        }
    }

    async fn handle(&mut self, input: Input) {
        match input {
            Input::Sight { now, host } => self.sight(&now, host).await,
            Input::Change { before, now } => self.change(&before, &now).await,
            Input::Settled(FwhostState::Ready) => self.give_up().await,
            Input::Settled(FwhostState::Shutdown) | Input::Shutdown(None) => self.host_ended(JobStatus::FwhostShutdown, None).await,
            Input::Settled(_) => self.host_ended(JobStatus::FwhostDisconnect, None).await,
            Input::Shutdown(last) => self.host_ended(JobStatus::FwhostShutdown, last).await,
            Input::Gone(last) => self.host_ended(JobStatus::FwhostDisconnect, last).await,
        }
    }

    async fn change(&mut self, before: &PrintStats, now: &PrintStats) {
        let told = events(before, now);
        if let Some(job) = self.current.as_mut() {
            job.learn(before);
            if !told.contains(&JobEvent::Started) {
                job.learn(now);
            }
        }
        for event in told {
            match event {
                JobEvent::Started => {
                    if let Some(mark) = self.mark.as_mut().filter(|_| self.current.is_some()) {
                        // Its run is over, whatever else is seen of the same file.
                        mark.state = PrintState::Cancelled;
                    }
                    self.close(JobStatus::Cancelled, Some(clock::now())).await;
                    self.record(now, clock::now() - short(now.total_duration)).await;
                }
                JobEvent::Paused | JobEvent::Resumed => self.pause(event == JobEvent::Paused, now).await,
                JobEvent::Complete => self.ended(JobStatus::Completed, now).await,
                JobEvent::Error => self.ended(JobStatus::Error, now).await,
                JobEvent::Cancelled | JobEvent::Standby => self.ended(JobStatus::Cancelled, now).await,
            }
            self.history.tell(event);
        }
    }

    async fn pause(&mut self, paused: bool, now: &PrintStats) {
        if let Some(job) = self.current.as_mut() {
            job.paused = paused;
            self.history.auxiliary.pause(paused);
            self.see(now.state);
            self.save(false).await;
        }
    }

    async fn ended(&mut self, status: JobStatus, now: &PrintStats) {
        if let Some(job) = self.current.as_mut() {
            job.learn(now);
        }
        if let Some(mark) = self.mark.as_mut() {
            mark.state = now.state;
            mark.filename = now.filename.to_string();
            mark.numbers = Numbers::of(now);
        }
        if self.current.is_none() {
            // Its record was closed before, by a shutdown: what the host says of it afterwards is no other run.
            self.keep_mark().await;
        }
        self.close(status, Some(clock::now())).await;
    }

    async fn host_ended(&mut self, status: JobStatus, last: Option<PrintStats>) {
        if let (Some(job), Some(last)) = (self.current.as_mut(), last) {
            job.learn(&last);
        }
        if status == JobStatus::FwhostShutdown {
            self.end_run();
        }
        if let Some(id) = self.orphan.take() {
            let last_seen = self.mark.as_ref().map(|mark| mark.seen_at);
            self.finish(id, |numbers| Finish { numbers, ..ending(status, last_seen) }).await;
        }
        self.close(status, Some(clock::now())).await;
    }

    /// True when a shutdown of the host ended the run of the mark.
    async fn was_shut_down(&mut self) -> bool {
        let Some(id) = self.mark.as_ref().filter(|mark| mark.state == AFTER_SHUTDOWN).and_then(|mark| mark.job) else { return false };
        let record = self.written(move |conn| table::get(conn, id)).await.flatten();
        record.is_some_and(|record| record.status == JobStatus::FwhostShutdown)
    }

    async fn keep_mark(&mut self) {
        if let Some(mark) = self.mark.clone() {
            self.written(move |conn| table::set_mark(conn, &mark)).await;
        }
    }

    /// Notes that the run is over: a host that is shut down goes on showing it.
    fn end_run(&mut self) {
        let numbers = self.current.as_ref().map(|job| job.numbers);
        if let Some(mark) = self.mark.as_mut().filter(|_| numbers.is_some() || self.orphan.is_some()) {
            mark.state = AFTER_SHUTDOWN;
            mark.numbers = numbers.unwrap_or(mark.numbers);
        }
    }

    /// Nobody can tell any more how the job of an earlier run ended.
    async fn give_up(&mut self) {
        let Some(id) = self.orphan.take() else { return };
        let Some(Step::Close { status, end_time, .. }) = self.mark.as_ref().map(|mark| unseen_end(mark, None)) else { return };
        self.finish(id, |numbers| Finish { numbers, ..ending(status, end_time) }).await;
    }

    /// The first look after a time without sight.
    async fn sight(&mut self, now: &PrintStats, host: Option<u64>) {
        let open = self.orphan.is_some() || self.current.is_some();
        let was_shut_down = !open && self.was_shut_down().await;
        let steps = reconcile(self.mark.as_ref(), open, now, Absence { now: clock::now(), host, was_shut_down });
        tracing::debug!(?steps, state = now.state.as_str(), "first look at the printer");
        if steps == [Step::Over] {
            return;
        }
        let recorded = steps.iter().any(|step| matches!(step, Step::Record { .. }));
        for step in &steps {
            self.take(step, now).await;
        }
        // What was seen counts from now on, also when there was nothing to write.
        let at = clock::now();
        let kept = self.mark.take();
        let (job, start_time) = match &kept {
            Some(mark) if steps.is_empty() || recorded || self.current.is_some() => (mark.job, mark.start_time),
            _ => (None, at),
        };
        let numbers = self.current.as_ref().map_or(Numbers::of(now), |job| job.numbers);
        let mark =
            Mark { job, filename: now.filename.to_string(), state: now.state, numbers, start_time, seen_at: at, host, orderly: false };
        self.mark = Some(mark);
        self.keep_mark().await;
    }

    async fn take(&mut self, step: &Step, now: &PrintStats) {
        match step {
            Step::Continue => self.go_on(now).await,
            Step::Reopen => self.reopen(now).await,
            Step::Close { status, end_time, numbers } => {
                let Some(id) = self.orphan.take().or(self.current.as_ref().map(|job| job.id)) else { return };
                let (status, end_time, numbers) = (*status, *end_time, *numbers);
                self.current = None;
                let merged = move |kept: Numbers| match numbers {
                    Some(new) if new.total_duration >= kept.total_duration => new,
                    _ => kept,
                };
                self.finish(id, |kept| Finish { numbers: merged(kept), ..ending(status, end_time) }).await;
            }
            Step::Record { start_time } => self.record(now, *start_time).await,
            Step::Over => {}
            Step::Ended { status } => self.close(*status, Some(clock::now())).await,
        }
    }

    /// The record of an earlier run, or of an earlier connection, goes on.
    async fn go_on(&mut self, now: &PrintStats) {
        let paused = now.state == PrintState::Paused;
        if let Some(job) = self.current.as_mut() {
            job.learn(now);
            job.paused = paused;
            return;
        }
        let (Some(id), Some(mark)) = (self.orphan.take(), self.mark.clone()) else { return };
        if let Some(kept) = self.written(move |conn| table::gathered(conn, id)).await {
            self.history.auxiliary.restore(&kept, paused);
        }
        tracing::info!(job = wire_id(id), file = mark.filename, "the job goes on");
        self.current = Some(Current { id, filename: mark.filename, start_time: mark.start_time, numbers: Numbers::of(now), paused });
    }

    async fn reopen(&mut self, now: &PrintStats) {
        let Some(id) = self.mark.as_ref().and_then(|mark| mark.job) else { return };
        let Some(kept) = self.written(move |conn| table::gathered(conn, id)).await else { return };
        self.history.auxiliary.restore(&kept, now.state == PrintState::Paused);
        let contributions = self.history.auxiliary.contributions();
        match self.written(move |conn| table::reopen(conn, id, &contributions)).await {
            Some(true) => self.orphan = Some(id),
            // Its record was deleted meanwhile.
            Some(false) if now.state.is_active() => self.record(now, clock::now() - now.total_duration).await,
            _ => {}
        }
    }

    /// A job began: its record is written, then everybody is told.
    async fn record(&mut self, now: &PrintStats, start_time: f64) {
        self.history.auxiliary.at_boundary();
        self.history.auxiliary.start();
        let filename = now.filename.to_string();
        let numbers = Numbers::of(now);
        let job = NewJob {
            filename: filename.clone(),
            user: self.history.user_of(&filename),
            start_time,
            numbers,
            metadata: self.history.files.metadata(filename.clone()).await.unwrap_or_else(|| "{}".to_owned()),
            auxiliary: self.history.auxiliary.entries(),
            gathered: self.history.auxiliary.keep(),
        };
        let host = self.mark.as_ref().and_then(|mark| mark.host).or_else(|| process_of(&self.history.host));
        let mut mark = Mark {
            job: None,
            filename: filename.clone(),
            // A run that is over already has its end written next; until then it counts as under way.
            state: if now.state.is_active() { now.state } else { PrintState::Printing },
            numbers,
            start_time,
            seen_at: clock::now(),
            host,
            orderly: false,
        };
        let kept = mark.clone();
        let written = self
            .written(move |conn| {
                let id = table::start(conn, &job)?;
                table::set_mark(conn, &Mark { job: Some(id), ..kept.clone() })?;
                Ok((id, table::get(conn, id)?))
            })
            .await;
        let Some((id, record)) = written else { return };
        tracing::info!(job = wire_id(id), file = filename, "a job has begun");
        mark.job = Some(id);
        self.mark = Some(mark);
        self.current = Some(Current { id, filename: filename.clone(), start_time, numbers, paused: now.state == PrintState::Paused });
        self.history.files.printed(filename, start_time, wire_id(id)).await;
        self.announce(HistoryAction::Added, record).await;
    }

    /// The current job is over; nothing happens when there is none.
    async fn close(&mut self, status: JobStatus, end_time: Option<f64>) {
        let Some(job) = self.current.take() else { return };
        if let Some(mark) = self.mark.as_mut().filter(|mark| mark.state.is_active()) {
            mark.numbers = job.numbers;
        }
        let user = self.history.user_of(&job.filename);
        self.history.auxiliary.at_boundary();
        let finish = Finish {
            user,
            metadata: self.history.files.metadata(job.filename.clone()).await,
            auxiliary: Some(self.history.auxiliary.entries()),
            gathered: Some(self.history.auxiliary.keep()),
            contributions: self.history.auxiliary.contributions(),
            numbers: job.numbers,
            ..ending(status, end_time)
        };
        self.history.auxiliary.end();
        let start_time = job.start_time;
        if self.finish(job.id, move |_| finish.clone()).await {
            self.history.files.printed(job.filename, start_time, wire_id(job.id)).await;
        }
    }

    /// Ends a record; `how` gets the numbers that are kept of it.
    async fn finish(&mut self, id: JobId, how: impl Fn(Numbers) -> Finish) -> bool {
        let Some(Some(record)) = self.written(move |conn| table::get(conn, id)).await else { return false };
        let finish = how(record.numbers);
        if let Some(mark) = self.mark.as_mut() {
            mark.seen_at = if finish.end_time.is_some() { clock::now() } else { mark.seen_at };
        }
        let mark = self.mark.clone();
        let written = self
            .written(move |conn| {
                if let Some(mark) = &mark {
                    table::set_mark(conn, mark)?;
                }
                table::finish(conn, id, &finish)
            })
            .await;
        match written {
            Some(Some(record)) => {
                tracing::info!(job = wire_id(id), file = record.filename, status = record.status.as_str(), "a job has ended");
                self.announce(HistoryAction::Finished, Some(record)).await;
                true
            }
            _ => false,
        }
    }

    /// Keeps the counters as they are now.
    async fn save(&mut self, at_the_end: bool) {
        let host = &self.history.host;
        let stats = host.print_stats().or_else(|| host.last_print_stats().filter(|_| at_the_end));
        let Some(job) = self.current.as_mut() else { return };
        if let Some(stats) = stats {
            job.learn(&stats);
        }
        let (id, numbers) = (job.id, job.numbers);
        let Some(mark) = self.mark.as_mut() else { return };
        (mark.numbers, mark.seen_at, mark.orderly) = (numbers, clock::now(), at_the_end);
        let (mark, gathered) = (mark.clone(), self.history.auxiliary.keep());
        self.written(move |conn| {
            table::save(conn, id, numbers, &gathered)?;
            table::set_mark(conn, &mark)
        })
        .await;
    }

    fn see(&mut self, state: PrintState) {
        if let Some(mark) = self.mark.as_mut() {
            mark.state = state;
        }
    }

    async fn announce(&self, action: HistoryAction, record: Option<Record>) {
        if let Some(record) = record {
            let job = entry::entry(&*self.history.files, record).await;
            self.history.connections.emit(&Event::HistoryChanged(Box::new(HistoryChange { action, job })));
        }
    }

    /// Writes; a database that is full or busy is waited for, since a record must not be lost. None when it cannot be written at all.
    async fn written<T: Send + 'static>(
        &mut self,
        work: impl Fn(&Connection) -> Result<T, StoreError> + Clone + Send + 'static,
    ) -> Option<T> {
        loop {
            let work = work.clone();
            let error = match self.history.write(move |conn| work(conn)).await {
                Ok(value) => return Some(value),
                Err(error) => error,
            };
            if error.kind() != ErrorKind::Unavailable || error == StoreError::Closed || self.stop.is_cancelled() {
                tracing::error!(%error, "the job history could not be written");
                return None;
            }
            if self.log.allow("unavailable") {
                tracing::warn!(%error, "the job history cannot be written now; trying again");
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = sleep(RETRY) => {}
            }
        }
    }
}

/// An end of which nothing else is known.
fn ending(status: JobStatus, end_time: Option<f64>) -> Finish {
    Finish {
        status,
        end_time,
        numbers: Numbers::default(),
        user: None,
        metadata: None,
        auxiliary: None,
        gathered: None,
        contributions: Vec::new(),
    }
}

/// Seconds by which a start was seen late; a simulated printer may count faster than we do.
fn short(seconds: f64) -> f64 {
    if seconds < 1.0 { seconds } else { 0.0 }
}
