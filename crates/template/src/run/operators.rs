//! Arithmetic, comparison and membership with Python's rules.

use std::cmp::Ordering;
use std::sync::Arc;

use super::heap::{Heap, check_depth};
use super::value::{Key, Value};
use crate::error::{Error, Result};
use crate::syntax::ast::{Comparison, Operator};

impl Heap {
    /// `a + b` and the like.
    pub(crate) fn arithmetic(&mut self, operator: Operator, a: &Value, b: &Value) -> Result<Value> {
        if let (Operator::Modulo, Value::Text(format)) = (operator, a) {
            let text = self.percent(format, b)?;
            return self.text(text);
        }
        if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
            return whole(operator, a, b);
        }
        if let (Some(a), Some(b)) = (a.as_float(), b.as_float()) {
            return float(operator, a, b).map(Value::Float);
        }
        match (operator, a, b) {
            (Operator::Add, Value::Text(a), Value::Text(b)) => {
                self.allot(a.len() + b.len())?;
                Ok(Value::Text([&**a, &**b].concat().into()))
            }
            (Operator::Add, Value::List(_), Value::List(_)) | (Operator::Add, Value::Tuple(_), Value::Tuple(_)) => {
                let mut items = self.values(a)?;
                items.extend(self.values(b)?);
                if matches!(a, Value::List(_)) { self.list(items) } else { self.tuple(items) }
            }
            (Operator::Multiply, Value::Text(text), times) | (Operator::Multiply, times, Value::Text(text)) if times.as_int().is_some() => {
                let text = self.repeat(text, times.as_int().unwrap_or(0))?;
                Ok(Value::Text(text.into()))
            }
            (Operator::Multiply, list @ (Value::List(_) | Value::Tuple(_)), times)
            | (Operator::Multiply, times, list @ (Value::List(_) | Value::Tuple(_)))
                if times.as_int().is_some() =>
            {
                let times = usize::try_from(times.as_int().unwrap_or(0)).unwrap_or(0);
                let once = self.values(list)?;
                let length = once.len().saturating_mul(times);
                self.spend(length)?;
                self.allot_many(length, size_of::<Value>())?;
                let items = std::iter::repeat_n(once, if length == 0 { 0 } else { times }).flatten().collect();
                if matches!(list, Value::List(_)) { self.list(items) } else { self.tuple(items) }
            }
            (_, Value::Undefined(name), _) | (_, _, Value::Undefined(name)) => Err(undefined(name.as_ref())),
            _ => Err(Error::render(format!("`{}` cannot be used between {} and {}", symbol(operator), a.kind(), b.kind()))),
        }
    }

    /// `text` again and again.
    pub(crate) fn repeat(&mut self, text: &str, times: i64) -> Result<String> {
        let times = usize::try_from(times).unwrap_or(0);
        self.allot_many(text.len(), times)?;
        // An empty text costs nothing but would be copied as often as asked for.
        Ok(if text.is_empty() { String::new() } else { text.repeat(times) })
    }

    pub(crate) fn negative(&self, value: &Value) -> Result<Value> {
        match (value.as_int(), value) {
            (Some(value), _) => value.checked_neg().map(Value::Int).ok_or_else(too_large),
            (None, Value::Float(value)) => Ok(Value::Float(-value)),
            (None, Value::Undefined(name)) => Err(undefined(name.as_ref())),
            (None, other) => Err(Error::render(format!("expected a number after `-`, found {}", other.kind()))),
        }
    }

    /// One step of a comparison.
    pub(crate) fn compare(&mut self, comparison: Comparison, a: &Value, b: &Value) -> Result<bool> {
        Ok(match comparison {
            Comparison::Equal => self.equal(a, b)?,
            Comparison::NotEqual => !self.equal(a, b)?,
            Comparison::In => self.contains(b, a)?,
            Comparison::NotIn => !self.contains(b, a)?,
            Comparison::Less => self.order(a, b)? == Some(Ordering::Less),
            Comparison::LessOrEqual => matches!(self.order(a, b)?, Some(Ordering::Less | Ordering::Equal)),
            Comparison::Greater => self.order(a, b)? == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => matches!(self.order(a, b)?, Some(Ordering::Greater | Ordering::Equal)),
        })
    }

    /// Which comes first; `None` when one is not a number (`nan`).
    pub(crate) fn order(&mut self, a: &Value, b: &Value) -> Result<Option<Ordering>> {
        self.order_at(a, b, 0)
    }

    fn order_at(&mut self, a: &Value, b: &Value, depth: usize) -> Result<Option<Ordering>> {
        self.spend(1)?;
        check_depth(depth)?;
        match (a, b) {
            (Value::Text(a), Value::Text(b)) => Ok(Some(a.cmp(b))),
            (Value::List(x), Value::List(y)) | (Value::Tuple(x), Value::Tuple(y)) => {
                for index in 0..self.lists[*x].len().min(self.lists[*y].len()) {
                    let (a, b) = (self.lists[*x][index].clone(), self.lists[*y][index].clone());
                    if !self.equal(&a, &b)? {
                        return self.order_at(&a, &b, depth + 1);
                    }
                }
                Ok(Some(self.lists[*x].len().cmp(&self.lists[*y].len())))
            }
            (Value::Undefined(name), _) | (_, Value::Undefined(name)) => Err(undefined(name.as_ref())),
            _ => match (a.as_int(), b.as_int(), a.as_float(), b.as_float()) {
                (Some(a), Some(b), ..) => Ok(Some(a.cmp(&b))),
                (_, _, Some(a), Some(b)) => Ok(a.partial_cmp(&b)),
                _ => Err(Error::render(format!("{} and {} have no order", a.kind(), b.kind()))),
            },
        }
    }

    /// `item in container`.
    pub(crate) fn contains(&mut self, container: &Value, item: &Value) -> Result<bool> {
        match container {
            Value::Text(text) => match item {
                Value::Text(part) => Ok(text.contains(&**part)),
                other => Err(Error::render(format!("expected text before `in` when text follows, found {}", other.kind()))),
            },
            Value::Dict(map) => Ok(self.maps[*map].contains_key(&self.key(item)?)),
            Value::List(_) | Value::Tuple(_) => {
                let items = self.values(container)?;
                for other in &items {
                    if self.equal(item, other)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Range(range) => Ok(item.as_int().is_some_and(|item| {
                let offset = i128::from(item) - i128::from(range.start);
                let step = i128::from(range.step);
                offset % step == 0 && (0..range.length as i128).contains(&(offset / step))
            })),
            Value::Undefined(_) => Ok(false),
            other => Err(Error::render(format!("expected a list, a dictionary or text after `in`, found {}", other.kind()))),
        }
    }

    /// `of[index]`; what is not there is undefined.
    pub(crate) fn item(&mut self, of: &Value, index: &Value) -> Result<Value> {
        match of {
            Value::Undefined(name) => Err(undefined(name.as_ref())),
            Value::Dict(map) | Value::Namespace(map) => {
                let Ok(key) = self.key(index) else { return Ok(Value::Undefined(None)) };
                Ok(self.maps[*map].get(&key).cloned().unwrap_or(Value::Undefined(None)))
            }
            Value::List(list) | Value::Tuple(list) => {
                let items = &self.lists[*list];
                let found = index.as_int().and_then(|index| place(index, items.len())).and_then(|index| items.get(index));
                Ok(found.cloned().unwrap_or(Value::Undefined(None)))
            }
            Value::Range(range) => {
                let found = index.as_int().and_then(|index| place(index, range.length)).and_then(|index| range.get(index));
                Ok(found.map_or(Value::Undefined(None), Value::Int))
            }
            Value::Text(text) => {
                self.spend(1 + text.len() / 64)?;
                let found = index.as_int().and_then(|index| {
                    let index = if index < 0 { place(index, text.chars().count())? } else { usize::try_from(index).ok()? };
                    text.chars().nth(index)
                });
                Ok(found.map_or(Value::Undefined(None), |c| Value::Text(c.to_string().into())))
            }
            _ => Ok(Value::Undefined(None)),
        }
    }

    /// `of[start:stop:step]`.
    pub(crate) fn slice(&mut self, of: &Value, parts: &[Value; 3]) -> Result<Value> {
        let bound = |value: &Value| match value {
            Value::None => Ok(None),
            other => {
                other.as_int().map(Some).ok_or_else(|| Error::render(format!("expected whole numbers in a slice, found {}", other.kind())))
            }
        };
        let [start, stop, step] = [bound(&parts[0])?, bound(&parts[1])?, bound(&parts[2])?];
        let step = step.unwrap_or(1);
        if step == 0 {
            return Err(Error::render("the step of a slice must not be 0"));
        }
        if let Value::Undefined(name) = of {
            return Err(undefined(name.as_ref()));
        }
        if !matches!(of, Value::Text(_) | Value::List(_) | Value::Tuple(_) | Value::Range(_)) {
            return Err(Error::render(format!("expected a list or text before a slice, found {}", of.kind())));
        }
        let items = self.values(of)?;
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let clamp = |value: Option<i64>, default: i64| {
            let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
            value.map_or(default, |value| if value < 0 { (value.saturating_add(length)).max(low) } else { value.min(high) })
        };
        let (start, stop) = if step > 0 { (clamp(start, 0), clamp(stop, length)) } else { (clamp(start, length - 1), clamp(stop, -1)) };
        let mut chosen = Vec::new();
        let mut at = start;
        while (step > 0 && at < stop) || (step < 0 && at > stop) {
            if let Some(item) = usize::try_from(at).ok().and_then(|at| items.get(at)) {
                chosen.push(item.clone());
            }
            at = at.saturating_add(step);
        }
        match of {
            Value::Text(_) => {
                let text: String = chosen.iter().filter_map(|item| if let Value::Text(c) = item { Some(&**c) } else { None }).collect();
                self.text(text)
            }
            Value::Tuple(_) => self.tuple(chosen),
            _ => self.list(chosen),
        }
    }

    /// `a ~ b ~ c`.
    pub(crate) fn concat(&mut self, parts: &[Value]) -> Result<Value> {
        let parts = parts.iter().map(|part| self.str(part)).collect::<Result<Vec<Arc<str>>>>()?;
        self.allot(parts.iter().map(|part| part.len()).sum())?;
        Ok(Value::Text(parts.concat().into()))
    }

    pub(crate) fn member(&self, map: usize, name: &Arc<str>) -> Option<Value> {
        self.maps[map].get(&Key::Text(name.clone())).cloned()
    }
}

/// The place that an index means: negative ones count from the end.
pub(crate) fn place(index: i64, length: usize) -> Option<usize> {
    if index >= 0 { usize::try_from(index).ok() } else { length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?) }
}

/// The fault of using an undefined value.
pub(crate) fn undefined(name: Option<&Arc<str>>) -> Error {
    match name {
        Some(name) => Error::render(format!("`{name}` is undefined")),
        None => Error::render("a value that is used here is undefined"),
    }
}

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::FloorDivide => "//",
        Operator::Modulo => "%",
        Operator::Power => "**",
    }
}

fn too_large() -> Error {
    Error::render("the result does not fit into 64 bits")
}

fn by_zero() -> Error {
    Error::render("division by zero")
}

fn whole(operator: Operator, a: i64, b: i64) -> Result<Value> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide if b == 0 => return Err(by_zero()),
        Operator::Divide => return Ok(Value::Float(a as f64 / b as f64)),
        Operator::FloorDivide | Operator::Modulo if b == 0 => return Err(by_zero()),
        Operator::FloorDivide => a.checked_div_euclid(b).map(|_| floor_division(a, b)),
        Operator::Modulo => Some(if b == -1 { 0 } else { floor_modulo(a, b) }),
        Operator::Power => match u32::try_from(b) {
            Ok(exponent) => a.checked_pow(exponent),
            Err(_) if b >= 0 && matches!(a, -1..=1) => Some(if a == -1 && b % 2 == 0 { 1 } else { a }),
            Err(_) if b >= 0 => None,
            Err(_) if a == 0 => return Err(by_zero()),
            Err(_) => return Ok(Value::Float((a as f64).powf(b as f64))),
        },
    };
    result.map(Value::Int).ok_or_else(too_large)
}

fn floor_division(a: i64, b: i64) -> i64 {
    let quotient = a / b;
    if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

fn floor_modulo(a: i64, b: i64) -> i64 {
    let rest = a % b;
    if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
}

fn float(operator: Operator, a: f64, b: f64) -> Result<f64> {
    let divides = matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Modulo);
    if divides && b == 0.0 {
        return Err(by_zero());
    }
    let result = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::FloorDivide => (a / b).floor(),
        Operator::Modulo => {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
        Operator::Power => a.powf(b),
    };
    if matches!(operator, Operator::Power) && (result.is_nan() || result.is_infinite()) && a.is_finite() && b.is_finite() {
        return Err(Error::render("the result of `**` is not a number that can be held"));
    }
    Ok(result)
}
