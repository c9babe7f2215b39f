//! The numbers of one sensor: now, and one a second for a while. No I/O.

use std::collections::{BTreeMap, VecDeque};

use protocol::sensor::SensorValues;
use serde_json::Value;

use super::reading::MAX_PARAMETERS;

/// Measurements by parameter, oldest first; null means no measurement at that time, as in the temperature store.
pub(super) type Measurements = BTreeMap<String, Vec<Option<f64>>>;

/// A message that sets some parameters leaves the others as they were, and all lists are continued at each tick: their ends belong together.
#[derive(Debug)]
pub(super) struct Series {
    size: usize,
    values: SensorValues,
    /// They have changed since the last tick.
    has_changed: bool,
    kept: BTreeMap<String, Kept>,
}

/// The list of a parameter.
#[derive(Debug, Default)]
struct Kept {
    numbers: VecDeque<Option<f64>>,
    /// Ticks at its end that have no number.
    missing: usize,
}

impl Kept {
    fn push(&mut self, number: Option<f64>, size: usize) {
        self.missing = if number.is_some() { 0 } else { self.missing + 1 };
        if self.numbers.len() >= size {
            self.numbers.pop_front();
        }
        self.numbers.push_back(number);
    }

    fn is_known(&self) -> bool {
        self.missing < self.numbers.len()
    }
}

impl Series {
    pub(super) fn new(size: usize) -> Self {
        Self { size, values: SensorValues::new(), has_changed: false, kept: BTreeMap::new() }
    }

    /// Takes the numbers of a message.
    pub(super) fn take(&mut self, numbers: SensorValues) {
        for (name, number) in numbers {
            if let Some(value) = self.values.get_mut(&name) {
                self.has_changed |= *value != number;
                *value = number;
            } else if self.values.len() < MAX_PARAMETERS {
                self.has_changed = true;
                self.values.insert(name, number);
            }
        }
    }

    /// Nobody knows the numbers any more.
    pub(super) fn lose(&mut self) {
        self.has_changed |= !self.values.is_empty();
        self.values.clear();
    }

    pub(super) fn values(&self) -> &SensorValues {
        &self.values
    }

    /// A second is over; true when the numbers have changed in it.
    pub(super) fn tick(&mut self) -> bool {
        if self.values.keys().any(|name| !self.kept.contains_key(name)) {
            for name in self.values.keys() {
                if self.kept.len() >= MAX_PARAMETERS {
                    // Templates that make up names: those that are gone make room.
                    self.kept.retain(|name, _| self.values.contains_key(name));
                }
                self.kept.entry(name.clone()).or_default();
            }
        }
        for (name, list) in &mut self.kept {
            list.push(self.values.get(name).and_then(Value::as_f64), self.size);
        }
        self.kept.retain(|_, list| list.is_known());
        std::mem::take(&mut self.has_changed)
    }

    pub(super) fn measurements(&self) -> Measurements {
        self.kept.iter().map(|(name, list)| (name.clone(), list.numbers.iter().copied().collect())).collect()
    }

    pub(super) fn number(&self, parameter: &str) -> Option<Value> {
        self.values.get(parameter).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn numbers(value: &Value) -> SensorValues {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn numbers_are_kept_each_second_and_told_when_they_change() {
        let mut series = Series::new(3);
        assert!(!series.tick());
        series.take(numbers(&json!({"a": 1, "b": 5})));
        series.take(numbers(&json!({"a": 2})));
        assert!(series.tick());
        assert_eq!(series.values(), &numbers(&json!({"a": 2, "b": 5})), "b stays");
        series.take(numbers(&json!({"a": 2})));
        assert!(!series.tick(), "the same again");
        series.take(numbers(&json!({"c": 0.5})));
        assert!(series.tick());
        series.tick();
        assert_eq!(
            series.measurements(),
            BTreeMap::from([("a".into(), vec![Some(2.0); 3]), ("b".into(), vec![Some(5.0); 3]), ("c".into(), vec![Some(0.5); 2])])
        );
        series.lose();
        assert!(series.tick() && series.values().is_empty());
        assert!(!series.tick(), "still nothing");
    }

    #[test]
    fn lists_end_at_the_same_moment_and_gaps_stay_where_they_were() {
        let mut series = Series::new(4);
        series.take(numbers(&json!({"energy": 1, "power": 5})));
        series.tick();
        series.lose();
        series.tick();
        series.take(numbers(&json!({"power": 6})));
        series.tick();
        let lists = |energy: &[Option<f64>], power: &[Option<f64>]| {
            BTreeMap::from([("energy".to_owned(), energy.to_vec()), ("power".to_owned(), power.to_vec())])
        };
        assert_eq!(series.measurements(), lists(&[Some(1.0), None, None], &[Some(5.0), None, Some(6.0)]));
        series.take(numbers(&json!({"energy": 2})));
        series.tick();
        series.tick();
        assert_eq!(series.measurements(), lists(&[None, None, Some(2.0), Some(2.0)], &[None, Some(6.0), Some(6.0), Some(6.0)]));
        series.lose();
        for _ in 0..4 {
            series.tick();
        }
        assert_eq!(series.measurements(), BTreeMap::new(), "a list without any number is forgotten");
    }

    #[test]
    fn made_up_names_cost_nothing() {
        let mut series = Series::new(10);
        for n in 0..1000 {
            series.take(numbers(&json!({format!("p{n}"): n})));
            series.tick();
        }
        assert_eq!((series.values().len(), series.measurements().len()), (MAX_PARAMETERS, MAX_PARAMETERS));
        for n in 0..1000 {
            series.lose();
            series.take(numbers(&json!({format!("q{n}"): n})));
            series.tick();
        }
        assert!(series.measurements().len() <= MAX_PARAMETERS);
    }
}
