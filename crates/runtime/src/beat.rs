//! The beat of the process: what is done again and again is done at the same moments, because waking up costs more than most of that work.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// A tick at once and then one every `period` (which must not be zero), on the beat of all others with this period, or with a multiple of it.
/// Missed ticks are left out.
#[must_use]
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval_at(latest(origin(), Instant::now(), period), period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// The moment on the beat of `period` that is nearest to `due`.
#[must_use]
pub fn nearest(due: Instant, period: Duration) -> Instant {
    let before = latest(origin(), due, period);
    if due - before < period / 2 { before } else { before + period }
}

/// The first moment on the beat of `period` that is later than `moment`.
#[must_use]
pub fn next(moment: Instant, period: Duration) -> Instant {
    latest(origin(), moment, period) + period
}

fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// The last moment on the beat that is not later than `moment`.
fn latest(origin: Instant, moment: Instant, period: Duration) -> Instant {
    let beyond = moment.saturating_duration_since(origin).as_nanos().checked_rem(period.as_nanos()).unwrap_or(0);
    moment - Duration::from_nanos(u64::try_from(beyond).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_on_the_beat_are_found() {
        let origin = origin();
        let after = |ms: u64| origin + Duration::from_millis(ms);
        let period = Duration::from_secs(5);
        for (due, found) in [(0, 0), (5000, 5000), (5003, 5000), (7499, 5000), (7501, 10_000), (86_404_990, 86_405_000)] {
            assert_eq!(nearest(after(due), period), after(found), "{due}");
        }
        assert_eq!((latest(origin, after(7499), period), next(after(7499), period)), (after(5000), after(10_000)));
        assert_eq!(nearest(after(7), Duration::ZERO), after(7), "no period, no beat");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_begins_later_has_the_same_beat() {
        let period = Duration::from_secs(1);
        let mut first = ticks(period);
        first.tick().await;
        first.tick().await;
        tokio::time::advance(Duration::from_millis(300)).await;
        let began = Instant::now();
        let mut second = ticks(period);
        second.tick().await;
        assert_eq!(began.elapsed(), Duration::ZERO, "the first one comes at once");
        let (first, second) = (first.tick().await, second.tick().await);
        assert_eq!(first, second);
    }
}
