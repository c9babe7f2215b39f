//! Filters of lists and dictionaries.

use indexmap::IndexMap;

use super::filter_named;
use crate::error::{Error, Result};
use crate::run::arguments::{Arguments, count, required, text};
use crate::run::heap::Heap;
use crate::run::machine::Machine;
use crate::run::test_named;
use crate::run::value::{Key, Value};
use crate::syntax::ast::Operator;

pub(super) fn batch(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [size, fill] = arguments.bind("batch", ["linecount", "fill_with"])?;
    let size = count(&required(size, "batch", "linecount")?, "batch")?.max(1);
    let items = machine.heap.values(value)?;
    let mut rows = Vec::new();
    for row in items.chunks(size) {
        let mut row = row.to_vec();
        if let Some(fill) = fill.as_ref().filter(|fill| !matches!(fill, Value::None)) {
            machine.heap.allot_many(size - row.len(), size_of::<Value>())?;
            row.resize(size, fill.clone());
        }
        rows.push(machine.heap.list(row)?);
    }
    machine.heap.list(rows)
}

pub(super) fn slice(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [slices, fill] = arguments.bind("slice", ["slices", "fill_with"])?;
    let slices = count(&required(slices, "slice", "slices")?, "slice")?.max(1);
    let items = machine.heap.values(value)?;
    machine.heap.spend(slices)?;
    let (size, extra) = (items.len() / slices, items.len() % slices);
    let mut rows = Vec::new();
    let mut rest = items.into_iter();
    for index in 0..slices {
        let mut row: Vec<Value> = rest.by_ref().take(size + usize::from(index < extra)).collect();
        if let Some(fill) = fill.as_ref().filter(|fill| !matches!(fill, Value::None) && index >= extra) {
            row.push(fill.clone());
        }
        rows.push(machine.heap.list(row)?);
    }
    machine.heap.list(rows)
}

pub(super) fn dictsort(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [case_sensitive, by, reverse] = arguments.bind("dictsort", ["case_sensitive", "by", "reverse"])?;
    let case_sensitive = case_sensitive.is_some_and(|flag| machine.heap.truth(&flag));
    let reverse = reverse.is_some_and(|flag| machine.heap.truth(&flag));
    let part = match by.as_ref() {
        None => 0,
        Some(Value::Text(by)) if **by == *"key" => 0,
        Some(Value::Text(by)) if **by == *"value" => 1,
        Some(_) => return Err(Error::render("dictsort: expected `by` to be \"key\" or \"value\"")),
    };
    let Value::Dict(map) = *value else {
        return Err(Error::render(format!("dictsort: expected a dictionary, found {}", value.kind())));
    };
    let pairs = machine.heap.pairs(map)?;
    let mut keys = Vec::with_capacity(pairs.len());
    for pair in &pairs {
        let key = machine.heap.item(pair, &Value::Int(part))?;
        keys.push(machine.heap.folded(&key, case_sensitive)?);
    }
    let sorted = machine.heap.sorted(pairs, keys, reverse)?;
    machine.heap.list(sorted)
}

pub(super) fn groupby(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [attribute, default, case_sensitive] = arguments.bind("groupby", ["attribute", "default", "case_sensitive"])?;
    let attribute = required(attribute, "groupby", "attribute")?;
    let case_sensitive = case_sensitive.is_some_and(|flag| machine.heap.truth(&flag));
    let items = machine.heap.values(value)?;
    let mut keys = Vec::with_capacity(items.len());
    for item in &items {
        let key = machine.heap.at_path(item, &attribute)?;
        keys.push(if matches!(key, Value::Undefined(_)) { default.clone().unwrap_or(key) } else { key });
    }
    let mut order = Vec::with_capacity(keys.len());
    for key in &keys {
        order.push(machine.heap.folded(key, case_sensitive)?);
    }
    let pairs = items.into_iter().zip(&keys).map(|(item, key)| machine.heap.tuple(vec![key.clone(), item])).collect::<Result<Vec<_>>>()?;
    let sorted = machine.heap.sorted(pairs, order, false)?;
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for pair in sorted {
        let (key, item) = (machine.heap.item(&pair, &Value::Int(0))?, machine.heap.item(&pair, &Value::Int(1))?);
        let folded = machine.heap.folded(&key, case_sensitive)?;
        match groups.last_mut() {
            Some((_, last, members)) if machine.heap.equal(last, &folded)? => members.push(item),
            _ => groups.push((key, folded, vec![item])),
        }
    }
    let mut result = Vec::with_capacity(groups.len());
    for (key, _, members) in groups {
        let members = machine.heap.list(members)?;
        result.push(machine.heap.tuple(vec![key, members])?);
    }
    machine.heap.list(result)
}

pub(super) fn map(machine: &mut Machine<'_>, value: &Value, mut arguments: Arguments) -> Result<Value> {
    // As in Jinja: what counts as false has no elements, also none.
    let items = if machine.heap.truth(value) { machine.heap.values(value)? } else { Vec::new() };
    let mut mapped = Vec::with_capacity(items.len());
    if arguments.positional.is_empty() {
        let [attribute, default] = arguments.bind("map", ["attribute", "default"])?;
        let attribute = required(attribute, "map", "attribute")?;
        for item in &items {
            let found = machine.heap.at_path(item, &attribute)?;
            mapped.push(if matches!(found, Value::Undefined(_)) { default.clone().unwrap_or(found) } else { found });
        }
    } else {
        let name = text(&arguments.positional.remove(0), "map")?;
        let filter = filter_named(&name).ok_or_else(|| Error::render(format!("map: there is no filter `{name}`")))?;
        for item in items {
            machine.descend()?;
            let again = Arguments { positional: arguments.positional.clone(), named: arguments.named.clone() };
            mapped.push(filter(machine, &item, again)?);
            machine.ascend();
        }
    }
    machine.heap.list(mapped)
}

/// `select`, `reject` and, with an attribute first, `selectattr` and `rejectattr`.
pub(super) fn choose(
    machine: &mut Machine<'_>,
    value: &Value,
    mut arguments: Arguments,
    by_attribute: bool,
    wanted: bool,
) -> Result<Value> {
    // As in Jinja: what counts as false has no elements, also none.
    let items = if machine.heap.truth(value) { machine.heap.values(value)? } else { Vec::new() };
    let attribute = match by_attribute {
        true if arguments.positional.is_empty() => return Err(Error::render("selectattr: expected the name of an attribute")),
        true => Some(arguments.positional.remove(0)),
        false => None,
    };
    let test = if arguments.positional.is_empty() {
        None
    } else {
        let name = text(&arguments.positional.remove(0), "select")?;
        Some(test_named(&name).ok_or_else(|| Error::render(format!("select: there is no test `{name}`")))?)
    };
    let mut chosen = Vec::new();
    for item in items {
        machine.step()?;
        let tested = attribute.as_ref().map_or(Ok(item.clone()), |attribute| machine.heap.at_path(&item, attribute))?;
        let holds = match test {
            None => machine.heap.truth(&tested),
            Some(test) => {
                let again = Arguments { positional: arguments.positional.clone(), named: arguments.named.clone() };
                test(machine, &tested, again)?
            }
        };
        if holds == wanted {
            chosen.push(item);
        }
    }
    machine.heap.list(chosen)
}

/// The value of an attribute and whether case matters, for `sort`, `unique`, `min` and `max`.
pub(super) fn sort_key(heap: &mut Heap, item: &Value, attribute: Option<&Value>, case_sensitive: bool) -> Result<Value> {
    let key = attribute.map_or(Ok(item.clone()), |attribute| heap.at_path(item, attribute))?;
    heap.folded(&key, case_sensitive)
}

pub(super) fn extreme(machine: &mut Machine<'_>, value: &Value, arguments: Arguments, largest: bool) -> Result<Value> {
    let [case_sensitive, attribute] = arguments.bind(if largest { "max" } else { "min" }, ["case_sensitive", "attribute"])?;
    let case_sensitive = case_sensitive.is_some_and(|flag| machine.heap.truth(&flag));
    let mut best: Option<(Value, Value)> = None;
    for item in machine.heap.values(value)? {
        let key = sort_key(&mut machine.heap, &item, attribute.as_ref(), case_sensitive)?;
        let better = match &best {
            None => true,
            Some((_, best)) => {
                let order = machine.heap.order(&key, best)?;
                order == Some(if largest { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Less })
            }
        };
        if better {
            best = Some((item, key));
        }
    }
    Ok(best.map_or(Value::Undefined(None), |(item, _)| item))
}

pub(super) fn sort(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [reverse, case_sensitive, attribute] = arguments.bind("sort", ["reverse", "case_sensitive", "attribute"])?;
    let case_sensitive = case_sensitive.is_some_and(|flag| machine.heap.truth(&flag));
    let reverse = reverse.is_some_and(|flag| machine.heap.truth(&flag));
    let items = machine.heap.values(value)?;
    let mut keys = Vec::with_capacity(items.len());
    for item in &items {
        keys.push(sort_key(&mut machine.heap, item, attribute.as_ref(), case_sensitive)?);
    }
    let sorted = machine.heap.sorted(items, keys, reverse)?;
    machine.heap.list(sorted)
}

pub(super) fn unique(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [case_sensitive, attribute] = arguments.bind("unique", ["case_sensitive", "attribute"])?;
    let case_sensitive = case_sensitive.is_some_and(|flag| machine.heap.truth(&flag));
    let mut seen: IndexMap<Key, Value> = IndexMap::new();
    for item in machine.heap.values(value)? {
        let key = sort_key(&mut machine.heap, &item, attribute.as_ref(), case_sensitive)?;
        seen.entry(machine.heap.key(&key)?).or_insert(item);
    }
    machine.heap.list(seen.into_values().collect())
}

pub(super) fn sum(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [attribute, start] = arguments.bind("sum", ["attribute", "start"])?;
    let attribute = attribute.filter(|attribute| !matches!(attribute, Value::None));
    let mut total = start.unwrap_or(Value::Int(0));
    for mut item in machine.heap.values(value)? {
        if let Some(attribute) = &attribute {
            item = machine.heap.at_path(&item, attribute)?;
        }
        total = machine.heap.arithmetic(Operator::Add, &total, &item)?;
    }
    Ok(total)
}

pub(super) fn reverse(machine: &mut Machine<'_>, value: &Value, _: Arguments) -> Result<Value> {
    if let Value::Text(text) = value {
        let text: String = text.chars().rev().collect();
        return machine.heap.text(text);
    }
    let mut values = machine.heap.values(value)?;
    values.reverse();
    machine.heap.list(values)
}

pub(super) fn last(machine: &mut Machine<'_>, value: &Value, _: Arguments) -> Result<Value> {
    let items = machine.heap.items(value)?;
    Ok(items.len().checked_sub(1).and_then(|index| items.get(index)).unwrap_or(Value::Undefined(None)))
}
