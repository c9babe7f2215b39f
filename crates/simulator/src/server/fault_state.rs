//! The faults in force and when they strike.

use std::time::Duration;

use tokio::time::Instant;

use crate::fault::Fault;

/// Faults in force.
#[derive(Debug, Default)]
pub(super) struct FaultState {
    faults: Vec<Fault>,
    /// When the hang begins.
    hang_at: Option<Instant>,
}

impl FaultState {
    /// Adds a fault, replacing one of its kind.
    pub(super) fn add(&mut self, fault: Fault) {
        if let Fault::Hang { seconds } = fault {
            self.hang_at = Instant::now().checked_add(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        }
        self.clear(&fault);
        self.faults.push(fault);
    }

    /// Removes faults of this kind.
    pub(super) fn clear(&mut self, fault: &Fault) {
        self.faults.retain(|known| !known.same_kind(fault));
    }

    /// Removes all faults.
    pub(super) fn clear_all(&mut self) {
        self.faults.clear();
    }

    /// The host hangs now.
    pub(super) fn hangs(&self) -> bool {
        self.hang_time().is_some_and(|at| Instant::now() >= at)
    }

    /// When the hang begins, if there is to be one.
    pub(super) fn hang_time(&self) -> Option<Instant> {
        self.hang_at.filter(|_| self.faults.iter().any(|f| matches!(f, Fault::Hang { .. })))
    }

    /// The first fault for which `pick` gives something.
    pub(super) fn find<T>(&self, pick: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        self.faults.iter().find_map(pick)
    }

    /// A fault without values is in force.
    pub(super) fn has(&self, fault: &Fault) -> bool {
        self.faults.contains(fault)
    }

    /// A fault without values is in force; it is removed, since it strikes once.
    pub(super) fn take(&mut self, fault: &Fault) -> bool {
        let found = self.has(fault);
        self.clear(fault);
        found
    }

    /// Objects that the printer lacks.
    pub(super) fn missing_objects(&self) -> Vec<String> {
        self.faults.iter().filter_map(|f| if let Fault::Without { object } = f { Some(object.clone()) } else { None }).collect()
    }

    /// Seconds of printing after which the printer shuts down or dies.
    pub(super) fn alarm(&self) -> Option<f64> {
        let times = self.faults.iter().filter_map(|f| match f {
            Fault::ShutdownAfter { seconds } | Fault::DieAfter { seconds } => Some(*seconds),
            _ => None,
        });
        times.reduce(f64::min)
    }
}
