//! Calls: macros, methods, functions of the caller.

use std::sync::Arc;

use super::arguments::Arguments;
use super::expressions::path;
use super::machine::{Machine, failed};
use super::operators::undefined;
use super::value::Value;
use crate::error::{Error, Result};
use crate::host::{Call, Object};
use crate::syntax::ast::{Args, Expr, Kind};

impl Machine<'_> {
    pub(super) fn call(&mut self, of: &Expr, args: &Args) -> Result<Value> {
        if let Kind::Attr(target, name) = &of.kind {
            let value = self.evaluate(target)?;
            let arguments = self.arguments(args)?;
            return self.call_method(target, &value, name, arguments);
        }
        let function = self.evaluate(of)?;
        let arguments = self.arguments(args)?;
        self.call_value(of, &function, arguments)
    }

    /// A call whose macro gets `caller`.
    pub(super) fn call_with_caller(&mut self, call: &Expr, caller: Value) -> Result<Value> {
        let Kind::Call(of, args) = &call.kind else { return Ok(Value::None) };
        let function = self.evaluate(of)?;
        let mut arguments = self.arguments(args)?;
        arguments.named.push(("caller".into(), caller));
        self.call_value(of, &function, arguments).map_err(|error| error.at(call.line))
    }

    fn call_value(&mut self, of: &Expr, function: &Value, arguments: Arguments) -> Result<Value> {
        match function {
            Value::Macro(number) => self.call_macro(*number, arguments),
            Value::Builtin(builtin) => self.call_builtin(*builtin, arguments),
            Value::Function(name) => self.call_host(None, name, &arguments),
            Value::Undefined(name) => Err(undefined(name.as_ref())),
            other => {
                let name = path(of).map_or(String::new(), |path| format!(" `{path}`"));
                Err(Error::render(format!("{}{name} cannot be called", other.kind())))
            }
        }
    }

    fn call_method(&mut self, target: &Expr, value: &Value, name: &Arc<str>, arguments: Arguments) -> Result<Value> {
        match value {
            Value::Undefined(unknown) => Err(undefined(unknown.as_ref())),
            Value::Object(object) => self.call_host(Some(object), name, &arguments),
            Value::Loop(number) => self.loop_method(*number, name, arguments),
            Value::Namespace(map) => match self.heap.member(*map, name) {
                Some(function) => self.call_value(target, &function, arguments),
                None => Err(Error::render(format!("the namespace has no `{name}`"))),
            },
            _ => self.heap.method(value, name, arguments),
        }
    }

    fn call_host(&mut self, object: Option<&Object>, name: &str, arguments: &Arguments) -> Result<Value> {
        let positional = arguments.positional.iter().map(|value| self.heap.export(value)).collect::<Result<_>>()?;
        let named = arguments.named.iter().map(|(name, value)| Ok((name.to_string(), self.heap.export(value)?))).collect::<Result<_>>()?;
        let answer = self.host.call(&Call { object, name, positional, named }).map_err(failed)?;
        self.answered(answer)
    }

    fn loop_method(&mut self, number: usize, name: &str, arguments: Arguments) -> Result<Value> {
        let index = self.loops.get(number).map_or(0, |state| state.index);
        match name {
            "cycle" if !arguments.positional.is_empty() => {
                let choice = index % arguments.positional.len();
                Ok(arguments.positional.into_iter().nth(choice).unwrap_or(Value::None))
            }
            "cycle" => Err(Error::render("loop.cycle: expected at least one value")),
            "changed" => {
                let before = self.loops.get_mut(number).and_then(|state| state.seen.take());
                let mut same = before.as_ref().is_some_and(|before| before.len() == arguments.positional.len());
                for (a, b) in before.iter().flatten().zip(&arguments.positional) {
                    same = same && self.heap.equal(a, b)?;
                }
                if let Some(state) = self.loops.get_mut(number) {
                    state.seen = Some(arguments.positional);
                }
                Ok(Value::Bool(!same))
            }
            _ => Err(Error::render(format!("`loop` has no method `{name}`"))),
        }
    }

    fn call_macro(&mut self, number: usize, arguments: Arguments) -> Result<Value> {
        self.descend()?;
        let bound = self.macros[number].clone();
        let name = bound.definition.name.clone();
        if !self.is_alive(bound.frame, bound.frame_id) {
            return Err(Error::render(format!("the block that defines the macro `{name}` has ended")));
        }
        let parameters = &bound.definition.parameters;
        let mut given = arguments.positional.into_iter();
        let mut named = arguments.named;
        self.enter(Some(bound.frame));
        for (parameter, default) in parameters {
            let by_name = named.iter().position(|(name, _)| name == parameter).map(|index| named.remove(index).1);
            let value = match (given.next(), by_name, default) {
                (Some(_), Some(_), _) => return Err(Error::render(format!("{name}: argument `{parameter}` is given twice"))),
                (Some(value), None, _) | (None, Some(value), _) => value,
                (None, None, Some(default)) => self.evaluate(default)?,
                (None, None, None) => Value::Undefined(Some(parameter.clone())),
            };
            self.assign(parameter, value);
        }
        if let Some(index) = named.iter().position(|(name, _)| **name == *"caller") {
            let (name, caller) = named.remove(index);
            self.assign(&name, caller);
        }
        let more: Vec<Value> = given.collect();
        if let Some((unknown, _)) = named.first() {
            return Err(Error::render(format!("{name}: there is no argument `{unknown}`")));
        }
        if !more.is_empty() {
            return Err(Error::render(format!("{name}: more arguments than the macro has parameters ({})", parameters.len())));
        }
        let value = self.run_macro(&bound.definition.body)?;
        self.leave();
        self.ascend();
        Ok(value)
    }
}
