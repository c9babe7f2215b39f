//! The list that was read last, kept until something is written: every client asks for the same one when it starts, and between two prints
//! nothing changes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use protocol::jobs::JobEntry;

use super::table::Filter;
use crate::ports::FileStamp;

/// Jobs beyond which a list is not kept.
const MAX_KEPT_JOBS: usize = 200;

/// Stored text, bytes, beyond which a list is not kept.
const MAX_KEPT_BYTES: usize = 256 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Recent {
    writes: Arc<AtomicUsize>,
    kept: Mutex<Option<Kept>>,
}

/// A list.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    /// Writes before it was read.
    pub(crate) writes: usize,
    pub(crate) filter: Filter,
    pub(crate) entries: Arc<[JobEntry]>,
    /// The files of the entries as they were printed.
    pub(crate) files: Arc<[FileStamp]>,
    /// Of the last look at the files.
    pub(crate) mark: Option<u64>,
}

impl Kept {
    /// Short enough: somebody asked for no more than a page, and it is not heavy.
    fn is_short(&self) -> bool {
        let text = |job: &JobEntry| job.metadata.get().len() + job.auxiliary_data.get().len() + job.filename.len();
        self.entries.len() <= MAX_KEPT_JOBS && self.entries.iter().map(text).sum::<usize>() <= MAX_KEPT_BYTES
    }
}

/// Counts a write when it is dropped. It travels with the result of the write, which is dropped after the commit whoever still waits for it.
#[derive(Debug)]
pub(crate) struct Write(Arc<AtomicUsize>);

impl Drop for Write {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Recent {
    /// A write begins.
    pub(crate) fn write(&self) -> Write {
        Write(self.writes.clone())
    }

    /// To be noted before a list is read.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// The list of this filter, when nothing was written since it was read.
    pub(crate) fn get(&self, filter: &Filter) -> Option<Kept> {
        let kept = self.kept.lock();
        kept.as_ref().filter(|kept| kept.writes == self.writes() && kept.filter == *filter).cloned()
    }

    /// Keeps a list, unless it is long or was not meant to be short.
    pub(crate) fn keep(&self, list: Kept) {
        if list.filter.limit.is_some() && list.is_short() {
            *self.kept.lock() = Some(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(limit: u64) -> Filter {
        Filter { newest_first: true, limit: Some(limit), ..Filter::default() }
    }

    fn list(writes: usize) -> Kept {
        Kept { writes, filter: newest(50), entries: Arc::new([]), files: Arc::new([]), mark: None }
    }

    #[test]
    fn a_list_is_kept_until_a_write_is_over() {
        let recent = Recent::default();
        recent.keep(list(recent.writes()));
        assert!(recent.get(&newest(50)).is_some());
        assert!(recent.get(&newest(20)).is_none(), "another list");
        let write = recent.write();
        assert!(recent.get(&newest(50)).is_some(), "not yet acknowledged");
        drop(write);
        assert!(recent.get(&newest(50)).is_none());
    }

    #[test]
    fn a_list_that_was_read_before_a_write_is_not_taken_for_one_after_it() {
        let recent = Recent::default();
        let before = recent.writes();
        drop(recent.write());
        recent.keep(list(before));
        assert!(recent.get(&newest(50)).is_none());
    }
}
