//! The idle timeout: tells clients whether anything goes on, and switches the printer off after half an hour of nothing.

/// Seconds without work until `Printing` becomes `Ready`.
const READY_AFTER: f64 = 1.5;

/// State of the `idle_timeout` object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleState {
    /// Nothing happened for the whole timeout (also: not yet ready).
    Idle,
    /// Nothing happens.
    Ready,
    /// Something moves or runs, a print or not.
    Printing,
}

/// The timer. Times are seconds of model time.
#[derive(Debug, Clone)]
pub(super) struct Idle {
    pub(super) state: IdleState,
    /// Seconds until the printer is switched off.
    pub(super) timeout: f64,
    since: f64,
    last_busy: f64,
    now: f64,
}

impl Default for Idle {
    fn default() -> Self {
        Self { state: IdleState::Idle, timeout: 1800.0, since: 0.0, last_busy: 0.0, now: 0.0 }
    }
}

impl Idle {
    /// The host became ready.
    pub(super) fn ready(&mut self, now: f64) {
        self.state = IdleState::Ready;
        self.last_busy = now;
    }

    /// Lets time pass until `now`; true when the timeout just ended.
    pub(super) fn pass(&mut self, now: f64, busy: bool) -> bool {
        self.now = now;
        if busy {
            if self.state != IdleState::Printing {
                self.state = IdleState::Printing;
                self.since = now;
            }
            self.last_busy = now;
            return false;
        }
        let quiet = now - self.last_busy;
        match self.state {
            IdleState::Printing if quiet >= READY_AFTER => self.state = IdleState::Ready,
            IdleState::Ready if quiet >= self.timeout => {
                self.state = IdleState::Idle;
                return true;
            }
            _ => {}
        }
        false
    }

    /// Seconds of the present activity.
    pub(super) fn printing_time(&self) -> f64 {
        if self.state == IdleState::Printing { self.now - self.since } else { 0.0 }
    }

    /// The word on the wire.
    pub(super) fn word(&self) -> &'static str {
        match self.state {
            IdleState::Idle => "Idle",
            IdleState::Ready => "Ready",
            IdleState::Printing => "Printing",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_ready_idle() {
        let mut idle = Idle::default();
        assert!(!idle.pass(1e6, false), "nothing ends before ready");
        idle.ready(1e6);
        idle.pass(1e6 + 1.0, true);
        idle.pass(1e6 + 3.0, true);
        assert_eq!((idle.word(), idle.printing_time()), ("Printing", 2.0));
        idle.pass(1e6 + 5.0, false);
        assert_eq!((idle.word(), idle.printing_time()), ("Ready", 0.0));
        assert!(idle.pass(1e6 + 2000.0, false));
        assert_eq!(idle.word(), "Idle");
    }
}
