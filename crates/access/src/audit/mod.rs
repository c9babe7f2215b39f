//! The audit log: a record of every call that changes something, kept in the store, read by admins. docs/access.md.
//!
//! Calls only put a row into a queue in memory; a task of its own writes what has gathered, so that neither requests nor the disk suffer.

mod api;
mod quota;
mod table;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rpc::{Audit, Deed, Identity};
use store::{Store, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use quota::Quota;
pub use table::SCHEMA;
use table::{Filter, Row, Table};

/// Time in which entries gather before they are written together: a power cut costs at most these.
pub const GATHER: Duration = Duration::from_secs(1);

/// Entries that may wait to be written; more are counted instead.
pub const MAX_WAITING: usize = 4096;

/// The audit log.
pub struct AuditLog {
    table: Table,
    waiting: Mutex<Waiting>,
    filled: Notify,
    /// One writer at a time, so that entries keep their order.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    rows: Vec<Row>,
    /// Entries that found no room.
    lost: u64,
    strangers: Quota,
}

impl AuditLog {
    /// A log in `store`, which was opened with [`SCHEMA`].
    #[must_use]
    pub fn new(store: Store) -> Arc<Self> {
        Arc::new(Self {
            table: Table::new(store),
            waiting: Mutex::default(),
            filled: Notify::new(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    /// Writes until `stop`, and then what is left.
    pub async fn run(&self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = self.filled.notified() => {}
                () = stop.cancelled() => break,
            }
            tokio::select! {
                () = tokio::time::sleep(GATHER) => {}
                () = stop.cancelled() => break,
            }
            self.flush().await;
        }
        self.flush().await;
    }

    /// Entries from the newest on; what waits is written first.
    async fn entries(&self, filter: Filter) -> Result<Vec<(i64, Row)>, StoreError> {
        self.flush().await;
        self.table.read(filter).await
    }

    /// Writes what waits; also for the end of the server, when the last calls are done.
    pub async fn flush(&self) {
        let _one = self.writing.lock().await;
        let (rows, lost) = {
            let mut waiting = self.waiting.lock();
            (std::mem::take(&mut waiting.rows), std::mem::take(&mut waiting.lost))
        };
        if lost > 0 {
            tracing::warn!(lost, "the audit log could not take down everything: more happened at once than it can keep");
        }
        if rows.is_empty() {
            return;
        }
        let count = rows.len();
        if let Err(error) = self.table.append(rows, now()).await {
            tracing::error!(%error, count, "entries of the audit log could not be written");
        }
    }
}

impl Audit for AuditLog {
    fn note(&self, deed: Deed) {
        let is_stranger = deed.identity == Identity::Stranger;
        let now = now();
        let mut waiting = self.waiting.lock();
        // Whatever strangers do, they must not fill the disk, nor crowd out what others did.
        if is_stranger && !waiting.strangers.take(now) {
            return;
        }
        if waiting.rows.len() >= MAX_WAITING {
            waiting.lost += 1;
            return;
        }
        waiting.rows.push(Row::of(deed, now));
        drop(waiting);
        self.filled.notify_one();
    }
}

/// Unix seconds.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Arc<AuditLog> {
        AuditLog::new(Store::in_memory(&[SCHEMA]).unwrap())
    }

    fn deed(identity: Identity, method: &str) -> Deed {
        Deed { identity, address: None, way: "http", method: method.into(), arguments: "{}".into(), status: 200, error: None }
    }

    async fn methods(log: &AuditLog) -> Vec<String> {
        log.entries(Filter::default()).await.unwrap().into_iter().map(|(_, row)| row.method).collect()
    }

    #[tokio::test]
    async fn entries_come_newest_first_and_also_those_that_wait() {
        let log = log();
        log.note(deed(Identity::Trusted, "a"));
        log.flush().await;
        log.note(deed(Identity::Local, "b"));
        assert_eq!(methods(&log).await, ["b", "a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_gathers_is_written_together_and_the_rest_at_the_end() {
        let log = log();
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let (log, stop) = (log.clone(), stop.clone());
            async move { log.run(stop).await }
        });
        log.note(deed(Identity::Trusted, "a"));
        while !log.waiting.lock().rows.is_empty() {
            tokio::time::sleep(GATHER).await;
        }
        log.note(deed(Identity::Trusted, "b"));
        stop.cancel();
        running.await.unwrap();
        assert_eq!(log.waiting.lock().rows.len(), 0);
        assert_eq!(methods(&log).await, ["b", "a"]);
    }

    #[tokio::test]
    async fn the_queue_is_bounded_and_strangers_get_little_of_it() {
        let log = log();
        for _ in 0..MAX_WAITING {
            log.note(deed(Identity::Stranger, "access.login"));
        }
        let of_strangers = log.waiting.lock().rows.len();
        assert!(of_strangers <= 100, "{of_strangers}");
        for _ in 0..=MAX_WAITING {
            log.note(deed(Identity::Trusted, "a"));
        }
        let (rows, lost) = {
            let waiting = log.waiting.lock();
            (waiting.rows.len(), waiting.lost)
        };
        assert_eq!((rows, lost), (MAX_WAITING, of_strangers as u64 + 1));
        log.flush().await;
        assert_eq!(log.waiting.lock().lost, 0);
    }
}
