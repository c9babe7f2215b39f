//! Methods of lists, tuples and dictionaries.

use crate::error::{Error, Result};
use crate::run::arguments::{Arguments, required, whole};
use crate::run::heap::Heap;
use crate::run::operators::place;
use crate::run::value::{Key, Map, Value};

impl Heap {
    /// Methods that lists and tuples have.
    pub(super) fn sequence_method(&mut self, list: usize, name: &str, arguments: Arguments) -> Result<Option<Value>> {
        Ok(Some(match name {
            "count" | "index" => {
                let [wanted] = arguments.bind(name, ["value"])?;
                let wanted = required(wanted, name, "value")?;
                let mut places = Vec::new();
                for index in 0..self.lists[list].len() {
                    let item = self.lists[list][index].clone();
                    if self.equal(&item, &wanted)? {
                        places.push(index);
                    }
                }
                let number = if name == "count" { Some(places.len()) } else { places.first().copied() };
                let number = number.ok_or_else(|| Error::render("index: the value is not in the list"))?;
                Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
            }
            "__len__" => Value::Int(i64::try_from(self.lists[list].len()).unwrap_or(i64::MAX)),
            "__contains__" => {
                let [wanted] = arguments.bind(name, ["value"])?;
                Value::Bool(self.contains(&Value::List(list), &required(wanted, name, "value")?)?)
            }
            "__getitem__" => {
                let [index] = arguments.bind(name, ["index"])?;
                self.lists[list][self.index(list, &required(index, name, "index")?, name)?].clone()
            }
            _ => return Ok(None),
        }))
    }

    fn index(&self, list: usize, index: &Value, name: &str) -> Result<usize> {
        let length = self.lists[list].len();
        let found = place(whole(index, name)?, length).filter(|index| *index < length);
        found.ok_or_else(|| Error::render(format!("{name}: the list has only {length} elements")))
    }

    pub(super) fn list_method(&mut self, list: usize, name: &str, arguments: Arguments) -> Result<Option<Value>> {
        match name {
            "append" => {
                let [value] = arguments.bind(name, ["value"])?;
                self.push(list, required(value, name, "value")?)?;
            }
            "extend" => {
                let [values] = arguments.bind(name, ["iterable"])?;
                for value in self.values(&required(values, name, "iterable")?)? {
                    self.push(list, value)?;
                }
            }
            "insert" => {
                let [index, value] = arguments.bind(name, ["index", "value"])?;
                let index = whole(&required(index, name, "index")?, name)?;
                let length = self.lists[list].len();
                let at = place(index, length).map_or(0, |at| at.min(length));
                self.push(list, required(value, name, "value")?)?;
                self.spend(length / 16)?;
                self.lists[list][at..].rotate_right(1);
            }
            "pop" => {
                let [index] = arguments.bind(name, ["index"])?;
                let at = self.index(list, &index.unwrap_or(Value::Int(-1)), name)?;
                self.spend(self.lists[list].len() / 16)?;
                return Ok(Some(self.lists[list].remove(at)));
            }
            "remove" => {
                let [wanted] = arguments.bind(name, ["value"])?;
                let wanted = required(wanted, name, "value")?;
                for index in 0..self.lists[list].len() {
                    let item = self.lists[list][index].clone();
                    if self.equal(&item, &wanted)? {
                        self.lists[list].remove(index);
                        return Ok(Some(Value::None));
                    }
                }
                return Err(Error::render("remove: the value is not in the list"));
            }
            "clear" => self.lists[list].clear(),
            "reverse" => self.lists[list].reverse(),
            "sort" => {
                let [reverse] = arguments.bind(name, ["reverse"])?;
                let reverse = reverse.is_some_and(|reverse| self.truth(&reverse));
                let items = self.lists[list].clone();
                let keys = items.clone();
                self.lists[list] = self.sorted(items, keys, reverse)?;
            }
            "copy" => {
                let items = self.lists[list].clone();
                return self.list(items).map(Some);
            }
            "__setitem__" => {
                let [index, value] = arguments.bind(name, ["index", "value"])?;
                let at = self.index(list, &required(index, name, "index")?, name)?;
                self.lists[list][at] = required(value, name, "value")?;
            }
            "__delitem__" => {
                let [index] = arguments.bind(name, ["index"])?;
                let at = self.index(list, &required(index, name, "index")?, name)?;
                self.lists[list].remove(at);
            }
            _ => return self.sequence_method(list, name, arguments),
        }
        Ok(Some(Value::None))
    }

    pub(super) fn dict_method(&mut self, map: usize, name: &str, arguments: Arguments) -> Result<Option<Value>> {
        Ok(Some(match name {
            "get" => {
                let [key, default] = arguments.bind(name, ["key", "default"])?;
                let key = self.key(&required(key, name, "key")?)?;
                self.maps[map].get(&key).cloned().or(default).unwrap_or(Value::None)
            }
            "items" => {
                let pairs = self.pairs(map)?;
                self.list(pairs)?
            }
            "keys" => {
                let keys = self.keys(map)?;
                self.list(keys)?
            }
            "values" => {
                let values = self.maps[map].values().cloned().collect();
                self.list(values)?
            }
            "update" => {
                let mut changes = Map::new();
                let mut positional = arguments.positional.into_iter();
                if let Some(source) = positional.next() {
                    self.fill_map(&mut changes, &source)?;
                }
                if positional.next().is_some() {
                    return Err(Error::render("update: expected at most one value without a name"));
                }
                changes.extend(arguments.named.into_iter().map(|(name, value)| (Key::Text(name), value)));
                for (key, value) in changes {
                    self.insert(map, key, value)?;
                }
                Value::None
            }
            "setdefault" => {
                let [key, default] = arguments.bind(name, ["key", "default"])?;
                let key = self.key(&required(key, name, "key")?)?;
                if let Some(value) = self.maps[map].get(&key) {
                    return Ok(Some(value.clone()));
                }
                let value = default.unwrap_or(Value::None);
                self.insert(map, key, value.clone())?;
                value
            }
            "pop" => {
                let [key, default] = arguments.bind(name, ["key", "default"])?;
                let key = self.key(&required(key, name, "key")?)?;
                self.spend(self.maps[map].len() / 16)?;
                let value = self.maps[map].shift_remove(&key).or(default);
                value.ok_or_else(|| Error::render("pop: the dictionary has no such key"))?
            }
            "popitem" => {
                let (key, value) = self.maps[map].pop().ok_or_else(|| Error::render("popitem: the dictionary is empty"))?;
                let key = self.key_value(&key)?;
                self.tuple(vec![key, value])?
            }
            "clear" => {
                self.maps[map].clear();
                Value::None
            }
            "copy" => {
                let copy = self.maps[map].clone();
                self.dict(copy)?
            }
            "__setitem__" => {
                let [key, value] = arguments.bind(name, ["key", "value"])?;
                let key = self.key(&required(key, name, "key")?)?;
                self.insert(map, key, required(value, name, "value")?)?;
                Value::None
            }
            "__getitem__" | "__delitem__" => {
                let [key] = arguments.bind(name, ["key"])?;
                let key = self.key(&required(key, name, "key")?)?;
                let value = if name == "__getitem__" { self.maps[map].get(&key).cloned() } else { self.maps[map].shift_remove(&key) };
                let value = value.ok_or_else(|| Error::render(format!("{name}: the dictionary has no such key")))?;
                if name == "__getitem__" { value } else { Value::None }
            }
            "__contains__" => {
                let [key] = arguments.bind(name, ["key"])?;
                let key = self.key(&required(key, name, "key")?)?;
                Value::Bool(self.maps[map].contains_key(&key))
            }
            "__len__" => Value::Int(i64::try_from(self.maps[map].len()).unwrap_or(i64::MAX)),
            _ => return Ok(None),
        }))
    }

    /// Adds the entries of a dictionary or the pairs of a list.
    pub(crate) fn fill_map(&mut self, map: &mut Map, source: &Value) -> Result<()> {
        if let Value::Dict(source) = source {
            self.spend(self.maps[*source].len())?;
            map.extend(self.maps[*source].iter().map(|(key, value)| (key.clone(), value.clone())));
            return Ok(());
        }
        for pair in self.values(source)? {
            let [key, value] = <[Value; 2]>::try_from(self.values(&pair)?)
                .map_err(|parts| Error::render(format!("expected pairs of key and value, found {} elements", parts.len())))?;
            map.insert(self.key(&key)?, value);
        }
        Ok(())
    }
}
