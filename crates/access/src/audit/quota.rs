//! How much of the audit log strangers may fill: a bucket that refills slowly.

/// Entries of strangers at once.
const BURST: f64 = 60.0;

/// Entries of strangers per second in the long run.
const PER_SECOND: f64 = 0.2;

/// The bucket.
pub(super) struct Quota {
    left: f64,
    at: f64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { left: BURST, at: 0.0 }
    }
}

impl Quota {
    /// True when one more entry is allowed at `now` (Unix seconds).
    pub(super) fn take(&mut self, now: f64) -> bool {
        // A clock that jumps back gives nothing.
        let passed = (now - self.at).max(0.0);
        self.left = (self.left + passed * PER_SECOND).min(BURST);
        self.at = now;
        let allowed = self.left >= 1.0;
        if allowed {
            self.left -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_little() {
        let mut quota = Quota::default();
        assert_eq!((0..1000).filter(|_| quota.take(5.0)).count(), 60);
        assert!(!quota.take(1.0) && !quota.take(5.9));
        assert!(quota.take(6.1) && !quota.take(6.2));
        assert_eq!((0..1000).filter(|_| quota.take(1e9)).count(), 60);
    }
}
