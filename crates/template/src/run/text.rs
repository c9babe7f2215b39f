//! Values as text: `str` and `repr` of Python.

use std::sync::Arc;

use super::heap::{Heap, check_depth};
use super::number::float_text;
use super::value::Value;
use crate::error::{Error, Result};

impl Heap {
    /// The text of a value as it is printed.
    pub(crate) fn str(&mut self, value: &Value) -> Result<Arc<str>> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            Value::Undefined(Some(name)) if name.starts_with("secrets.") => {
                Err(Error::render(format!("there is no `{}` in the secrets file", &name["secrets.".len()..])))
            }
            Value::Undefined(_) => Ok("".into()),
            other => self.repr(other).map(Into::into),
        }
    }

    /// The text of a value as it stands within a list: texts have quotes.
    pub(crate) fn repr(&mut self, value: &Value) -> Result<String> {
        let mut out = String::new();
        self.write_repr(&mut out, value, 0)?;
        Ok(out)
    }

    fn write(&mut self, out: &mut String, text: &str) -> Result<()> {
        self.allot(text.len())?;
        out.push_str(text);
        Ok(())
    }

    fn write_repr(&mut self, out: &mut String, value: &Value, depth: usize) -> Result<()> {
        self.spend(1)?;
        check_depth(depth)?;
        match value {
            Value::Undefined(_) => self.write(out, "Undefined"),
            Value::None => self.write(out, "None"),
            Value::Bool(true) => self.write(out, "True"),
            Value::Bool(false) => self.write(out, "False"),
            Value::Int(value) => self.write(out, &value.to_string()),
            Value::Float(value) => self.write(out, &float_text(*value)),
            Value::Text(text) => {
                let quoted = quoted(text);
                self.write(out, &quoted)
            }
            Value::List(list) => {
                self.write(out, "[")?;
                self.write_items(out, *list, depth)?;
                self.write(out, "]")
            }
            Value::Tuple(list) => {
                self.write(out, "(")?;
                self.write_items(out, *list, depth)?;
                self.write(out, if self.lists[*list].len() == 1 { ",)" } else { ")" })
            }
            Value::Dict(map) => {
                self.write(out, "{")?;
                for index in 0..self.maps[*map].len() {
                    let Some((key, value)) = self.maps[*map].get_index(index).map(|(key, value)| (key.clone(), value.clone())) else {
                        break;
                    };
                    if index > 0 {
                        self.write(out, ", ")?;
                    }
                    let key = self.key_value(&key)?;
                    self.write_repr(out, &key, depth + 1)?;
                    self.write(out, ": ")?;
                    self.write_repr(out, &value, depth + 1)?;
                }
                self.write(out, "}")
            }
            Value::Range(range) => {
                let end = i128::from(range.start) + i128::from(range.step) * range.length as i128;
                let text = match range.step {
                    1 => format!("range({}, {end})", range.start),
                    step => format!("range({}, {end}, {step})", range.start),
                };
                self.write(out, &text)
            }
            other => {
                let text = format!("<{}>", other.kind().trim_start_matches("a "));
                self.write(out, &text)
            }
        }
    }

    fn write_items(&mut self, out: &mut String, list: usize, depth: usize) -> Result<()> {
        for index in 0..self.lists[list].len() {
            let item = self.lists[list][index].clone();
            if index > 0 {
                self.write(out, ", ")?;
            }
            self.write_repr(out, &item, depth + 1)?;
        }
        Ok(())
    }
}

/// Text in quotes, with escapes where Python has them.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}
