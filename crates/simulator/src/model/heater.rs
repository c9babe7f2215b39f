//! A heater with its thermometer: a first-order body (power in, loss to the room) under a proportional controller.

use super::noise::Noise;

/// Temperature of the room, °C.
pub(crate) const ROOM: f64 = 24.0;

/// Longest stretch integrated in one go, seconds; the controller is stable at this step.
const STEP: f64 = 0.5;

/// After this many seconds without anybody looking every body has settled, so integrating is pointless.
const SETTLED: f64 = 1800.0;

/// Controller gain: share of full power per °C below the target.
const GAIN: f64 = 0.06;

/// Reading noise, °C.
const NOISE: f64 = 0.03;

/// Fixed properties of a heater.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeaterKind {
    /// Object name: `extruder`, `heater_bed`.
    pub(crate) name: &'static str,
    /// Temperature rise over the room at full power for ever, °C.
    pub(crate) rise: f64,
    /// Time constant, seconds.
    pub(crate) tau: f64,
    /// Highest allowed target, °C.
    pub(crate) max_target: f64,
    /// `M109` and `M190` are content within this distance of the target, °C.
    pub(crate) tolerance: f64,
}

/// The hot end.
pub(crate) const EXTRUDER: HeaterKind = HeaterKind { name: "extruder", rise: 380.0, tau: 55.0, max_target: 350.0, tolerance: 1.0 };

/// The bed.
pub(crate) const BED: HeaterKind = HeaterKind { name: "heater_bed", rise: 140.0, tau: 130.0, max_target: 130.0, tolerance: 2.0 };

/// One heater.
#[derive(Debug, Clone)]
pub(crate) struct Heater {
    /// Fixed properties.
    pub(crate) kind: HeaterKind,
    /// True temperature, °C.
    pub(crate) temperature: f64,
    /// Wanted temperature, °C; 0 is off.
    pub(crate) target: f64,
    /// Share of full power, 0–1.
    pub(crate) power: f64,
    reading_error: f64,
}

impl Heater {
    /// A cold heater.
    pub(crate) fn new(kind: HeaterKind) -> Self {
        Self { kind, temperature: ROOM, target: 0.0, power: 0.0, reading_error: 0.0 }
    }

    /// What the thermometer shows, °C with two digits.
    pub(crate) fn reading(&self) -> f64 {
        round2(self.temperature + self.reading_error)
    }

    /// `M109` may go on.
    pub(crate) fn settled(&self) -> bool {
        self.target <= 0.0 || (self.temperature - self.target).abs() <= self.kind.tolerance
    }

    /// Lets `seconds` pass.
    pub(crate) fn pass(&mut self, seconds: f64, noise: &mut Noise) {
        let mut left = seconds;
        if left > SETTLED {
            self.temperature = if self.target > 0.0 { self.target.max(ROOM) } else { ROOM };
            left = STEP;
        }
        while left > 0.0 {
            let step = left.min(STEP);
            self.power = self.wanted_power();
            let end = ROOM + self.power * self.kind.rise;
            self.temperature = end + (self.temperature - end) * (-step / self.kind.tau).exp();
            left -= step;
        }
        self.reading_error = NOISE * noise.sample();
    }

    fn wanted_power(&self) -> f64 {
        if self.target <= 0.0 {
            return 0.0;
        }
        let hold = (self.target - ROOM) / self.kind.rise;
        (hold + GAIN * (self.target - self.temperature)).clamp(0.0, 1.0)
    }
}

/// Two digits after the point, as the real host rounds temperatures.
pub(crate) fn round2(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds_to_settle(mut heater: Heater, target: f64) -> f64 {
        let mut noise = Noise::new(1);
        heater.target = target;
        let mut seconds = 0.0;
        while !heater.settled() {
            heater.pass(0.5, &mut noise);
            seconds += 0.5;
            assert!(seconds < 600.0, "never settles: {heater:?}");
        }
        seconds
    }

    #[test]
    fn heats_in_plausible_time_and_holds() {
        assert!((20.0..90.0).contains(&seconds_to_settle(Heater::new(EXTRUDER), 215.0)));
        assert!((20.0..120.0).contains(&seconds_to_settle(Heater::new(BED), 60.0)));
        let mut heater = Heater::new(EXTRUDER);
        heater.target = 215.0;
        heater.pass(600.0, &mut Noise::new(1));
        assert!((heater.reading() - 215.0).abs() < 1.0, "{heater:?}");
        heater.target = 0.0;
        heater.pass(20.0, &mut Noise::new(1));
        assert!(heater.reading() < 200.0);
        heater.pass(1e9, &mut Noise::new(1));
        assert!((heater.reading() - ROOM).abs() < 1.0);
    }
}
