//! Order and parts of lists, for filters and methods.

use std::cmp::Ordering;

use super::heap::Heap;
use super::value::{Key, Value};
use crate::error::Result;

impl Heap {
    /// The items in the order of their keys; equal ones stay as they are.
    pub(crate) fn sorted(&mut self, items: Vec<Value>, keys: Vec<Value>, reverse: bool) -> Result<Vec<Value>> {
        let mut pairs: Vec<(Value, Value)> = keys.into_iter().zip(items).collect();
        // A fault cannot leave the comparison; it is kept, and everything counts as equal from then on.
        let mut fault = None;
        pairs.sort_by(|(a, _), (b, _)| {
            if fault.is_some() {
                return Ordering::Equal;
            }
            let order = match self.order(a, b) {
                Ok(order) => order.unwrap_or(Ordering::Equal),
                Err(error) => {
                    fault = Some(error);
                    Ordering::Equal
                }
            };
            if reverse { order.reverse() } else { order }
        });
        fault.map_or_else(|| Ok(pairs.into_iter().map(|(_, item)| item).collect()), Err)
    }

    /// Small letters instead of large ones, unless the case matters.
    pub(crate) fn folded(&mut self, value: &Value, case_sensitive: bool) -> Result<Value> {
        match value {
            Value::Text(text) if !case_sensitive => self.text(text.to_lowercase()),
            other => Ok(other.clone()),
        }
    }

    /// `a.b.0` of a value: the attribute of filters such as `map` and `sort`.
    pub(crate) fn at_path(&mut self, value: &Value, path: &Value) -> Result<Value> {
        let Value::Text(path) = path else { return self.item(value, path) };
        let mut value = value.clone();
        for part in path.split('.') {
            let index = part.parse().map_or_else(|_| Value::from(part), Value::Int);
            value = match (&value, &index) {
                // A dictionary from JSON has texts as keys, also where they look like numbers.
                (Value::Dict(map), Value::Int(_)) if self.maps[*map].contains_key(&Key::Text(part.into())) => {
                    self.item(&value, &Value::from(part))?
                }
                _ => self.item(&value, &index)?,
            };
        }
        Ok(value)
    }
}
