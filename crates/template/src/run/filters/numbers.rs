//! Filters of numbers.

use crate::error::{Error, Result};
use crate::run::arguments::{Arguments, text, whole};
use crate::run::machine::Machine;
use crate::run::number::{parse_float, parse_int, round, truncate};
use crate::run::operators::undefined;
use crate::run::value::Value;

pub(super) fn abs(machine: &mut Machine<'_>, value: &Value, _: Arguments) -> Result<Value> {
    match (value.as_int(), value.as_float()) {
        (Some(value), _) if value < 0 => machine.heap.negative(&Value::Int(value)),
        (Some(value), _) => Ok(Value::Int(value)),
        (None, Some(value)) => Ok(Value::Float(value.abs())),
        (None, None) => Err(not_number("abs", value)),
    }
}

pub(super) fn not_number(filter: &str, value: &Value) -> Error {
    match value {
        Value::Undefined(name) => undefined(name.as_ref()),
        other => Error::render(format!("{filter}: expected a number, found {}", other.kind())),
    }
}

pub(super) fn filesizeformat(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [binary] = arguments.bind("filesizeformat", ["binary"])?;
    let binary = binary.is_some_and(|binary| machine.heap.truth(&binary));
    let bytes = as_float(value, 10).ok_or_else(|| not_number("filesizeformat", value))?;
    let (base, units) = if binary { (1024.0, ["KiB", "MiB", "GiB", "TiB", "PiB"]) } else { (1000.0, ["kB", "MB", "GB", "TB", "PB"]) };
    if bytes == 1.0 {
        return Ok("1 Byte".into());
    }
    if bytes < base {
        return Ok(format!("{} Bytes", bytes.trunc()).into());
    }
    let mut size = bytes / base;
    let mut unit = 0;
    while size >= base && unit + 1 < units.len() {
        size /= base;
        unit += 1;
    }
    Ok(format!("{size:.1} {}", units[unit]).into())
}

/// A number, or a text that is one.
pub(super) fn as_float(value: &Value, base: u32) -> Option<f64> {
    match value {
        Value::Text(text) => parse_float(text).or_else(|| parse_int(text, base).map(|whole| whole as f64)),
        other => other.as_float(),
    }
}

pub(super) fn float(_: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [default] = arguments.bind("float", ["default"])?;
    if let Value::Undefined(name) = value {
        return Err(undefined(name.as_ref()));
    }
    let number = match value {
        Value::Text(text) => parse_float(text),
        other => other.as_float(),
    };
    Ok(number.map_or_else(|| default.unwrap_or(Value::Float(0.0)), Value::Float))
}

pub(super) fn int(_: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [default, base] = arguments.bind("int", ["default", "base"])?;
    let base = base.map_or(Ok(10), |base| whole(&base, "int"))?;
    let base = u32::try_from(base).unwrap_or(1);
    let number = match value {
        Value::Undefined(name) => return Err(undefined(name.as_ref())),
        Value::Text(text) => parse_int(text, base).or_else(|| parse_float(text).and_then(truncate)),
        Value::Float(value) => truncate(*value),
        other => other.as_int(),
    };
    Ok(number.map_or_else(|| default.unwrap_or(Value::Int(0)), Value::Int))
}

pub(super) fn round_filter(_: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [precision, method] = arguments.bind("round", ["precision", "method"])?;
    let digits = precision.map_or(Ok(0), |precision| whole(&precision, "round"))?;
    let number = value.as_float().ok_or_else(|| not_number("round", value))?;
    let method = method.map_or(Ok("common".into()), |method| text(&method, "round"))?;
    let scale = 10f64.powi(i32::try_from(digits).unwrap_or(i32::MAX));
    let rounded = match (&*method, value.as_int()) {
        ("common", Some(whole)) if digits >= 0 => return Ok(Value::Int(whole)),
        ("common", Some(_)) => return Ok(truncate(round(number, digits)).map_or(Value::Int(0), Value::Int)),
        ("common", None) => round(number, digits),
        ("ceil", _) => (number * scale).ceil() / scale,
        ("floor", _) => (number * scale).floor() / scale,
        _ => return Err(Error::render("round: expected the method \"common\", \"ceil\" or \"floor\"")),
    };
    Ok(Value::Float(rounded))
}
