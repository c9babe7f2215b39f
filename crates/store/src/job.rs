//! A job: a closure on its way to a database thread, and the answer on its way back.
//!
//! Running and answering are two steps, because a writer may answer only after the commit that covers several jobs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::StoreError;

/// What a database thread sees of a job; the result type is hidden.
pub(crate) trait Job: Send {
    /// Runs the work and keeps its outcome for [`Job::answer`]. A panic becomes an error.
    fn run(&mut self, conn: &Connection) -> Result<(), StoreError>;

    /// Tells the caller. `fate` is what became of the transaction around the job: work that succeeded
    /// in a transaction that failed has failed.
    fn answer(self: Box<Self>, fate: Result<(), StoreError>);

    /// Whether nobody waits for the answer any more.
    fn abandoned(&self) -> bool;

    /// Whether it must run outside of a transaction, alone.
    fn is_exclusive(&self) -> bool;
}

struct Work<F, T> {
    is_exclusive: bool,
    closure: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

/// Packs `closure` as a job; the receiver gets its answer.
pub(crate) fn pack<T, F>(closure: F) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StoreError>>)
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
{
    pack_as(closure, false)
}

/// Like [`pack`], of a job that begins and ends its own transactions, or for which there may be none.
pub(crate) fn pack_exclusive<T, F>(closure: F) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StoreError>>)
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
{
    pack_as(closure, true)
}

fn pack_as<T, F>(closure: F, is_exclusive: bool) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StoreError>>)
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (Box::new(Work { is_exclusive, closure: Some(closure), outcome: None, reply }), answer)
}

impl<T, F> Job for Work<F, T>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, conn: &Connection) -> Result<(), StoreError> {
        let Some(closure) = self.closure.take() else {
            return Err(StoreError::Internal("a job ran twice".to_owned()));
        };
        // Unwind safety: what the closure changed in the database is rolled back, the closure itself is gone.
        let outcome = catch_unwind(AssertUnwindSafe(|| closure(conn))).unwrap_or_else(|payload| {
            let error = StoreError::panicked(&*payload);
            tracing::error!(error = %error, "a database job panicked");
            Err(error)
        });
        let verdict = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        self.outcome = Some(outcome);
        verdict
    }

    fn answer(self: Box<Self>, fate: Result<(), StoreError>) {
        let result = match (self.outcome, fate) {
            (Some(Ok(_)) | None, Err(error)) => Err(error),
            (Some(outcome), _) => outcome,
            (None, Ok(())) => Err(StoreError::Internal("a job was answered before it ran".to_owned())),
        };
        // The caller may have gone away; what was committed stays committed.
        let _ = self.reply.send(result);
    }

    fn abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }
}
