//! When the connection may be left alone for a while, so that messages which can wait are fetched together. No I/O.
//!
//! A message costs far more by waking us up than by being read. So after messages that all may wait, nothing is read for a moment. Whoever is in a
//! hurry ends that: we published something, to which there will be an answer, or a message came that must not wait.

use std::time::Duration;

use runtime::beat;
use tokio::time::Instant;

/// Longest time that an MQTT message waits because others before it could wait, too.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Shortest such time, when much arrives.
const SHORTEST_PAUSE: Duration = Duration::from_millis(25);

/// After something urgent the connection is not left alone for so long: more of it is likely.
const HURRY: Duration = Duration::from_secs(1);

/// Bytes that should wait at the end of a pause at most: the kernel has room for some multiples of it.
const MUCH: usize = 16 * 1024;

/// What a look at the connection brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Haul {
    /// No whole message, or none that says anything about haste.
    Nothing,
    /// Messages, all of which could have come later.
    Patient,
    /// Also others.
    Urgent,
}

#[derive(Debug)]
pub(super) struct Calm {
    longest: Duration,
    pause: Duration,
    /// Bytes since the last pause.
    came: usize,
    is_due: bool,
    hurry_until: Option<Instant>,
}

impl Calm {
    pub(super) fn new(longest: Duration) -> Self {
        Self { longest, pause: longest, came: 0, is_due: false, hurry_until: None }
    }

    /// So many `bytes` were read. `is_all`: nothing more is there.
    pub(super) fn heard(&mut self, bytes: usize, haul: Haul, is_all: bool, now: Instant) {
        self.came += bytes;
        self.is_due = haul == Haul::Patient && is_all;
        if haul == Haul::Urgent {
            self.hurry(now);
        }
    }

    /// There will be something that must not wait.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.hurry_until = Some(now + HURRY);
        self.is_due = false;
    }

    /// Until when the connection can be left alone now.
    pub(super) fn pause(&mut self, now: Instant) -> Option<Instant> {
        if !std::mem::take(&mut self.is_due) || self.longest.is_zero() || self.hurry_until.is_some_and(|until| now < until) {
            return None;
        }
        match std::mem::take(&mut self.came) {
            much if much > MUCH => self.pause = (self.pause / 2).max(SHORTEST_PAUSE.min(self.longest)),
            little if little < MUCH / 4 => self.pause = (self.pause * 2).min(self.longest),
            _ => {}
        }
        Some(beat::next(now, self.pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_follows_messages_that_may_wait() {
        let _ = beat::next(Instant::now(), LONGEST_PAUSE); // the beat begins with its first use
        let (mut calm, now) = (Calm::new(LONGEST_PAUSE), Instant::now());
        assert_eq!(calm.pause(now), None, "nothing was heard");
        calm.heard(300, Haul::Patient, true, now);
        let end = calm.pause(now).unwrap();
        assert!(end > now && end <= now + LONGEST_PAUSE);
        assert_eq!(calm.pause(now), None, "only one");
        calm.heard(300, Haul::Patient, true, end);
        assert_eq!(calm.pause(end), Some(end + LONGEST_PAUSE), "on the beat");
        calm.heard(2048, Haul::Patient, false, now);
        assert_eq!(calm.pause(now), None, "more is there");
        calm.heard(2048, Haul::Nothing, true, now);
        assert_eq!(calm.pause(now), None, "the rest of a message is to come");
        let mut eager = Calm::new(Duration::ZERO);
        eager.heard(300, Haul::Patient, true, now);
        assert_eq!(eager.pause(now), None, "it is not wanted");
    }

    #[test]
    fn no_pause_while_somebody_is_in_a_hurry() {
        let (mut calm, now) = (Calm::new(LONGEST_PAUSE), Instant::now());
        for urgent in [|calm: &mut Calm, now| calm.heard(300, Haul::Urgent, true, now), |calm: &mut Calm, now| calm.hurry(now)] {
            calm.heard(300, Haul::Patient, true, now);
            urgent(&mut calm, now);
            assert_eq!(calm.pause(now), None);
            calm.heard(300, Haul::Patient, true, now + HURRY / 2);
            assert_eq!(calm.pause(now + HURRY / 2), None);
            calm.heard(300, Haul::Patient, true, now + HURRY);
            assert!(calm.pause(now + HURRY).is_some());
        }
    }

    #[test]
    fn the_more_arrives_the_shorter_the_pause() {
        let (mut calm, now) = (Calm::new(LONGEST_PAUSE), Instant::now());
        let mut pause_after = |bytes| {
            calm.heard(bytes, Haul::Patient, true, now);
            calm.pause(now).unwrap();
            calm.pause
        };
        let half = LONGEST_PAUSE / 2;
        assert_eq!((pause_after(MUCH + 1), pause_after(MUCH), pause_after(0), pause_after(0)), (half, half, LONGEST_PAUSE, LONGEST_PAUSE));
        assert_eq!((0..10).map(|_| pause_after(MUCH + 1)).last(), Some(SHORTEST_PAUSE));
    }
}
