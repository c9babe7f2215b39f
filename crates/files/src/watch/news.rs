//! Whether anything may have changed since somebody looked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts everything that may have changed a gcode file, our own changes and those that the kernel tells of.
#[derive(Debug, Default)]
pub(crate) struct News {
    count: AtomicU64,
    watched: AtomicBool,
}

impl News {
    /// Something may have changed.
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// The kernel tells of every change from now on, or does not any more.
    pub(super) fn set_watched(&self, watched: bool) {
        if self.watched.swap(watched, Ordering::SeqCst) != watched {
            self.add();
        }
    }

    /// To be noted before a look; none when changes are not seen.
    pub(crate) fn mark(&self) -> Option<u64> {
        self.watched.load(Ordering::SeqCst).then(|| self.count.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_outdated_by_every_change_and_when_watching_ends() {
        let news = News::default();
        assert_eq!(news.mark(), None);
        news.set_watched(true);
        let first = news.mark();
        assert!(first.is_some());
        news.set_watched(true);
        assert_eq!(news.mark(), first);
        news.add();
        assert_ne!(news.mark(), first);
        news.set_watched(false);
        assert_eq!(news.mark(), None);
        news.set_watched(true);
        assert_ne!(news.mark(), first);
    }
}
