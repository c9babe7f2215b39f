//! From the changes of a line to those of a button. No I/O.

use std::time::Duration;

use tokio::time::Instant;

use crate::gpio::Edge;

/// Changes of the line of a button within 5 seconds that count as bouncing contacts; a line with more of them is left alone for a while.
pub const MAX_BOUNCES: u32 = 500;

/// The time in which the changes of a bouncing line are counted.
pub const NOISE_WINDOW: Duration = Duration::from_secs(5);

/// A button went down or up, and stayed there for the debounce period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) is_pressed: bool,
    /// When the line began to move.
    pub(super) at: Instant,
    /// Since the change before.
    pub(super) elapsed: Duration,
}

/// The line changes more often than contacts can.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Noisy;

/// The first change of the line begins a delay; the level at its end counts, and whatever happens within it is bouncing.
#[derive(Debug)]
pub(super) struct Debounce {
    period: Duration,
    is_pressed: bool,
    changed: Instant,
    delay: Option<Delay>,
    bounces: u32,
    window: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Delay {
    since: Instant,
    level: bool,
}

impl Debounce {
    /// A button that is seen for the first time.
    pub(super) fn new(period: Duration, is_pressed: bool, now: Instant) -> Self {
        Self { period, is_pressed, changed: now, delay: None, bounces: 0, window: now }
    }

    /// The line changed. What came of a delay that was over by then.
    pub(super) fn edge(&mut self, edge: Edge) -> Result<Option<Change>, Noisy> {
        let settled = self.settle(edge.at);
        match &mut self.delay {
            Some(delay) => {
                delay.level = edge.level;
                self.bounce(edge.at)?;
            }
            None => self.delay = Some(Delay { since: edge.at, level: edge.level }),
        }
        Ok(settled)
    }

    /// The end of the delay that is under way.
    pub(super) fn due(&self) -> Option<Instant> {
        self.delay.map(|delay| delay.since + self.period)
    }

    /// What came of a delay that is over now.
    pub(super) fn settle(&mut self, now: Instant) -> Option<Change> {
        let delay = self.delay.take_if(|delay| delay.since + self.period <= now)?;
        if delay.level == self.is_pressed {
            return None;
        }
        let elapsed = delay.since.saturating_duration_since(self.changed);
        self.is_pressed = delay.level;
        self.changed = delay.since;
        Some(Change { is_pressed: delay.level, at: delay.since, elapsed })
    }

    fn bounce(&mut self, at: Instant) -> Result<(), Noisy> {
        if at.saturating_duration_since(self.window) > NOISE_WINDOW {
            (self.window, self.bounces) = (at, 0);
        }
        self.bounces += 1;
        if self.bounces > MAX_BOUNCES { Err(Noisy) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIOD: u64 = 50;

    /// Edges as (milliseconds, level); changes as (milliseconds, pressed, milliseconds since the one before).
    fn run(initially: bool, edges: &[(u64, bool)]) -> Result<Vec<(u64, bool, u64)>, Noisy> {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut debounce = Debounce::new(Duration::from_millis(PERIOD), initially, start);
        let mut changes = Vec::new();
        for (ms, level) in edges {
            changes.extend(debounce.edge(Edge { level: *level, at: at(*ms) })?);
        }
        if let Some(due) = debounce.due() {
            assert_eq!(debounce.settle(due - Duration::from_nanos(1)), None, "not before the end of the delay");
            changes.extend(debounce.settle(due));
            assert_eq!(debounce.due(), None);
        }
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap();
        Ok(changes.iter().map(|change| (ms(change.at - start), change.is_pressed, ms(change.elapsed))).collect())
    }

    #[test]
    fn only_levels_that_last_count() {
        for (what, initially, edges, expected) in [
            ("nothing", false, &[][..], &[][..]),
            ("a press", false, &[(100, true)], &[(100, true, 100)]),
            ("a press and a release", false, &[(100, true), (300, false)], &[(100, true, 100), (300, false, 200)]),
            (
                "contacts that bounce",
                false,
                &[(100, true), (101, false), (103, true), (300, false), (302, true), (303, false)],
                &[(100, true, 100), (300, false, 200)],
            ),
            ("a spike", false, &[(100, true), (110, false)], &[]),
            ("a spike, then a press", false, &[(100, true), (110, false), (200, true)], &[(200, true, 200)]),
            ("bouncing at the end of the delay", false, &[(100, true), (149, false)], &[]),
            ("a change right at the end of the delay", false, &[(100, true), (150, false)], &[(100, true, 100), (150, false, 50)]),
            ("a switch that was on at the start", true, &[(100, false), (400, true)], &[(100, false, 100), (400, true, 300)]),
            ("an edge that was lost", false, &[(100, true), (300, true), (500, false)], &[(100, true, 100), (500, false, 400)]),
        ] {
            assert_eq!(run(initially, edges).unwrap(), expected, "{what}");
        }
    }

    #[test]
    fn noise_is_told_from_bouncing() {
        let flicker = |count: u64, gap: u64| -> Vec<_> { (0..count).map(|n| (n * gap, n % 2 == 0)).collect() };
        assert_eq!(run(false, &flicker(10_000, 1)).unwrap_err(), Noisy);
        assert!(run(false, &flicker(10_000, 11)).is_ok(), "a bad contact that is tolerable");
        let presses: Vec<_> = (0..100).flat_map(|press| (0..20).map(move |bounce| (press * 400 + bounce, bounce % 2 == 0))).collect();
        assert!(run(false, &presses).is_ok(), "bad contacts, pressed all the time");
    }

    proptest! {
        #[test]
        fn changes_alternate_and_lie_a_period_apart(gaps in proptest::collection::vec((0_u64..200, any::<bool>()), 0..200)) {
            let mut now = 0;
            let edges: Vec<_> = gaps.iter().map(|(gap, level)| { now += gap; (now, *level) }).collect();
            let changes = run(false, &edges).unwrap_or_default();
            for (n, (at, pressed, elapsed)) in changes.iter().enumerate() {
                prop_assert_eq!(*pressed, n % 2 == 0);
                let before = n.checked_sub(1).map_or(0, |before| changes[before].0);
                prop_assert_eq!(before + elapsed, *at);
                prop_assert!(n == 0 || *elapsed >= PERIOD);
            }
        }
    }
}
