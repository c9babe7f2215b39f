//! When a failed task may run again: pure bookkeeping over time.

use std::time::Duration;

use tokio::time::Instant;

/// Pause before the first restart; it doubles with each further failure inside [`WINDOW`].
pub const FIRST_DELAY: Duration = Duration::from_millis(250);

/// Longest pause before a restart.
pub const MAX_DELAY: Duration = Duration::from_secs(30);

/// Restarts inside [`WINDOW`] after which the task is given up. With the delays above a task that fails at once is
/// given up after about two minutes.
pub const MAX_RESTARTS: usize = 10;

/// How long a failure counts against its task.
pub const WINDOW: Duration = Duration::from_secs(600);

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Run again after this pause.
    RetryIn(Duration),
    /// Too many failures inside the window.
    GiveUp,
}

/// The recent failures of one task; never more than [`MAX_RESTARTS`].
#[derive(Default)]
pub(super) struct Restarts {
    recent: Vec<Instant>,
}

impl Restarts {
    pub(super) fn after_failure(&mut self, now: Instant) -> Verdict {
        self.recent.retain(|failure| now.duration_since(*failure) < WINDOW);
        let earlier = self.recent.len();
        if earlier >= MAX_RESTARTS {
            return Verdict::GiveUp;
        }
        self.recent.push(now);
        let doublings = u32::try_from(earlier).unwrap_or(u32::MAX);
        Verdict::RetryIn(FIRST_DELAY.saturating_mul(2_u32.saturating_pow(doublings)).min(MAX_DELAY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_limit_and_then_it_is_over() {
        let mut restarts = Restarts::default();
        let mut now = Instant::now();
        let expected = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000];
        assert_eq!(expected.len(), MAX_RESTARTS);
        for millis in expected {
            let delay = Duration::from_millis(millis);
            assert_eq!(restarts.after_failure(now), Verdict::RetryIn(delay));
            now += delay;
        }
        assert_eq!(restarts.after_failure(now), Verdict::GiveUp);
    }

    #[test]
    fn old_failures_are_forgiven() {
        let mut restarts = Restarts::default();
        let mut now = Instant::now();
        for _ in 0..100 {
            assert_eq!(restarts.after_failure(now), Verdict::RetryIn(FIRST_DELAY));
            now += WINDOW;
        }
    }
}
