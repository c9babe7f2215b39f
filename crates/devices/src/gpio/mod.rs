//! Lines of GPIO chips, for switches, transmitters and buttons.
//!
//! [`Gpio`] hands out lines, each to one user at a time, from a [`Chips`]: the kernel's ([`KernelChips`]), or simulated ones in tests.
//! Source: wire/3-devices.md section 10.7.

pub(crate) mod clock;
mod kernel;
mod pin;
#[cfg(test)]
pub(crate) mod simulated;

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rpc::transfer::Boxed;
use tokio::time::Instant;

pub use kernel::KernelChips;
pub use pin::{Bias, Pin};

/// Name by which the kernel shows who uses a line.
pub const CONSUMER: &str = "bowsprit";

/// Why a line cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpioError {
    /// Another section has it.
    #[error("the line {0} is used by another section")]
    Taken(String),
    /// What the system says.
    #[error("{0}")]
    System(String),
}

/// An output. Levels are logical: with `!` in the pin, true is electrically low.
pub trait Output: Send + Sync {
    /// Sets the level. May take milliseconds behind a slow bus.
    ///
    /// # Errors
    /// What the system says.
    fn set(&self, level: bool) -> Result<(), GpioError>;

    /// The level that the line has.
    ///
    /// # Errors
    /// What the system says.
    fn level(&self) -> Result<bool, GpioError>;
}

/// A change of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The logical level after it.
    pub level: bool,
    /// When.
    pub at: Instant,
}

/// An input whose changes are watched.
pub trait Input: Send + Sync {
    /// The present level.
    ///
    /// # Errors
    /// What the system says.
    fn level(&self) -> Result<bool, GpioError>;

    /// Waits for the next change. Nothing is lost when the future is dropped.
    fn edge(&self) -> Boxed<'_, Result<Edge, GpioError>>;
}

/// Where lines come from.
pub trait Chips: Send + Sync {
    /// Makes a line an output. Without an initial level one that is an output already keeps its level, and any other begins low: to take a
    /// floating input for a level would switch something on.
    ///
    /// # Errors
    /// What the system says.
    fn output(&self, pin: &Pin, initial: Option<bool>) -> Result<Box<dyn Output>, GpioError>;

    /// Makes a line an input. Within a tokio runtime.
    ///
    /// # Errors
    /// What the system says.
    fn input(&self, pin: &Pin) -> Result<Box<dyn Input>, GpioError>;
}

/// Hands out lines. Clones hand out the same ones.
#[derive(Clone)]
pub struct Gpio {
    chips: Arc<dyn Chips>,
    taken: Arc<Mutex<HashSet<(String, u32)>>>,
}

/// A line that belongs to one section; free again when this is dropped.
pub struct Claim {
    gpio: Gpio,
    pin: Pin,
}

impl Claim {
    /// The line as output; see [`Chips::output`].
    ///
    /// # Errors
    /// What the system says.
    pub fn output(&self, initial: Option<bool>) -> Result<Box<dyn Output>, GpioError> {
        self.gpio.chips.output(&self.pin, initial)
    }

    /// The line as input. Within a tokio runtime.
    ///
    /// # Errors
    /// What the system says.
    pub fn input(&self) -> Result<Box<dyn Input>, GpioError> {
        self.gpio.chips.input(&self.pin)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.gpio.taken.lock().remove(&place(&self.pin));
    }
}

impl Gpio {
    /// Hands out lines of these chips.
    #[must_use]
    pub fn new(chips: Arc<dyn Chips>) -> Self {
        Self { chips, taken: Arc::default() }
    }

    /// Takes a line, which need not exist yet.
    ///
    /// # Errors
    /// When another section has it.
    pub fn claim(&self, pin: &Pin) -> Result<Claim, GpioError> {
        if !self.taken.lock().insert(place(pin)) {
            return Err(GpioError::Taken(format!("{}/gpio{}", pin.chip, pin.line)));
        }
        Ok(Claim { gpio: self.clone(), pin: pin.clone() })
    }
}

fn place(pin: &Pin) -> (String, u32) {
    (pin.chip.clone(), pin.line)
}

impl Default for Gpio {
    fn default() -> Self {
        Self::new(Arc::new(KernelChips))
    }
}

#[cfg(test)]
mod tests {
    use super::simulated::SimulatedChips;
    use super::*;

    #[test]
    fn a_line_has_one_user_at_a_time() {
        let gpio = Gpio::new(Arc::new(SimulatedChips::default()));
        let pin = Pin::read("gpio4").unwrap();
        let claim = gpio.claim(&pin).unwrap();
        assert!(claim.output(Some(true)).unwrap().level().unwrap());
        let inverted = Pin::read("!gpiochip0/gpio4").unwrap();
        assert_eq!(gpio.claim(&inverted).err(), Some(GpioError::Taken("gpiochip0/gpio4".to_owned())));
        drop(claim);
        let level = gpio.claim(&inverted).unwrap().output(None).unwrap().level();
        assert_eq!(level, Ok(false), "the line keeps its electrical level");
    }
}
