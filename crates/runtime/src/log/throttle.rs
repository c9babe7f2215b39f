//! A limit on how often a kind of line is logged.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Kinds that are told apart at one time; all further ones share one place. A stranger who can make up kinds (by the
/// address he comes from, say) gains neither memory nor lines.
pub const MAX_KINDS: usize = 64;

/// Lets one line per kind and interval through.
///
/// ```
/// use std::time::Duration;
/// use runtime::LogThrottle;
///
/// let throttle = LogThrottle::new(Duration::from_secs(10));
/// assert!(throttle.allow("bad frame"));
/// assert!(!throttle.allow("bad frame"));
/// assert!(throttle.allow("no route"));
/// ```
#[derive(Debug)]
pub struct LogThrottle<K> {
    interval: Duration,
    kinds: Mutex<Kinds<K>>,
}

#[derive(Debug)]
struct Kinds<K> {
    known: HashMap<K, Kind>,
    others: Option<Kind>,
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    admitted: Instant,
    suppressed: u64,
}

impl<K: Eq + Hash> LogThrottle<K> {
    /// A throttle that lets one line per kind through in each `interval`.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, kinds: Mutex::new(Kinds { known: HashMap::new(), others: None }) }
    }

    /// Whether a line of this kind may be logged now.
    pub fn allow(&self, kind: K) -> bool {
        self.admit(kind).is_some()
    }

    /// Like [`LogThrottle::allow`]; a line that may be logged comes with the number of lines of its kind that were
    /// suppressed since the last one, worth a field of the line.
    pub fn admit(&self, kind: K) -> Option<u64> {
        self.admit_at(kind, Instant::now())
    }

    fn admit_at(&self, kind: K, now: Instant) -> Option<u64> {
        let mut kinds = self.kinds.lock();
        if let Some(known) = kinds.known.get_mut(&kind) {
            return known.admit(now, self.interval);
        }
        if kinds.known.len() >= MAX_KINDS {
            kinds.known.retain(|_, kind| !kind.is_over(now, self.interval));
        }
        if kinds.known.len() < MAX_KINDS {
            kinds.known.insert(kind, Kind::new(now));
            return Some(0);
        }
        match &mut kinds.others {
            Some(others) => others.admit(now, self.interval),
            none => {
                *none = Some(Kind::new(now));
                Some(0)
            }
        }
    }
}

impl Kind {
    fn new(now: Instant) -> Self {
        Self { admitted: now, suppressed: 0 }
    }

    fn is_over(&self, now: Instant, interval: Duration) -> bool {
        now.saturating_duration_since(self.admitted) >= interval
    }

    fn admit(&mut self, now: Instant, interval: Duration) -> Option<u64> {
        if self.is_over(now, interval) {
            self.admitted = now;
            return Some(std::mem::take(&mut self.suppressed));
        }
        self.suppressed += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    #[test]
    fn one_line_per_kind_and_interval_and_the_rest_is_counted() {
        let throttle = LogThrottle::new(INTERVAL);
        let start = Instant::now();
        assert_eq!(throttle.admit_at("a", start), Some(0));
        assert_eq!(throttle.admit_at("a", start), None);
        assert_eq!(throttle.admit_at("b", start), Some(0));
        assert_eq!(throttle.admit_at("a", start + INTERVAL - Duration::from_millis(1)), None);
        assert_eq!(throttle.admit_at("a", start + INTERVAL), Some(2));
        assert_eq!(throttle.admit_at("a", start + INTERVAL), None);
    }

    #[test]
    fn made_up_kinds_gain_one_line_at_most() {
        let throttle = LogThrottle::new(INTERVAL);
        let start = Instant::now();
        let admitted = (0..10_000).filter(|kind| throttle.admit_at(*kind, start).is_some()).count();
        assert_eq!(admitted, MAX_KINDS + 1);
        assert_eq!(throttle.kinds.lock().known.len(), MAX_KINDS);
        // later there is room again
        assert_eq!(throttle.admit_at(20_000, start + INTERVAL), Some(0));
        assert_eq!(throttle.kinds.lock().known.len(), 1);
    }
}
