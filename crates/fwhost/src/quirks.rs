//! Bounded logging of misbehaviour: each kind once, then at most every ten minutes with a count.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::Duration;

use tokio::time::Instant;

/// A kind that was logged is not logged again for this long.
const QUIET: Duration = Duration::from_secs(600);

/// What has been logged.
#[derive(Debug, Default)]
pub(crate) struct Quirks {
    kinds: HashMap<&'static str, (Instant, u64)>,
}

impl Quirks {
    /// Logs `detail` as a warning unless this kind was logged lately.
    pub(crate) fn warn(&mut self, kind: &'static str, detail: &dyn Display) {
        if let Some(suppressed) = self.admit(kind, Instant::now()) {
            tracing::warn!(fwhost.quirk = kind, fwhost.suppressed = suppressed, "firmware host: {detail}");
        }
    }

    /// How many were suppressed since the last line, if a line is due.
    fn admit(&mut self, kind: &'static str, now: Instant) -> Option<u64> {
        match self.kinds.get_mut(kind) {
            Some((last, suppressed)) if now.duration_since(*last) < QUIET => {
                *suppressed += 1;
                None
            }
            Some(entry) => Some(std::mem::replace(entry, (now, 0)).1),
            None => {
                self.kinds.insert(kind, (now, 0));
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_kind() {
        let mut quirks = Quirks::default();
        let start = Instant::now();
        assert_eq!(quirks.admit("a", start), Some(0));
        assert_eq!(quirks.admit("b", start), Some(0));
        for _ in 0..5 {
            assert_eq!(quirks.admit("a", start + QUIET / 2), None);
        }
        assert_eq!(quirks.admit("a", start + QUIET), Some(5));
        assert_eq!(quirks.admit("a", start + QUIET), None);
    }
}
