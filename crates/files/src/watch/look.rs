//! Looking at everything from time to time, where nothing tells of changes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use super::Place;
use super::thread::refresh;
use crate::list;
use crate::service::Files;

/// What the roots were at the last look, and when the next one is due.
pub(super) struct Look {
    before: Option<Vec<(Place, u64)>>,
    due: Instant,
    period: Duration,
}

impl Look {
    /// The first look, which finds nothing new, is due now.
    pub(super) fn begin(files: &Files) -> Self {
        Self { before: None, due: Instant::now(), period: files.settings.observing.look_period }
    }

    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Looks at the roots when it is time to, and tells of those that are not what they were.
    pub(super) fn look(&mut self, files: &Files, roots: &[Place]) {
        if self.due > Instant::now() {
            return;
        }
        let now: Vec<_> = roots.iter().map(|root| (root.clone(), fingerprint(files, root))).collect();
        if let Some(before) = &self.before {
            now.iter().filter(|root| !before.contains(root)).for_each(|(root, _)| refresh(files, root));
        }
        self.before = Some(now);
        self.due = Instant::now() + self.period;
    }
}

pub(super) fn fingerprint(files: &Files, root: &Place) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files.library.root(&root.root).iter().flat_map(|root| list::list(&files.library, root)) {
        (file.path, file.size, file.modified.to_bits()).hash(&mut hasher);
    }
    hasher.finish()
}
