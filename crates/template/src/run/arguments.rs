//! Arguments of a call, evaluated.

use std::sync::Arc;

use super::value::Value;
use crate::error::{Error, Result};

/// Arguments by position and by name.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) positional: Vec<Value>,
    pub(crate) named: Vec<(Arc<str>, Value)>,
}

impl Arguments {
    /// The arguments as the values of `names`; what is not given is `None`.
    pub(crate) fn bind<const N: usize>(self, function: &str, names: [&str; N]) -> Result<[Option<Value>; N]> {
        if self.positional.len() > N {
            let expected = match N {
                0 => "no arguments".to_owned(),
                1 => "at most 1 argument".to_owned(),
                _ => format!("at most {N} arguments"),
            };
            return Err(Error::render(format!("{function}: expected {expected}, found {}", self.positional.len())));
        }
        let mut values = [const { None }; N];
        for (slot, value) in values.iter_mut().zip(self.positional) {
            *slot = Some(value);
        }
        for (name, value) in self.named {
            match names.iter().position(|known| **known == *name) {
                Some(index) if values[index].is_none() => values[index] = Some(value),
                Some(_) => return Err(Error::render(format!("{function}: argument `{name}` is given twice"))),
                None => return Err(Error::render(format!("{function}: there is no argument `{name}`"))),
            }
        }
        Ok(values)
    }
}

/// An argument that must be given.
pub(crate) fn required(value: Option<Value>, function: &str, name: &str) -> Result<Value> {
    value.ok_or_else(|| Error::render(format!("{function}: expected an argument `{name}`")))
}

/// An argument that must be text.
pub(crate) fn text(value: &Value, function: &str) -> Result<Arc<str>> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        other => Err(Error::render(format!("{function}: expected text, found {}", other.kind()))),
    }
}

/// An argument that must be a whole number.
pub(crate) fn whole(value: &Value, function: &str) -> Result<i64> {
    value.as_int().ok_or_else(|| Error::render(format!("{function}: expected a whole number, found {}", value.kind())))
}

/// A whole number, 0 or more; negative ones count as 0.
pub(crate) fn count(value: &Value, function: &str) -> Result<usize> {
    Ok(usize::try_from(whole(value, function)?).unwrap_or(0))
}
