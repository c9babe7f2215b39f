//! What our own changes left on the disk, so that the observer does not tell of them again.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use parking_lot::Mutex;

use super::Place;
use crate::metadata::Stamp;

/// States that are remembered. The observer needs each for a moment only; the oldest half goes when there are more.
const MAX_REMEMBERED: usize = 4096;

/// The state of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing is there.
    Absent,
    /// A file in this state.
    File(Stamp),
    /// A folder; its time and size change with what is in it, so only its inode counts.
    Folder(u64),
}

impl Seen {
    /// What is there now, links followed.
    pub(crate) fn at(path: &Path) -> Self {
        path.metadata().map_or(Self::Absent, |metadata: Metadata| match metadata.is_dir() {
            true => Self::Folder(metadata.ino()),
            false => Self::File(Stamp::of(&metadata)),
        })
    }
}

#[derive(Default)]
struct State {
    places: HashMap<Place, (u64, Seen)>,
    clock: u64,
}

/// The states, by place.
#[derive(Default)]
pub(crate) struct Own(Mutex<State>);

impl Own {
    /// Remembers what a change of ours left. Called under the lock of all changes.
    pub(crate) fn left(&self, place: Place, seen: Seen) {
        let state = &mut *self.0.lock();
        state.clock += 1;
        if state.places.len() >= MAX_REMEMBERED {
            let old = state.clock.saturating_sub(MAX_REMEMBERED as u64 / 2);
            state.places.retain(|_, (clock, _)| *clock > old);
        }
        state.places.insert(place, (state.clock, seen));
    }

    /// True when a place is as we left it; else it is forgotten. Called under the lock of all changes.
    pub(crate) fn is_ours(&self, place: &Place, now: Seen) -> bool {
        let mut state = self.0.lock();
        let ours = state.places.get(place).is_some_and(|(_, seen)| *seen == now);
        if !ours {
            state.places.remove(place);
        }
        ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::RelPath;

    #[test]
    fn a_state_is_ours_until_somebody_changes_it() {
        let own = Own::default();
        let place = |text: &str| Place { root: "gcodes".into(), path: RelPath::parse(text).unwrap() };
        own.left(place("a"), Seen::Folder(1));
        assert!(own.is_ours(&place("a"), Seen::Folder(1)) && own.is_ours(&place("a"), Seen::Folder(1)));
        assert!(!own.is_ours(&place("a"), Seen::Absent));
        assert!(!own.is_ours(&place("a"), Seen::Folder(1)), "forgotten");
        for number in 0..MAX_REMEMBERED * 2 {
            own.left(place(&number.to_string()), Seen::Absent);
        }
        assert!(own.0.lock().places.len() <= MAX_REMEMBERED);
        assert!(own.is_ours(&place(&(MAX_REMEMBERED * 2 - 1).to_string()), Seen::Absent));
    }
}
