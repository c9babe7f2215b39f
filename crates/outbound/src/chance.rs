//! Numbers by chance, for pauses and names. No secrets.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// A number that is not the same twice.
pub(crate) fn number() -> u64 {
    RandomState::new().hash_one(0)
}

/// Some time up to `limit`: not everybody is to do the same thing at the same moment.
#[must_use]
pub fn below(limit: Duration) -> Duration {
    let drawn = u32::try_from(number() >> 32).unwrap_or(0);
    limit.mul_f64(f64::from(drawn) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spread_up_to_the_limit() {
        let limit = Duration::from_secs(4);
        let drawn: Vec<_> = (0..1000).map(|_| below(limit)).collect();
        assert!(drawn.iter().all(|time| *time <= limit));
        assert!(drawn.iter().any(|time| *time < limit / 4) && drawn.iter().any(|time| *time > limit / 4 * 3));
        assert_eq!(below(Duration::ZERO), Duration::ZERO);
    }
}
