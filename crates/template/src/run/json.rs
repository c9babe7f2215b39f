//! Values from JSON and to JSON.

use serde_json::{Map as JsonMap, Number, Value as Json};

use super::heap::{Heap, check_depth};
use super::number::float_text;
use super::value::{Key, Map, Value};
use crate::error::{Error, Result};

impl Heap {
    /// A value of the caller.
    pub(crate) fn import(&mut self, json: &Json) -> Result<Value> {
        self.spend(1)?;
        Ok(match json {
            Json::Null => Value::None,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Value::Int(value),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => self.text(text.as_str())?,
            Json::Array(items) => {
                let items = items.iter().map(|item| self.import(item)).collect::<Result<_>>()?;
                self.list(items)?
            }
            Json::Object(members) => {
                let members = members.iter().map(|(name, value)| Ok((Key::Text(name.as_str().into()), self.import(value)?)));
                let members = members.collect::<Result<Map>>()?;
                self.dict(members)?
            }
        })
    }

    /// A value for the caller.
    pub(crate) fn export(&mut self, value: &Value) -> Result<Json> {
        self.export_at(value, 0)
    }

    fn export_at(&mut self, value: &Value, depth: usize) -> Result<Json> {
        self.spend(1)?;
        check_depth(depth)?;
        Ok(match value {
            Value::None => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Float(value) => {
                Number::from_f64(*value).map(Json::Number).ok_or_else(|| Error::render("`inf` and `nan` cannot be written as JSON"))?
            }
            Value::Text(text) => {
                self.allot(text.len())?;
                Json::String(text.to_string())
            }
            Value::List(_) | Value::Tuple(_) | Value::Range(_) => {
                let items = self.values(value)?;
                Json::Array(items.iter().map(|item| self.export_at(item, depth + 1)).collect::<Result<_>>()?)
            }
            Value::Dict(map) => {
                let mut members = JsonMap::new();
                for index in 0..self.maps[*map].len() {
                    let Some((key, value)) = self.maps[*map].get_index(index).map(|(key, value)| (key.clone(), value.clone())) else {
                        break;
                    };
                    let name = self.json_name(&key)?;
                    self.allot(name.len())?;
                    members.insert(name, self.export_at(&value, depth + 1)?);
                }
                Json::Object(members)
            }
            other => return Err(Error::render(format!("{} cannot be written as JSON", other.kind()))),
        })
    }

    /// JSON text as Python's `json.dumps` lays it out: `{"a": 1}`, names in order; with `indent`, one member a line.
    pub(crate) fn json_text(&mut self, value: &Value, indent: Option<usize>) -> Result<String> {
        let mut out = String::new();
        self.write_json(&mut out, value, indent, 0)?;
        Ok(out)
    }

    fn write_json(&mut self, out: &mut String, value: &Value, indent: Option<usize>, depth: usize) -> Result<()> {
        check_depth(depth)?;
        let new_line = |heap: &mut Self, out: &mut String, depth: usize| match indent {
            None => Ok(()),
            Some(indent) => {
                heap.allot_many(indent, depth)?;
                heap.allot(1)?;
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent * depth));
                Ok(())
            }
        };
        let separator = if indent.is_some() { "," } else { ", " };
        match value {
            Value::List(_) | Value::Tuple(_) | Value::Range(_) => {
                let items = self.values(value)?;
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { separator } else { "" });
                    new_line(self, out, depth + 1)?;
                    self.write_json(out, item, indent, depth + 1)?;
                }
                if !items.is_empty() {
                    new_line(self, out, depth)?;
                }
                out.push(']');
            }
            Value::Dict(map) => {
                let members: Vec<(Key, Value)> = self.maps[*map].iter().map(|(key, value)| (key.clone(), value.clone())).collect();
                self.allot_many(members.len(), size_of::<(Key, Value)>())?;
                let mut names = members.into_iter().map(|(key, value)| Ok((self.json_name(&key)?, value))).collect::<Result<Vec<_>>>()?;
                names.sort_by(|(a, _), (b, _)| a.cmp(b));
                out.push('{');
                for (index, (name, value)) in names.iter().enumerate() {
                    out.push_str(if index > 0 { separator } else { "" });
                    new_line(self, out, depth + 1)?;
                    self.write_json_text(out, name)?;
                    out.push_str(": ");
                    self.write_json(out, value, indent, depth + 1)?;
                }
                if !names.is_empty() {
                    new_line(self, out, depth)?;
                }
                out.push('}');
            }
            Value::Text(text) => self.write_json_text(out, text)?,
            Value::Float(value) if value.is_finite() => out.push_str(&float_text(*value)),
            simple => {
                let json = self.export(simple)?;
                out.push_str(&json.to_string());
            }
        }
        self.spend(1)?;
        self.allot(32)
    }

    fn write_json_text(&mut self, out: &mut String, text: &str) -> Result<()> {
        self.allot_many(text.len(), 6)?;
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                ' '..='~' => out.push(c),
                c => {
                    let mut units = [0; 2];
                    c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
                }
            }
        }
        out.push('"');
        Ok(())
    }

    /// The text that stands for a key in JSON.
    pub(crate) fn json_name(&mut self, key: &Key) -> Result<String> {
        Ok(match key {
            Key::Text(name) => name.to_string(),
            Key::None => "null".to_owned(),
            Key::Bool(value) => value.to_string(),
            Key::Int(value) => value.to_string(),
            Key::Float(value) => float_text(*value),
            Key::Tuple(_) => return Err(Error::render("a tuple cannot be a name in JSON")),
        })
    }
}
