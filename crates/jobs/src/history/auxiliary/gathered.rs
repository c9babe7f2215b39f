//! What becomes of the values of one field. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::{Field, Strategy};

/// Values that a collecting field keeps; the oldest gives way.
pub const MAX_COLLECTED: usize = 100;

/// What a field has gathered; kept with the record, so that a restart of the service loses nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Gathered {
    value: Option<Value>,
    last: Option<f64>,
    count: u64,
}

pub(super) fn round(value: f64, precision: Option<u8>) -> f64 {
    let Some(precision) = precision else { return value };
    let scale = 10_f64.powi(i32::from(precision.min(12)));
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

impl Gathered {
    pub(super) fn start(&mut self, strategy: Strategy, initial: Option<Value>) {
        let number = initial.as_ref().and_then(Value::as_f64);
        *self = match strategy {
            Strategy::Basic => Self { value: initial.or(self.value.take()), ..Self::default() },
            Strategy::Delta => Self { value: to_value(0.0), last: number, count: 0 },
            Strategy::Accumulate | Strategy::Average => Self { value: to_value(number.unwrap_or(0.0)), ..Self::default() },
            Strategy::Maximum | Strategy::Minimum => Self { value: number.and_then(to_value), ..Self::default() },
            Strategy::Collect => {
                let list = match initial {
                    Some(Value::Array(list)) => list.into_iter().take(MAX_COLLECTED).collect(),
                    Some(Value::Null) | None => Vec::new(),
                    Some(one) => vec![one],
                };
                Self { value: Some(Value::Array(list)), ..Self::default() }
            }
        };
    }

    /// Takes a value in; `counts` is false outside of jobs and in pauses that do not count.
    pub(super) fn take(&mut self, strategy: Strategy, value: Value, counts: bool) {
        if strategy == Strategy::Delta {
            let Some(now) = value.as_f64() else { return };
            let before = self.last.replace(now);
            if let (true, Some(before)) = (counts, before) {
                self.value = to_value(self.number() + now - before);
            }
            return;
        }
        if !counts {
            return;
        }
        if strategy == Strategy::Basic {
            self.value = Some(value);
            return;
        }
        if strategy == Strategy::Collect {
            let Some(Value::Array(list)) = &mut self.value else { return };
            if !list.contains(&value) {
                list.push(value);
                if list.len() > MAX_COLLECTED {
                    list.remove(0);
                }
            }
            return;
        }
        let Some(number) = value.as_f64() else { return };
        let before = self.value.as_ref().and_then(Value::as_f64);
        self.count += 1;
        let next = match (strategy, before) {
            (Strategy::Accumulate, before) => before.unwrap_or(0.0) + number,
            (Strategy::Average, Some(before)) if self.count > 1 => before + (number - before) / count_as_f64(self.count),
            (Strategy::Maximum, Some(before)) => before.max(number),
            (Strategy::Minimum, Some(before)) => before.min(number),
            _ => number,
        };
        self.value = to_value(next).or(self.value.take());
    }

    fn number(&self) -> f64 {
        self.value.as_ref().and_then(Value::as_f64).unwrap_or(0.0)
    }

    pub(super) fn shown(&self, field: &Field) -> Value {
        match (&self.value, field.strategy) {
            (Some(Value::Number(number)), _) if number.is_f64() => to_value(round(self.number(), field.precision)).unwrap_or(Value::Null),
            (Some(value), _) => value.clone(),
            (None, Strategy::Basic) => Value::Null,
            (None, Strategy::Collect) => Value::Array(Vec::new()),
            (None, _) => to_value(0.0).unwrap_or(Value::Null),
        }
    }
}

/// A number of JSON; none for what JSON cannot say.
fn to_value(number: f64) -> Option<Value> {
    Number::from_f64(number).map(Value::Number)
}

#[allow(clippy::cast_precision_loss, reason = "nobody reports 2^53 values in a job")]
fn count_as_f64(count: u64) -> f64 {
    count as f64
}
