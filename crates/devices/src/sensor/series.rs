//! The numbers of one sensor: now, and one a second for a while. No I/O.

use std::collections::{BTreeMap, VecDeque};

use protocol::sensor::SensorValues;
use serde_json::Value;

use super::reading::MAX_PARAMETERS;

/// Measurements by parameter, oldest first.
pub(super) type Measurements = BTreeMap<String, Vec<f64>>;

/// A message that sets some parameters leaves the others as they were, and all lists are continued at each tick: their ends belong together.
#[derive(Debug)]
pub(super) struct Series {
    size: usize,
    values: SensorValues,
    /// They have changed since the last tick.
    has_changed: bool,
    kept: BTreeMap<String, VecDeque<f64>>,
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
        for (name, number) in &self.values {
            let number = number.as_f64().unwrap_or_default();
            if let Some(list) = self.kept.get_mut(name) {
                if list.len() >= self.size {
                    list.pop_front();
                }
                list.push_back(number);
                continue;
            }
            if self.kept.len() >= MAX_PARAMETERS {
                // Templates that make up names: those that are gone make room.
                self.kept.retain(|name, _| self.values.contains_key(name));
            }
            self.kept.insert(name.clone(), [number].into());
        }
        std::mem::take(&mut self.has_changed)
    }

    pub(super) fn measurements(&self) -> Measurements {
        self.kept.iter().map(|(name, list)| (name.clone(), list.iter().copied().collect())).collect()
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
            BTreeMap::from([("a".into(), vec![2.0; 3]), ("b".into(), vec![5.0; 3]), ("c".into(), vec![0.5; 2])])
        );
        series.lose();
        assert!(series.tick() && series.values().is_empty());
        assert_eq!((series.tick(), series.measurements()["c"].len()), (false, 2));
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
