//! Counters of the store, for metrics and for the tests of group commit.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// What the store has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Write jobs answered, failed ones included.
    pub writes: u64,
    /// Transactions committed. Fewer than `writes` when jobs came in bursts.
    pub commits: u64,
    /// Transactions lost (disk full, I/O error, locked).
    pub lost: u64,
    /// Read jobs run by the readers.
    pub reads: u64,
    /// Most jobs ever decided by one transaction.
    pub largest_batch: u64,
}

/// The live form of [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    writes: AtomicU64,
    commits: AtomicU64,
    lost: AtomicU64,
    reads: AtomicU64,
    largest_batch: AtomicU64,
}

impl Counters {
    /// Counts a transaction that decided about `jobs` jobs.
    pub(crate) fn transaction(&self, jobs: usize, committed: bool) {
        let jobs = u64::try_from(jobs).unwrap_or(u64::MAX);
        let verdict = if committed { &self.commits } else { &self.lost };
        verdict.fetch_add(1, SeqCst);
        self.writes.fetch_add(jobs, Relaxed);
        self.largest_batch.fetch_max(jobs, Relaxed);
    }

    /// Transactions committed. Counted before anybody is told of them.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(SeqCst)
    }

    /// Counts a read job.
    pub(crate) fn read(&self) {
        self.reads.fetch_add(1, Relaxed);
    }

    /// A copy of the present numbers.
    pub(crate) fn snapshot(&self) -> Stats {
        Stats {
            writes: self.writes.load(Relaxed),
            commits: self.commits.load(Relaxed),
            lost: self.lost.load(Relaxed),
            reads: self.reads.load(Relaxed),
            largest_batch: self.largest_batch.load(Relaxed),
        }
    }
}
