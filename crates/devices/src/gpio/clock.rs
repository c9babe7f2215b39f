//! The clock of the kernel's line events.

use std::sync::LazyLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// Oldest age of an event that is believed: clocks of old kernels are others, and their events are taken as of now.
const MAX_AGE: Duration = Duration::from_secs(10);

/// A moment on both clocks.
static ANCHOR: LazyLock<(Instant, f64)> = LazyLock::new(|| (Instant::now(), monotonic().as_secs_f64()));

/// A moment in seconds of the monotonic clock, which begins with the start of the machine.
pub(crate) fn seconds(at: Instant) -> f64 {
    let (anchor, seconds) = *ANCHOR;
    seconds + at.saturating_duration_since(anchor).as_secs_f64() - anchor.saturating_duration_since(at).as_secs_f64()
}

/// When an event of the kernel happened, from nanoseconds of the monotonic clock.
pub(super) fn moment(nanoseconds: u64) -> Instant {
    let age = monotonic().checked_sub(Duration::from_nanos(nanoseconds)).filter(|age| *age < MAX_AGE);
    let now = Instant::now();
    age.and_then(|age| now.checked_sub(age)).unwrap_or(now)
}

fn monotonic() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_kernel_are_moments_of_ours() {
        let second = Duration::from_secs(1);
        let before = u64::try_from((monotonic() - second).as_nanos()).unwrap();
        let age = moment(before).elapsed();
        assert!(age >= second && age < 5 * second, "{age:?}");
        let now = Instant::now();
        assert!((seconds(now) - monotonic().as_secs_f64()).abs() < 1.0);
        assert!((seconds(now) - seconds(now - second) - 1.0).abs() < 1e-6);
        for strange in [0, u64::MAX] {
            assert!(moment(strange).elapsed() < second, "of another clock");
        }
    }
}
