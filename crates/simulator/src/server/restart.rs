//! Coming and going: listen, restart, die, revive (wire document 5, sections 11 and 12).
//!
//! ```text
//! Listening ──RESTART──▶ Gap ──after the gap──▶ Listening (new model, in startup)
//!     └──────die──────▶ Dead ──────revive─────▶ Listening
//! ```

use std::io;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fault_state::FaultState;
use super::host::Host;
use super::listener;
use crate::fault::Fault;
use crate::model::{Model, Settings, state, storage::Folder};
use crate::options::Options;

/// Whether the socket can be connected to.
#[derive(Debug)]
pub(super) enum Phase {
    /// Yes; the token ends the accepting task.
    Listening(CancellationToken),
    /// Not until this moment: the host restarts.
    Gap(Instant),
    /// No: the process is dead.
    Dead,
}

impl Phase {
    /// When the phase ends by itself.
    pub(super) fn until(&self) -> Option<Instant> {
        if let Self::Gap(until) = self { Some(*until) } else { None }
    }
}

/// A fresh model under the faults in force.
pub(super) fn build_model(options: &Options, faults: &FaultState, mcu_shutdown: bool) -> Model {
    let boot_error = if mcu_shutdown {
        Some(state::mcu_error(state::MCU_STILL_SHUTDOWN))
    } else if faults.has(&Fault::ConfigError) {
        Some(state::config_error("Section 'bogus' is not a valid config section"))
    } else if faults.has(&Fault::McuError) {
        Some(state::mcu_error("mcu 'mcu': Unable to connect"))
    } else {
        None
    };
    let startup = faults.find(|f| if let Fault::Startup { seconds } = f { Some(*seconds) } else { None });
    let settings = Settings {
        startup: startup.unwrap_or(options.startup.as_secs_f64()) * options.speed,
        boot_error,
        speed: options.speed,
        without: faults.missing_objects(),
        non_finite: faults.has(&Fault::NonFinite),
        seed: options.seed,
        alarm: faults.alarm(),
        memory: memory().unwrap_or(Settings::default().memory),
    };
    Model::new(settings, Box::new(Folder(options.gcodes.clone())))
}

/// Memory that this machine has left, in kB: clients compare it with the memory that the machine has, which nobody simulates.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let amount = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    amount.split_ascii_whitespace().next()?.parse().ok()
}

impl Host {
    /// Binds the socket and accepts connections.
    pub(crate) fn listen(&mut self) -> io::Result<()> {
        let listener = listener::bind(&self.options.socket)?;
        let token = CancellationToken::new();
        self.tasks.spawn(listener::accept(listener, self.events.clone(), token.clone()));
        self.phase = Phase::Listening(token);
        self.starts += 1;
        Ok(())
    }

    /// Restarts the host: clients are told, cut off, and can come back after the gap.
    pub(super) fn restart(&mut self, firmware: bool) {
        if matches!(self.phase, Phase::Dead) {
            return;
        }
        self.output("// Klipper state: Disconnect");
        self.mcu_shutdown = !firmware && (self.mcu_shutdown || self.model.mcu_is_shutdown());
        let zombie = self.faults.take(&Fault::Zombie);
        self.stop_listening();
        let connections = std::mem::take(&mut self.connections);
        if zombie {
            self.zombies.extend(connections.into_values());
        }
        self.renew_model();
        let gap = if zombie { std::time::Duration::ZERO } else { self.options.restart_gap };
        self.phase = Phase::Gap(Instant::now() + gap);
    }

    /// Ends the gap of a restart when it is time.
    pub(super) fn come_back(&mut self) {
        if self.phase.until().is_some_and(|until| Instant::now() >= until) {
            // Start-up begins now, not when the old host ended.
            self.renew_model();
            if let Err(error) = self.listen() {
                tracing::error!(%error, "cannot listen again");
                self.phase = Phase::Dead;
            }
        }
    }

    /// Dies as a killed process does: no last word, the socket file stays.
    pub(super) fn die(&mut self) {
        self.stop_listening();
        for connection in std::mem::take(&mut self.connections).into_values().chain(self.zombies.drain(..)) {
            connection.outbox.abort();
        }
        self.status.clear();
        self.waiting.clear();
        self.phase = Phase::Dead;
    }

    /// Starts again after a death.
    pub(super) fn revive(&mut self) -> Result<(), String> {
        if !matches!(self.phase, Phase::Dead) {
            return Err("the simulator is alive".to_owned());
        }
        self.mcu_shutdown = false;
        self.renew_model();
        self.listen().map_err(|error| error.to_string())
    }

    /// The print reached the moment of a fault.
    pub(super) fn alarm(&mut self) {
        let shutdown = self.faults.find(|f| if let Fault::ShutdownAfter { seconds } = f { Some(*seconds) } else { None });
        let die = self.faults.find(|f| if let Fault::DieAfter { seconds } = f { Some(*seconds) } else { None });
        if die.is_some_and(|die| shutdown.is_none_or(|shutdown| die <= shutdown)) {
            self.faults.clear(&Fault::DieAfter { seconds: 0.0 });
            return self.die();
        }
        self.faults.clear(&Fault::ShutdownAfter { seconds: 0.0 });
        self.model.shutdown("MCU 'mcu' shutdown: Rescheduled timer in the past\nThis is a simulated fault.");
        self.model.set_alarm(self.faults.alarm());
        self.deliver();
    }

    /// Goes for good: closes everything and removes the socket file.
    pub(super) fn leave(&mut self) {
        let was_listening = matches!(self.phase, Phase::Listening(_));
        self.die();
        if was_listening {
            let _ = std::fs::remove_file(&self.options.socket);
        }
    }

    fn stop_listening(&mut self) {
        if let Phase::Listening(token) = &self.phase {
            token.cancel();
        }
        self.status.clear();
        self.waiting.clear();
    }

    /// A new model in place of the old one; only the temperatures stay.
    fn renew_model(&mut self) {
        let physical = self.model.physical();
        self.model = build_model(&self.options, &self.faults, self.mcu_shutdown);
        self.model.set_physical(physical);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_memory_of_this_machine_is_read() {
        assert!(super::memory().is_some_and(|left| left > 1000));
    }
}
