//! Filters.

mod lists;
mod numbers;
mod texts;

use super::arguments::{Arguments, required, text};
use super::machine::Machine;
use super::text_rules::{capitalized, escaped, without_tags};
use super::value::{Key, Value};
use crate::error::{Error, Result};
use lists::{batch, choose, dictsort, extreme, groupby, last, map, reverse, slice, sort, sum, unique};
use numbers::{abs, filesizeformat, float, int, round_filter};
use texts::{center, indent, join, replace_filter, title, tojson, trim, truncate_filter, urlencode};

/// A filter of a value.
pub(crate) type FilterFn = fn(&mut Machine<'_>, &Value, Arguments) -> Result<Value>;

/// The filter of this name.
pub(crate) fn filter_named(name: &str) -> Option<FilterFn> {
    Some(match name {
        "abs" => abs,
        "attr" => attr,
        "batch" => batch,
        "bool" => |machine, value, _| Ok(Value::Bool(machine.heap.truth(value))),
        "capitalize" => |machine, value, _| machine.rewrite(value, capitalized),
        "center" => center,
        "count" | "length" => length,
        "d" | "default" => default,
        "dictsort" => dictsort,
        "e" | "escape" | "forceescape" => |machine, value, _| {
            let text = machine.heap.str(value)?;
            machine.heap.allot_many(text.len(), 5)?;
            Ok(escaped(&text).into())
        },
        "filesizeformat" => filesizeformat,
        "first" => |machine, value, _| Ok(machine.heap.items(value)?.get(0).unwrap_or(Value::Undefined(None))),
        "float" => float,
        "format" => |machine, value, arguments| {
            let format = machine.heap.str(value)?;
            let values = if arguments.named.is_empty() {
                machine.heap.tuple(arguments.positional)?
            } else {
                machine.heap.dict(arguments.named.into_iter().map(|(name, value)| (Key::Text(name), value)).collect())?
            };
            let text = machine.heap.percent(&format, &values)?;
            Ok(text.into())
        },
        "fromjson" => fromjson,
        "groupby" => groupby,
        "indent" => indent,
        "int" => int,
        "items" => |machine, value, _| match value {
            Value::Dict(map) => {
                let pairs = machine.heap.pairs(*map)?;
                machine.heap.list(pairs)
            }
            Value::Undefined(_) => machine.heap.list(Vec::new()),
            other => Err(Error::render(format!("items: expected a dictionary, found {}", other.kind()))),
        },
        "join" => join,
        "last" => last,
        "list" => |machine, value, _| {
            let values = machine.heap.values(value)?;
            machine.heap.list(values)
        },
        "lower" => |machine, value, _| machine.rewrite(value, str::to_lowercase),
        "map" => map,
        "max" => |machine, value, arguments| extreme(machine, value, arguments, true),
        "min" => |machine, value, arguments| extreme(machine, value, arguments, false),
        "reject" => |machine, value, arguments| choose(machine, value, arguments, false, false),
        "rejectattr" => |machine, value, arguments| choose(machine, value, arguments, true, false),
        "replace" => replace_filter,
        "reverse" => reverse,
        "round" => round_filter,
        "safe" | "string" => |machine, value, _| Ok(Value::Text(machine.heap.str(value)?)),
        "select" => |machine, value, arguments| choose(machine, value, arguments, false, true),
        "selectattr" => |machine, value, arguments| choose(machine, value, arguments, true, true),
        "slice" => slice,
        "sort" => sort,
        "striptags" => |machine, value, _| machine.rewrite(value, without_tags),
        "sum" => sum,
        "title" => |machine, value, _| machine.rewrite(value, title),
        "tojson" => tojson,
        "trim" => trim,
        "truncate" => truncate_filter,
        "unique" => unique,
        "upper" => |machine, value, _| machine.rewrite(value, str::to_uppercase),
        "urlencode" => urlencode,
        "wordcount" => |machine, value, _| {
            let text = machine.heap.str(value)?;
            let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).count();
            Ok(Value::Int(i64::try_from(words).unwrap_or(i64::MAX)))
        },
        _ => return None,
    })
}

impl Machine<'_> {
    /// The text of a value, rewritten to one of about the same length.
    fn rewrite(&mut self, value: &Value, rule: impl Fn(&str) -> String) -> Result<Value> {
        let text = self.heap.str(value)?;
        self.heap.spend(text.len() / 16)?;
        self.heap.text(rule(&text))
    }
}

fn attr(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [name] = arguments.bind("attr", ["name"])?;
    let name = text(&required(name, "attr", "name")?, "attr")?;
    match value {
        // As in Jinja: attributes only, not the entries of a dictionary.
        Value::Dict(_) => Ok(Value::Undefined(None)),
        value => machine.attribute_of(value, &name),
    }
}

fn length(machine: &mut Machine<'_>, value: &Value, _: Arguments) -> Result<Value> {
    let length = machine.heap.length(value).ok_or_else(|| Error::render(format!("length: {} has no length", value.kind())))?;
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn default(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [default, boolean] = arguments.bind("default", ["default_value", "boolean"])?;
    let by_truth = boolean.is_some_and(|boolean| machine.heap.truth(&boolean));
    let missing = matches!(value, Value::Undefined(_)) || (by_truth && !machine.heap.truth(value));
    Ok(if missing { default.unwrap_or_else(|| "".into()) } else { value.clone() })
}

fn fromjson(machine: &mut Machine<'_>, value: &Value, _: Arguments) -> Result<Value> {
    let source = text(value, "fromjson")?;
    machine.heap.parse_json(&source)
}
