//! Where lists and dictionaries live while a template runs, and what it may use up.
//!
//! Nothing is freed before the end of the rendering: it is short, its memory is bounded, and so lists may contain themselves without harm.

use std::sync::Arc;

use super::value::{Key, Map, Range, Value};
use crate::error::{Error, Result};
use crate::limits::{MAX_MEMORY, MAX_QUICK_MEMORY, MAX_QUICK_STEPS, MAX_STEPS, MAX_VALUE_DEPTH};

/// Approximate bytes of one element of a list.
const ITEM: usize = size_of::<Value>();
/// Approximate bytes of one entry of a dictionary.
const PAIR: usize = size_of::<(Key, Value)>() + 2 * size_of::<usize>();

/// All lists and dictionaries.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) lists: Vec<Vec<Value>>,
    pub(crate) maps: Vec<Map>,
    pub(crate) steps: usize,
    memory: usize,
    max_steps: usize,
    max_memory: usize,
}

impl Default for Heap {
    fn default() -> Self {
        Self { lists: Vec::new(), maps: Vec::new(), steps: 0, memory: 0, max_steps: MAX_STEPS, max_memory: MAX_MEMORY }
    }
}

/// The elements of something that can be iterated over.
#[derive(Debug)]
pub(crate) enum Items {
    Values(Vec<Value>),
    Range(Range),
}

impl Items {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Range(range) => range.length,
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value> {
        match self {
            Self::Values(values) => values.get(index).cloned(),
            Self::Range(range) => range.get(index).map(Value::Int),
        }
    }
}

impl Heap {
    /// Allows only what takes no time.
    pub(crate) fn hurry(&mut self) {
        (self.max_steps, self.max_memory) = (MAX_QUICK_STEPS, MAX_QUICK_MEMORY);
    }

    /// True when more was wanted than is allowed.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps > self.max_steps || self.memory > self.max_memory
    }

    /// Counts steps.
    pub(crate) fn spend(&mut self, steps: usize) -> Result<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.max_steps { Err(Error::limit(format!("the template does not end within {MAX_STEPS} steps"))) } else { Ok(()) }
    }

    /// Counts bytes, before they are taken.
    pub(crate) fn allot(&mut self, bytes: usize) -> Result<()> {
        self.memory = self.memory.saturating_add(bytes);
        if self.memory > self.max_memory {
            return Err(Error::limit(format!("the template needs more than {} MiB of memory", MAX_MEMORY / 1024 / 1024)));
        }
        Ok(())
    }

    /// Counts `count` pieces of `size` bytes each.
    pub(crate) fn allot_many(&mut self, count: usize, size: usize) -> Result<()> {
        self.allot(count.saturating_mul(size))
    }

    pub(crate) fn text(&mut self, text: impl Into<Arc<str>>) -> Result<Value> {
        let text = text.into();
        self.allot(text.len())?;
        Ok(Value::Text(text))
    }

    fn store_list(&mut self, items: Vec<Value>) -> Result<usize> {
        self.spend(items.len())?;
        self.allot((items.len() + 2) * ITEM)?;
        self.lists.push(items);
        Ok(self.lists.len() - 1)
    }

    pub(crate) fn list(&mut self, items: Vec<Value>) -> Result<Value> {
        self.store_list(items).map(Value::List)
    }

    pub(crate) fn tuple(&mut self, items: Vec<Value>) -> Result<Value> {
        self.store_list(items).map(Value::Tuple)
    }

    fn store_map(&mut self, map: Map) -> Result<usize> {
        self.spend(map.len())?;
        self.allot((map.len() + 1) * PAIR)?;
        self.maps.push(map);
        Ok(self.maps.len() - 1)
    }

    pub(crate) fn dict(&mut self, map: Map) -> Result<Value> {
        self.store_map(map).map(Value::Dict)
    }

    pub(crate) fn namespace(&mut self, map: Map) -> Result<Value> {
        self.store_map(map).map(Value::Namespace)
    }

    pub(crate) fn push(&mut self, list: usize, value: Value) -> Result<()> {
        self.allot(ITEM)?;
        self.lists[list].push(value);
        Ok(())
    }

    pub(crate) fn insert(&mut self, map: usize, key: Key, value: Value) -> Result<()> {
        self.allot(PAIR)?;
        self.maps[map].insert(key, value);
        Ok(())
    }

    /// A value as a key.
    pub(crate) fn key(&self, value: &Value) -> Result<Key> {
        self.key_at(value, 0)
    }

    fn key_at(&self, value: &Value, depth: usize) -> Result<Key> {
        Ok(match value {
            Value::None => Key::None,
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(value) => Key::Int(*value),
            Value::Float(value) => Key::Float(*value),
            Value::Text(text) => Key::Text(text.clone()),
            // A tuple of tuples of tuples … is no key that anybody needs, and could be huge.
            Value::Tuple(list) if depth == 0 => {
                Key::Tuple(self.lists[*list].iter().map(|part| self.key_at(part, depth + 1)).collect::<Result<_>>()?)
            }
            other => return Err(Error::render(format!("expected text or a number as a key, found {}", other.kind()))),
        })
    }

    pub(crate) fn key_value(&mut self, key: &Key) -> Result<Value> {
        Ok(match key {
            Key::None => Value::None,
            Key::Bool(value) => Value::Bool(*value),
            Key::Int(value) => Value::Int(*value),
            Key::Float(value) => Value::Float(*value),
            Key::Text(text) => Value::Text(text.clone()),
            Key::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.key_value(part)).collect::<Result<_>>()?;
                self.tuple(parts)?
            }
        })
    }

    /// The elements of a value, copied.
    pub(crate) fn items(&mut self, value: &Value) -> Result<Items> {
        let items = match value {
            Value::Undefined(_) => Vec::new(),
            Value::List(list) | Value::Tuple(list) => {
                self.allot_many(self.lists[*list].len(), ITEM)?;
                self.lists[*list].clone()
            }
            Value::Dict(map) => self.keys(*map)?,
            Value::Text(text) => {
                self.allot_many(text.len(), 2 * ITEM)?;
                text.chars().map(|c| Value::Text(c.to_string().into())).collect()
            }
            Value::Range(range) => return Ok(Items::Range(*range)),
            other => return Err(Error::render(format!("expected a list, a dictionary or text, found {}", other.kind()))),
        };
        Ok(Items::Values(items))
    }

    /// The same, ranges written out.
    pub(crate) fn values(&mut self, value: &Value) -> Result<Vec<Value>> {
        match self.items(value)? {
            Items::Values(values) => {
                self.spend(values.len())?;
                Ok(values)
            }
            Items::Range(range) => {
                self.spend(range.length)?;
                self.allot_many(range.length, ITEM)?;
                Ok((0..range.length).filter_map(|index| range.get(index)).map(Value::Int).collect())
            }
        }
    }

    pub(crate) fn keys(&mut self, map: usize) -> Result<Vec<Value>> {
        self.spend(self.maps[map].len())?;
        self.allot_many(self.maps[map].len(), ITEM)?;
        let keys: Vec<Key> = self.maps[map].keys().cloned().collect();
        keys.iter().map(|key| self.key_value(key)).collect()
    }

    /// Key and value of each entry, as tuples.
    pub(crate) fn pairs(&mut self, map: usize) -> Result<Vec<Value>> {
        self.spend(self.maps[map].len())?;
        let pairs: Vec<(Key, Value)> = self.maps[map].iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        pairs
            .into_iter()
            .map(|(key, value)| {
                let key = self.key_value(&key)?;
                self.tuple(vec![key, value])
            })
            .collect()
    }

    /// Number of elements, of what has them.
    pub(crate) fn length(&self, value: &Value) -> Option<usize> {
        match value {
            Value::Undefined(_) => Some(0),
            Value::Text(text) => Some(text.chars().count()),
            Value::List(list) | Value::Tuple(list) => Some(self.lists[*list].len()),
            Value::Dict(map) => Some(self.maps[*map].len()),
            Value::Range(range) => Some(range.length),
            _ => None,
        }
    }

    /// Whether a condition holds.
    pub(crate) fn truth(&self, value: &Value) -> bool {
        match value {
            Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Text(text) => !text.is_empty(),
            other => self.length(other) != Some(0),
        }
    }

    /// `==`.
    pub(crate) fn equal(&mut self, a: &Value, b: &Value) -> Result<bool> {
        self.equal_at(a, b, 0)
    }

    fn equal_at(&mut self, a: &Value, b: &Value, depth: usize) -> Result<bool> {
        self.spend(1)?;
        check_depth(depth)?;
        Ok(match (a, b) {
            (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
                if a == b {
                    return Ok(true);
                }
                if self.lists[*a].len() != self.lists[*b].len() {
                    return Ok(false);
                }
                for index in 0..self.lists[*a].len() {
                    let (a, b) = (self.lists[*a][index].clone(), self.lists[*b][index].clone());
                    if !self.equal_at(&a, &b, depth + 1)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Dict(a), Value::Dict(b)) => {
                if a == b {
                    return Ok(true);
                }
                if self.maps[*a].len() != self.maps[*b].len() {
                    return Ok(false);
                }
                for index in 0..self.maps[*a].len() {
                    let Some((key, value)) = self.maps[*a].get_index(index).map(|(key, value)| (key.clone(), value.clone())) else { break };
                    let Some(other) = self.maps[*b].get(&key).cloned() else { return Ok(false) };
                    if !self.equal_at(&value, &other, depth + 1)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Namespace(a), Value::Namespace(b)) => a == b,
            (Value::Range(a), Value::Range(b)) => a == b,
            (Value::Object(a), Value::Object(b)) => a == b,
            (a, b) => match (a.as_int(), b.as_int()) {
                (Some(a), Some(b)) => a == b,
                _ => matches!((a.as_float(), b.as_float()), (Some(a), Some(b)) if a == b),
            },
        })
    }
}

/// Fails for values that are nested without end.
pub(crate) fn check_depth(depth: usize) -> Result<()> {
    if depth > MAX_VALUE_DEPTH { Err(Error::limit("a list or dictionary is nested too deeply, or contains itself")) } else { Ok(()) }
}
