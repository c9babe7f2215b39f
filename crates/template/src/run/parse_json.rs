//! JSON text straight onto the heap: members keep the order of the text.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::heap::Heap;
use super::value::{Key, Map, Value};
use crate::error::{Error, Result};

impl Heap {
    /// The value that a JSON text stands for.
    pub(crate) fn parse_json(&mut self, source: &str) -> Result<Value> {
        let mut fault = None;
        let mut deserializer = serde_json::Deserializer::from_str(source);
        let value = Seed { heap: self, fault: &mut fault }.deserialize(&mut deserializer);
        match value.and_then(|value| deserializer.end().map(|()| value)) {
            Ok(value) => Ok(value),
            Err(error) => Err(fault.unwrap_or_else(|| {
                Error::render(format!("fromjson: the text is not JSON (line {}, column {})", error.line(), error.column()))
            })),
        }
    }
}

/// Puts what it reads onto the heap; a limit that is reached is kept in `fault`.
struct Seed<'h> {
    heap: &'h mut Heap,
    fault: &'h mut Option<Error>,
}

impl Seed<'_> {
    fn keep<E: serde::de::Error>(&mut self, result: Result<Value>) -> std::result::Result<Value, E> {
        result.map_err(|error| {
            *self.fault = Some(error);
            E::custom("a limit is reached")
        })
    }

    fn inner(&mut self) -> Seed<'_> {
        Seed { heap: self.heap, fault: self.fault }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> std::result::Result<Value, E> {
        let text = self.heap.text(text);
        self.keep(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> std::result::Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self.inner())? {
            let allotted = self.heap.allot(size_of::<Value>()).map(|()| Value::None);
            self.keep::<A::Error>(allotted)?;
            values.push(value);
        }
        let list = self.heap.list(values);
        self.keep(list)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> std::result::Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let allotted = self.heap.allot(name.len() + size_of::<(Key, Value)>()).map(|()| Value::None);
            self.keep::<A::Error>(allotted)?;
            let value = members.next_value_seed(self.inner())?;
            map.insert(Key::Text(name.into()), value);
        }
        let dict = self.heap.dict(map);
        self.keep(dict)
    }
}
