//! Expressions.

use std::sync::Arc;

use super::arguments::Arguments;
use super::machine::{Machine, failed};
use super::operators::undefined;
use super::value::{Key, Map, Value};
use crate::error::{Error, Result};
use crate::syntax::ast::{Arg, Args, Comparison, Expr, Kind};

impl Machine<'_> {
    /// The value of an expression.
    pub(crate) fn evaluate(&mut self, expr: &Expr) -> Result<Value> {
        self.descend().map_err(|error| error.at(expr.line))?;
        let value = self.kind(&expr.kind).map_err(|error| error.at(expr.line))?;
        self.ascend();
        Ok(value)
    }

    fn kind(&mut self, kind: &Kind) -> Result<Value> {
        match kind {
            Kind::None => Ok(Value::None),
            Kind::Bool(value) => Ok(Value::Bool(*value)),
            Kind::Int(value) => Ok(Value::Int(*value)),
            Kind::Float(value) => Ok(Value::Float(*value)),
            Kind::Text(text) => Ok(Value::Text(text.clone())),
            Kind::Captured => Ok(self.captured.last().cloned().unwrap_or(Value::None)),
            Kind::Name(name) => self.lookup(name),
            Kind::List(parts) => {
                let parts = self.all(parts)?;
                self.heap.list(parts)
            }
            Kind::Tuple(parts) => {
                let parts = self.all(parts)?;
                self.heap.tuple(parts)
            }
            Kind::Dict(pairs) => self.dictionary(pairs),
            Kind::Attr(of, name) => self.attribute(of, name),
            Kind::Item(of, index) => self.subscript(of, index),
            Kind::Slice(of, parts) => self.slice(of, parts),
            Kind::Call(of, args) => self.call(of, args),
            Kind::Filter(of, filter, args) => {
                let value = self.evaluate(of)?;
                let arguments = self.arguments(args)?;
                filter(self, &value, arguments)
            }
            Kind::Test(of, test, args) => {
                let value = self.evaluate(of)?;
                let arguments = self.arguments(args)?;
                test(self, &value, arguments).map(Value::Bool)
            }
            Kind::Not(of) => {
                let value = self.evaluate(of)?;
                Ok(Value::Bool(!self.heap.truth(&value)))
            }
            Kind::Negative(of) => {
                let value = self.evaluate(of)?;
                self.heap.negative(&value)
            }
            Kind::Positive(of) => match self.evaluate(of)? {
                Value::Bool(value) => Ok(Value::Int(i64::from(value))),
                value @ (Value::Int(_) | Value::Float(_)) => Ok(value),
                other => Err(Error::render(format!("expected a number after `+`, found {}", other.kind()))),
            },
            Kind::Binary(operator, a, b) => {
                let a = self.evaluate(a)?;
                let b = self.evaluate(b)?;
                self.heap.arithmetic(*operator, &a, &b)
            }
            Kind::Concat(parts) => {
                let parts = self.all(parts)?;
                self.heap.concat(&parts)
            }
            Kind::Compare(first, rest) => self.comparison(first, rest),
            Kind::And(a, b) => {
                let a = self.evaluate(a)?;
                if self.heap.truth(&a) { self.evaluate(b) } else { Ok(a) }
            }
            Kind::Or(a, b) => {
                let a = self.evaluate(a)?;
                if self.heap.truth(&a) { Ok(a) } else { self.evaluate(b) }
            }
            Kind::Choice(condition, value, otherwise) => {
                let condition = self.evaluate(condition)?;
                match (self.heap.truth(&condition), otherwise) {
                    (true, _) => self.evaluate(value),
                    (false, Some(otherwise)) => self.evaluate(otherwise),
                    (false, None) => Ok(Value::Undefined(None)),
                }
            }
        }
    }

    fn all(&mut self, parts: &[Expr]) -> Result<Vec<Value>> {
        parts.iter().map(|part| self.evaluate(part)).collect()
    }

    fn dictionary(&mut self, pairs: &[(Expr, Expr)]) -> Result<Value> {
        let mut map = Map::with_capacity(pairs.len());
        for (key, value) in pairs {
            let key = self.evaluate(key)?;
            let value = self.evaluate(value)?;
            map.insert(self.heap.key(&key)?, value);
        }
        self.heap.dict(map)
    }

    fn comparison(&mut self, first: &Expr, rest: &[(Comparison, Expr)]) -> Result<Value> {
        let mut left = self.evaluate(first)?;
        for (comparison, expr) in rest {
            let right = self.evaluate(expr)?;
            if !self.heap.compare(*comparison, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    fn attribute(&mut self, of: &Expr, name: &Arc<str>) -> Result<Value> {
        let value = self.evaluate(of)?;
        match self.attribute_of(&value, name)? {
            Value::Undefined(None) => Ok(Value::Undefined(path(of).map(|path| format!("{path}.{name}").into()))),
            found => Ok(found),
        }
    }

    /// `value.name`.
    pub(super) fn attribute_of(&mut self, value: &Value, name: &Arc<str>) -> Result<Value> {
        match value {
            Value::Undefined(unknown) => Err(undefined(unknown.as_ref())),
            Value::Dict(map) | Value::Namespace(map) => Ok(self.heap.member(*map, name).unwrap_or(Value::Undefined(None))),
            Value::Loop(number) => Ok(self.loop_attribute(*number, name)),
            Value::Object(object) => {
                let answer = self.host.attribute(object, name).map_err(failed)?;
                answer.map_or(Ok(Value::Undefined(None)), |answer| self.answered(answer))
            }
            _ => Ok(Value::Undefined(None)),
        }
    }

    fn loop_attribute(&self, number: usize, name: &str) -> Value {
        let Some(state) = self.loops.get(number) else { return Value::Undefined(None) };
        let whole = |value: usize| Value::Int(i64::try_from(value).unwrap_or(i64::MAX));
        let left = state.length.saturating_sub(state.index + 1);
        match name {
            "index" => whole(state.index + 1),
            "index0" => whole(state.index),
            "revindex" => whole(left + 1),
            "revindex0" => whole(left),
            "first" => Value::Bool(state.index == 0),
            "last" => Value::Bool(left == 0),
            "length" => whole(state.length),
            // Only recursive loops, which there are none of, count deeper.
            "depth" => Value::Int(1),
            "depth0" => Value::Int(0),
            "previtem" => state.previous.clone().unwrap_or(Value::Undefined(None)),
            "nextitem" => state.next.clone().unwrap_or(Value::Undefined(None)),
            _ => Value::Undefined(None),
        }
    }

    fn subscript(&mut self, of: &Expr, index: &Expr) -> Result<Value> {
        let value = self.evaluate(of)?;
        let index = self.evaluate(index)?;
        let found = match (&value, &index) {
            (Value::Loop(_) | Value::Object(_), Value::Text(name)) => self.attribute_of(&value, name)?,
            _ => self.heap.item(&value, &index)?,
        };
        match (found, index) {
            (Value::Undefined(None), Value::Text(name)) => Ok(Value::Undefined(path(of).map(|path| format!("{path}.{name}").into()))),
            (found, _) => Ok(found),
        }
    }

    fn slice(&mut self, of: &Expr, parts: &[Option<Expr>; 3]) -> Result<Value> {
        let value = self.evaluate(of)?;
        let mut bounds = [const { Value::None }; 3];
        for (bound, part) in bounds.iter_mut().zip(parts) {
            if let Some(part) = part {
                *bound = self.evaluate(part)?;
            }
        }
        self.heap.slice(&value, &bounds)
    }

    /// Arguments of a call, evaluated in order.
    pub(super) fn arguments(&mut self, args: &Args) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        for arg in &args.0 {
            match arg {
                Arg::Positional(expr) => {
                    let value = self.evaluate(expr)?;
                    arguments.positional.push(value);
                }
                Arg::Named(name, expr) => {
                    let value = self.evaluate(expr)?;
                    arguments.named.push((name.clone(), value));
                }
                Arg::Spread(expr) => {
                    let value = self.evaluate(expr)?;
                    arguments.positional.extend(self.heap.values(&value)?);
                }
                Arg::SpreadNamed(expr) => {
                    let value = self.evaluate(expr)?;
                    let Value::Dict(map) = value else {
                        return Err(Error::render(format!("expected a dictionary after `**`, found {}", value.kind())));
                    };
                    self.heap.spend(self.heap.maps[map].len())?;
                    for (key, value) in &self.heap.maps[map] {
                        let Key::Text(name) = key else {
                            return Err(Error::render("expected texts as keys of the dictionary after `**`"));
                        };
                        arguments.named.push((name.clone(), value.clone()));
                    }
                }
            }
        }
        Ok(arguments)
    }
}

/// The name of a value as it is written, for messages: `secrets.mqtt`.
pub(super) fn path(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Name(name) => Some(name.to_string()),
        Kind::Attr(of, name) => Some(format!("{}.{name}", path(of)?)),
        Kind::Item(of, index) => match &index.kind {
            Kind::Text(name) => Some(format!("{}.{name}", path(of)?)),
            Kind::Int(index) => Some(format!("{}[{index}]", path(of)?)),
            _ => None,
        },
        _ => None,
    }
}
