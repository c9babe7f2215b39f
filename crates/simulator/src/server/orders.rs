//! Orders of control handles.

use super::command::{Command, Order};
use super::host::{Host, STEPS_PER_TURN, Waiting};
use crate::fault::Fault;

/// Most model seconds that pass at once.
const MAX_LEAP: f64 = 1e6;

impl Host {
    /// Carries out an order and tells the outcome.
    pub(super) fn obey(&mut self, order: Order) {
        let Order { command, done } = order;
        match command {
            Command::Inject(Fault::Die) => self.die(),
            Command::Inject(fault) => {
                self.faults.add(fault);
                self.apply_faults();
            }
            Command::Clear(fault) => {
                self.faults.clear(&fault);
                self.apply_faults();
            }
            Command::ClearAll => {
                self.faults.clear_all();
                self.apply_faults();
            }
            Command::Revive => {
                let _ = done.send(self.revive());
                return;
            }
            Command::Restart(firmware) => self.restart(firmware),
            Command::Shutdown(cause) => {
                self.model.shutdown(&cause);
                self.deliver();
            }
            Command::Advance(seconds) => self.leap(seconds),
            Command::Script(script) => {
                let ticket = self.ticket(Waiting::Order(done));
                self.model.submit_script(ticket, &script);
                return;
            }
        }
        self.turn();
        let _ = done.send(Ok(()));
    }

    /// Tells the model about faults that concern it.
    fn apply_faults(&mut self) {
        self.model.set_alarm(self.faults.alarm());
        self.model.set_non_finite(self.faults.has(&Fault::NonFinite));
    }

    /// Lets model time pass at once, in bounded portions.
    fn leap(&mut self, seconds: f64) {
        let end = self.model.now() + if seconds.is_finite() { seconds.min(MAX_LEAP) } else { 0.0 };
        while self.model.now() < end && self.listening() {
            self.model.advance(end - self.model.now(), STEPS_PER_TURN);
            self.deliver();
        }
    }
}
