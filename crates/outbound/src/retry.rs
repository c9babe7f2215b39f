//! When to try again.

use std::time::Duration;

/// Pauses that double from one failure in a row to the next, up to a longest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Pause after the first failure.
    pub first: Duration,
    /// Longest pause.
    pub longest: Duration,
    /// Attempts in all; `None` for as long as it takes.
    pub attempts: Option<u32>,
}

impl Retry {
    /// The pause after `failures` failures in a row (at least one); `None` when it is time to give up.
    #[must_use]
    pub fn pause_after(&self, failures: u32) -> Option<Duration> {
        if self.attempts.is_some_and(|attempts| failures >= attempts) {
            return None;
        }
        let factor = 2_u32.saturating_pow(failures.saturating_sub(1));
        Some(self.first.saturating_mul(factor).min(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let retry = Retry { first: Duration::from_secs(30), longest: Duration::from_secs(1800), attempts: None };
        let pauses: Vec<_> = (1..=9).map(|failures| retry.pause_after(failures).unwrap().as_secs()).collect();
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1800, 1800, 1800]);
        let few = Retry { attempts: Some(2), ..retry };
        assert_eq!((few.pause_after(1), few.pause_after(2)), (Some(Duration::from_secs(30)), None));
    }

    proptest! {
        #[test]
        fn no_number_of_failures_breaks_it(first in 0..u64::MAX, longest in 0..u64::MAX, failures in 0..u32::MAX) {
            let retry = Retry { first: Duration::from_secs(first), longest: Duration::from_secs(longest), attempts: None };
            let (pause, next) = (retry.pause_after(failures).unwrap(), retry.pause_after(failures.saturating_add(1)).unwrap());
            prop_assert!(pause <= next && next <= retry.longest);
        }
    }
}
