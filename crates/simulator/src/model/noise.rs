//! Small repeatable noise for sensor readings: the same seed gives the same printer.

/// A xorshift generator. Not for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        // A zero state would stay zero for ever.
        Self(seed ^ 0x9e37_79b9_7f4a_7c15 | 1)
    }

    /// A value in −1.0 … 1.0.
    pub(crate) fn sample(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_and_stays_in_range() {
        let mut a = Noise::new(7);
        let mut b = Noise::new(7);
        let mut sum = 0.0;
        for _ in 0..1000 {
            let value = a.sample();
            assert_eq!(value, b.sample());
            assert!((-1.0..=1.0).contains(&value));
            sum += value;
        }
        assert!(sum.abs() < 100.0, "{sum}");
    }
}
