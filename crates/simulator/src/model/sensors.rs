//! Readings that nothing depends on: chamber and computer temperature, microcontroller and system statistics.

use super::heater::round2;
use super::noise::Noise;

/// Seconds between two readings of a thermometer.
const INTERVAL: f64 = 0.3;

/// A thermometer with the extremes that it has seen, °C.
#[derive(Debug, Clone)]
pub(super) struct Thermometer {
    base: f64,
    spread: f64,
    pub(super) reading: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

impl Thermometer {
    fn new(base: f64, spread: f64) -> Self {
        Self { base, spread, reading: base, lowest: base, highest: base }
    }

    fn read(&mut self, noise: &mut Noise) {
        self.reading = round2(self.base + self.spread * noise.sample());
        self.lowest = self.lowest.min(self.reading);
        self.highest = self.highest.max(self.reading);
    }
}

/// All of them.
#[derive(Debug, Clone)]
pub(super) struct Sensors {
    pub(super) chamber: Thermometer,
    pub(super) host: Thermometer,
    /// Statistics, renewed each second: whole seconds of model time and load of the machine.
    pub(super) seconds: u64,
    pub(super) load: f64,
    next_reading: f64,
}

impl Default for Sensors {
    fn default() -> Self {
        Self { chamber: Thermometer::new(25.0, 0.03), host: Thermometer::new(42.1, 0.4), seconds: 0, load: 0.25, next_reading: 0.0 }
    }
}

impl Sensors {
    /// Takes the readings that are due.
    pub(super) fn pass(&mut self, now: f64, noise: &mut Noise) {
        if now >= self.next_reading {
            self.next_reading = now + INTERVAL;
            self.chamber.read(noise);
        }
        if now as u64 > self.seconds {
            self.seconds = now as u64;
            self.host.read(noise);
            self.load = round2(0.3 + 0.1 * noise.sample());
        }
    }
}
