//! When which feed is asked next.

use std::collections::BTreeMap;
use std::time::Duration;

use outbound::Retry;
use tokio::time::Instant;

/// Pause between two looks at a feed (document 2 *Limits*).
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(30 * 60);

/// Pauses after looks that failed.
const RETRY: Retry = Retry { first: Duration::from_secs(30), longest: POLL_INTERVAL, attempts: None };

/// The feeds that were asked and how that went; one that is not here is due.
#[derive(Debug, Default)]
pub(super) struct Schedule(BTreeMap<String, Due>);

#[derive(Debug)]
struct Due {
    at: Instant,
    failures: u32,
}

impl Schedule {
    /// Notes how a look ended; true when that differs from the look before, which is worth a line in the log.
    pub(super) fn note(&mut self, feed: &str, is_read: bool, now: Instant) -> bool {
        let before = self.0.get(feed).map_or(0, |due| due.failures);
        let failures = if is_read { 0 } else { before.saturating_add(1) };
        let pause = if is_read { POLL_INTERVAL } else { RETRY.pause_after(failures).unwrap_or(POLL_INTERVAL) };
        self.0.insert(feed.to_owned(), Due { at: now + pause, failures });
        (before == 0) != (failures == 0)
    }

    /// Forgets a feed.
    pub(super) fn remove(&mut self, feed: &str) {
        self.0.remove(feed);
    }

    /// The feeds among these that are due.
    pub(super) fn due(&self, feeds: Vec<String>, now: Instant) -> Vec<String> {
        feeds.into_iter().filter(|feed| self.0.get(feed).is_none_or(|due| due.at <= now)).collect()
    }

    /// When the next of these is due.
    pub(super) fn next(&self, feeds: &[String], now: Instant) -> Option<Instant> {
        feeds.iter().map(|feed| self.0.get(feed).map_or(now, |due| due.at)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_lengthen_the_pause_and_only_changes_are_told() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        let feeds = || vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(schedule.due(feeds(), start), feeds());
        assert!(!schedule.note("a", true, start) && schedule.note("b", false, start));
        assert!(schedule.due(feeds(), start).is_empty());
        assert_eq!(schedule.next(&feeds(), start), Some(start + Duration::from_secs(30)));
        assert!(!schedule.note("b", false, start), "the same again");
        assert_eq!(schedule.next(&feeds(), start), Some(start + Duration::from_secs(60)));
        assert!(schedule.note("b", true, start));
        assert_eq!(schedule.next(&feeds(), start), Some(start + POLL_INTERVAL));
        schedule.remove("a");
        assert_eq!(schedule.due(feeds(), start), ["a"]);
    }
}
