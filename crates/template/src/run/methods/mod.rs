//! Methods of texts, lists, tuples and dictionaries, as Python has them.

mod containers;
mod texts;

use super::arguments::Arguments;
use super::heap::Heap;
use super::value::Value;
use crate::error::{Error, Result};

impl Heap {
    /// `value.name(arguments)`.
    pub(crate) fn method(&mut self, value: &Value, name: &str, arguments: Arguments) -> Result<Value> {
        self.spend(1)?;
        let found = match value {
            Value::Text(text) => self.text_method(&text.clone(), name, arguments)?,
            Value::List(list) => self.list_method(*list, name, arguments)?,
            Value::Tuple(list) => self.sequence_method(*list, name, arguments)?,
            Value::Dict(map) => self.dict_method(*map, name, arguments)?,
            Value::Float(value) if name == "is_integer" => Some(Value::Bool(value.fract() == 0.0)),
            Value::Int(_) if name == "is_integer" => Some(Value::Bool(true)),
            _ => None,
        };
        found.ok_or_else(|| Error::render(format!("{} has no method `{}`", value.kind(), shown(name))))
    }
}

/// A name fit for a message.
fn shown(name: &str) -> String {
    name.chars().take(40).collect()
}
