//! `is` tests.

use super::arguments::{Arguments, required};
use super::machine::Machine;
use super::value::Value;
use crate::error::{Error, Result};
use crate::syntax::ast::Comparison;

/// A test of a value.
pub(crate) type TestFn = for<'a, 'r> fn(&'a mut Machine<'r>, &'a Value, Arguments) -> Result<bool>;

/// The test of this name.
pub(crate) fn test_named(name: &str) -> Option<TestFn> {
    Some(match name {
        "defined" => |_, value, _| Ok(!matches!(value, Value::Undefined(_))),
        "undefined" => |_, value, _| Ok(matches!(value, Value::Undefined(_))),
        "none" => |_, value, _| Ok(matches!(value, Value::None)),
        "boolean" => |_, value, _| Ok(matches!(value, Value::Bool(_))),
        "true" => |_, value, _| Ok(matches!(value, Value::Bool(true))),
        "false" => |_, value, _| Ok(matches!(value, Value::Bool(false))),
        "integer" => |_, value, _| Ok(matches!(value, Value::Int(_))),
        "float" => |_, value, _| Ok(matches!(value, Value::Float(_))),
        "number" => |_, value, _| Ok(matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_))),
        "string" => |_, value, _| Ok(matches!(value, Value::Text(_))),
        "mapping" => |_, value, _| Ok(matches!(value, Value::Dict(_))),
        "sequence" => |_, value, _| {
            Ok(matches!(value, Value::Text(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Range(_) | Value::Undefined(_)))
        },
        "iterable" => |_, value, _| {
            Ok(matches!(value, Value::Text(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Range(_) | Value::Undefined(_)))
        },
        "callable" => |_, value, _| Ok(matches!(value, Value::Macro(_) | Value::Builtin(_) | Value::Function(_))),
        "lower" => |machine, value, _| machine.heap.str(value).map(|text| has_letters(&text) && text.to_lowercase() == *text),
        "upper" => |machine, value, _| machine.heap.str(value).map(|text| has_letters(&text) && text.to_uppercase() == *text),
        "even" => |_, value, _| remainder(value, &Value::Int(2), "even").map(|rest| rest == 0.0),
        "odd" => |_, value, _| remainder(value, &Value::Int(2), "odd").map(|rest| rest.abs() == 1.0),
        "divisibleby" => |_, value, arguments| {
            let [by] = arguments.bind("divisibleby", ["num"])?;
            remainder(value, &required(by, "divisibleby", "num")?, "divisibleby").map(|rest| rest == 0.0)
        },
        "filter" => |machine, value, _| machine.heap.str(value).map(|name| super::filter_named(&name).is_some()),
        "test" => |machine, value, _| machine.heap.str(value).map(|name| test_named(&name).is_some()),
        "sameas" => |machine, value, arguments| {
            let [other] = arguments.bind("sameas", ["other"])?;
            let other = required(other, "sameas", "other")?;
            let same_kind = std::mem::discriminant(value) == std::mem::discriminant(&other);
            Ok(match (value, &other) {
                (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) | (Value::Dict(a), Value::Dict(b)) => a == b,
                _ => same_kind && machine.heap.equal(value, &other)?,
            })
        },
        "eq" | "equalto" | "==" => |machine, value, arguments| compare(machine, Comparison::Equal, value, arguments),
        "ne" | "!=" => |machine, value, arguments| compare(machine, Comparison::NotEqual, value, arguments),
        "lt" | "lessthan" | "<" => |machine, value, arguments| compare(machine, Comparison::Less, value, arguments),
        "le" | "<=" => |machine, value, arguments| compare(machine, Comparison::LessOrEqual, value, arguments),
        "gt" | "greaterthan" | ">" => |machine, value, arguments| compare(machine, Comparison::Greater, value, arguments),
        "ge" | ">=" => |machine, value, arguments| compare(machine, Comparison::GreaterOrEqual, value, arguments),
        "in" => |machine, value, arguments| compare(machine, Comparison::In, value, arguments),
        _ => return None,
    })
}

/// What is left when a number is divided, exact for whole numbers.
fn remainder(value: &Value, by: &Value, test: &str) -> Result<f64> {
    if let (Some(value), Some(by)) = (value.as_int(), by.as_int()) {
        return if by == 0 { Err(Error::render("division by zero")) } else { Ok(value.checked_rem(by).unwrap_or(0) as f64) };
    }
    match (value.as_float(), by.as_float()) {
        (Some(_), Some(0.0)) => Err(Error::render("division by zero")),
        (Some(value), Some(by)) => Ok(value % by),
        _ => Err(Error::render(format!("{test}: expected a number, found {}", if value.as_float().is_none() { value } else { by }.kind()))),
    }
}

fn has_letters(text: &str) -> bool {
    text.chars().any(char::is_alphabetic)
}

fn compare(machine: &mut Machine<'_>, comparison: Comparison, value: &Value, arguments: Arguments) -> Result<bool> {
    let [other] = arguments.bind("the test", ["other"])?;
    let other = required(other, "the test", "other")?;
    machine.heap.compare(comparison, value, &other)
}
