//! Type `rf`: sockets that listen to a radio transmitter on a pin. They never answer, so the state is what was sent last.

use std::time::{Duration, Instant};

use rpc::transfer::Boxed;

use super::gpio::LazyPin;
use super::{Driver, Fault};
use crate::gpio::{Gpio, GpioError, Output, Pin};
use crate::power::build::Section;
use crate::power::model::Reading;
use crate::power::options::{PinOptions, PowerOptions, RfOptions};

/// Digits of a code.
const DIGITS: usize = 24;

/// How often a code is sent.
const REPEATS: usize = 10;

/// Length of a pulse.
const PULSE: Duration = Duration::from_micros(350);

/// The last piece of each pause is spent awake: sleeping is not exact enough.
const AWAKE: Duration = Duration::from_micros(200);

pub(crate) struct RfRecipe {
    pin: Pin,
    on: Code,
    off: Code,
}

pub(crate) fn read(_: &PowerOptions, section: &mut Section<'_, '_, '_>) -> Option<RfRecipe> {
    let (pin, codes) = (section.take::<PinOptions>(), section.take::<RfOptions>()?);
    let mut code = |option, text: &str| match Code::read(text) {
        Some(code) => Some(code),
        None => section.reject(option, format!("expected 1 to {DIGITS} binary digits")),
    };
    let (on, off) = (code("on_code", &codes.on_code), code("off_code", &codes.off_code));
    Some(RfRecipe { pin: pin?.pin, on: on?, off: off? })
}

impl RfRecipe {
    pub(crate) fn driver(self, gpio: &Gpio) -> Box<dyn Driver> {
        let pin = LazyPin::new(gpio, self.pin, Some(false));
        Box::new(Transmitter { pin, on: self.on, off: self.off, is_on: false })
    }
}

struct Transmitter {
    pin: LazyPin,
    on: Code,
    off: Code,
    is_on: bool,
}

impl Driver for Transmitter {
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>> {
        // Opens the line, so that a wrong pin shows at once.
        Box::pin(async move { self.pin.with(|_| Ok(())).await.map(|()| Reading::from(self.is_on)) })
    }

    fn switch(&mut self, on: bool) -> Boxed<'_, Result<bool, Fault>> {
        Box::pin(async move {
            let code = if on { self.on.clone() } else { self.off.clone() };
            self.pin.with(move |line| code.send(line)).await?;
            self.is_on = on;
            Ok(on)
        })
    }
}

/// A code of exactly [`DIGITS`] digits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Code(Vec<bool>);

impl Code {
    fn read(text: &str) -> Option<Self> {
        let digits: Vec<bool> = text.trim().chars().map(|digit| digit.to_digit(2).map(|digit| digit == 1)).collect::<Option<_>>()?;
        let missing = DIGITS.checked_sub(digits.len()).filter(|missing| *missing < DIGITS)?;
        Some(Self(std::iter::repeat_n(false, missing).chain(digits).collect()))
    }

    /// Levels of the line and how many pulses they last: `0` is one high and three low, `1` the other way, and a pause follows.
    fn levels(&self) -> Vec<(bool, u32)> {
        let digit = |one: &bool| if *one { [(true, 3), (false, 1)] } else { [(true, 1), (false, 3)] };
        let code: Vec<_> = self.0.iter().flat_map(digit).chain([(true, 1), (false, 31)]).collect();
        code.repeat(REPEATS)
    }

    /// Sends it: about half a second. Each edge has its own time, so that delays do not add up.
    fn send(&self, line: &dyn Output) -> Result<(), GpioError> {
        let mut edge = Instant::now();
        for (level, pulses) in self.levels() {
            wait_until(edge);
            line.set(level)?;
            edge += PULSE * pulses;
        }
        wait_until(edge);
        line.set(false)
    }
}

fn wait_until(at: Instant) {
    let left = at.saturating_duration_since(Instant::now());
    if left > AWAKE {
        std::thread::sleep(left - AWAKE);
    }
    while Instant::now() < at {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::gpio::simulated::SimulatedChips;

    #[test]
    fn codes_are_binary_and_filled_up() {
        assert_eq!(Code::read("1").unwrap().0.iter().position(|one| *one), Some(23));
        assert_eq!(Code::read(&"10".repeat(12)).unwrap().0.len(), 24);
        for bad in ["", "2", "1 0", &"1".repeat(25)] {
            assert_eq!(Code::read(bad), None, "{bad:?}");
        }
    }

    #[tokio::test]
    async fn a_code_is_sent_ten_times_with_its_pulses() {
        let chips = SimulatedChips::default();
        let code = Code::read("000000000000000000000001").unwrap();
        let recipe = RfRecipe { pin: Pin::read("gpio5").unwrap(), on: code.clone(), off: Code::read("0").unwrap() };
        let mut driver = recipe.driver(&Gpio::new(Arc::new(chips.clone())));
        assert_eq!(driver.query().await, Ok(Reading::Off));
        assert_eq!(driver.switch(true).await, Ok(true));
        assert_eq!(driver.query().await, Ok(Reading::On));
        // Without the level that the line began with and the one at the end.
        let history = chips.history();
        let sent = &history[1..history.len() - 1];
        assert_eq!(
            sent.iter().map(|(level, _)| *level).collect::<Vec<_>>(),
            code.levels().iter().map(|(level, _)| *level).collect::<Vec<_>>()
        );
        assert_eq!(sent.len(), 10 * (24 + 1) * 2);
        assert_eq!(code.levels()[46..50], [(true, 3), (false, 1), (true, 1), (false, 31)]);
        let whole = sent[sent.len() - 1].1 - sent[0].1;
        let expected = PULSE * (10 * (24 * 4 + 32) - 31);
        assert!(whole >= expected - Duration::from_millis(1), "{whole:?} instead of {expected:?}");
        assert_eq!(chips.level("gpio5"), Some(false), "idle is low");
    }
}
