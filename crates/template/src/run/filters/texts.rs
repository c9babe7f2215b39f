//! Filters that give texts.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::run::arguments::{Arguments, count, required, text, whole};
use crate::run::machine::Machine;
use crate::run::text_rules::{percent_encoded, replace, strip};
use crate::run::value::Value;

/// Each word with a large letter; words end at white space, hyphens and brackets.
pub(super) fn title(text: &str) -> String {
    let mut begins = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if begins {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        begins = c.is_whitespace() || "-({[<".contains(c);
    }
    out
}

pub(super) fn center(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [width] = arguments.bind("center", ["width"])?;
    let width = width.map_or(Ok(80), |width| count(&width, "center"))?;
    let text = machine.heap.str(value)?;
    machine.heap.center(&text, width, ' ').map(Into::into)
}

pub(super) fn indent(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [width, first, blank] = arguments.bind("indent", ["width", "first", "blank"])?;
    let first = first.is_some_and(|flag| machine.heap.truth(&flag));
    let blank = blank.is_some_and(|flag| machine.heap.truth(&flag));
    let source = machine.heap.str(value)?;
    let indentation = match width {
        Some(Value::Text(indentation)) => indentation.to_string(),
        width => {
            let width = width.map_or(Ok(4), |width| whole(&width, "indent"))?;
            machine.heap.repeat(" ", width)?
        }
    };
    let lines: Vec<&str> = source.split('\n').collect();
    machine.heap.allot_many(indentation.len(), lines.len())?;
    machine.heap.allot(source.len())?;
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        out.push_str(if index > 0 { "\n" } else { "" });
        out.push_str(if (index > 0 && (blank || !line.is_empty())) || (index == 0 && first) { &indentation } else { "" });
        out.push_str(line);
    }
    Ok(out.into())
}

pub(super) fn join(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [separator, attribute] = arguments.bind("join", ["d", "attribute"])?;
    let separator = separator.map_or(Ok("".into()), |separator| machine.heap.str(&separator))?;
    let mut texts: Vec<Arc<str>> = Vec::new();
    for mut item in machine.heap.values(value)? {
        if let Some(attribute) = &attribute {
            item = machine.heap.at_path(&item, attribute)?;
        }
        texts.push(machine.heap.str(&item)?);
    }
    machine.heap.joined(&separator, &texts).map(Into::into)
}

pub(super) fn replace_filter(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [old, new, limit] = arguments.bind("replace", ["old", "new", "count"])?;
    let source = machine.heap.str(value)?;
    let old = machine.heap.str(&required(old, "replace", "old")?)?;
    let new = machine.heap.str(&required(new, "replace", "new")?)?;
    let limit = limit.filter(|limit| !matches!(limit, Value::None)).map_or(Ok(-1), |limit| whole(&limit, "replace"))?;
    replace(&mut machine.heap, &source, &old, &new, usize::try_from(limit).ok()).map(Into::into)
}

pub(super) fn trim(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [chars] = arguments.bind("trim", ["chars"])?;
    let chars = chars.filter(|chars| !matches!(chars, Value::None)).map(|chars| text(&chars, "trim")).transpose()?;
    let source = machine.heap.str(value)?;
    machine.heap.text(strip(&source, chars.as_deref(), true, true))
}

pub(super) fn truncate_filter(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [length, kill_words, end, leeway] = arguments.bind("truncate", ["length", "killwords", "end", "leeway"])?;
    let length = length.map_or(Ok(255), |length| count(&length, "truncate"))?;
    let kill_words = kill_words.is_some_and(|flag| machine.heap.truth(&flag));
    let end = end.map_or(Ok("...".into()), |end| machine.heap.str(&end))?;
    let leeway = leeway.filter(|leeway| !matches!(leeway, Value::None)).map_or(Ok(5), |leeway| count(&leeway, "truncate"))?;
    let source = machine.heap.str(value)?;
    if source.chars().count() <= length.saturating_add(leeway) {
        return Ok(Value::Text(source));
    }
    let Some(kept) = length.checked_sub(end.chars().count()) else {
        return Err(Error::render("truncate: the length is shorter than the text at the end"));
    };
    let mut text: String = source.chars().take(kept).collect();
    if !kill_words && let Some(space) = text.rfind(' ') {
        text.truncate(space);
    }
    text.push_str(&end);
    machine.heap.text(text)
}

pub(super) fn urlencode(machine: &mut Machine<'_>, value: &Value, _: Arguments) -> Result<Value> {
    let pairs = match value {
        Value::Dict(map) => machine.heap.pairs(*map)?,
        Value::List(_) | Value::Tuple(_) => machine.heap.values(value)?,
        other => {
            let text = machine.heap.str(other)?;
            machine.heap.allot_many(text.len(), 3)?;
            return Ok(percent_encoded(&text, "/", false).into());
        }
    };
    let mut parts: Vec<Arc<str>> = Vec::new();
    for pair in pairs {
        let [name, value] = <[Value; 2]>::try_from(machine.heap.values(&pair)?)
            .map_err(|_| Error::render("urlencode: expected text, a dictionary or pairs"))?;
        let (name, value) = (machine.heap.str(&name)?, machine.heap.str(&value)?);
        machine.heap.allot_many(name.len() + value.len(), 3)?;
        parts.push(format!("{}={}", percent_encoded(&name, "", true), percent_encoded(&value, "", true)).into());
    }
    machine.heap.joined("&", &parts).map(Into::into)
}

pub(super) fn tojson(machine: &mut Machine<'_>, value: &Value, arguments: Arguments) -> Result<Value> {
    let [indent] = arguments.bind("tojson", ["indent"])?;
    let indent = match indent {
        None | Some(Value::None) => None,
        Some(indent) => Some(count(&indent, "tojson")?),
    };
    let json = machine.heap.json_text(value, indent)?;
    // As in Jinja, so that the text is also safe within HTML.
    let json = json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026").replace('\'', "\\u0027");
    machine.heap.text(json)
}
