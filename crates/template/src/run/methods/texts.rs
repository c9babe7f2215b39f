//! Methods of texts.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::run::arguments::{Arguments, count, required, text, whole};
use crate::run::format::Spec;
use crate::run::heap::Heap;
use crate::run::text_rules::{capitalized, replace, split, split_whitespace, strip, titled};
use crate::run::value::Value;

impl Heap {
    pub(super) fn text_method(&mut self, value: &Arc<str>, name: &str, arguments: Arguments) -> Result<Option<Value>> {
        self.spend(value.len() / 16)?;
        let result = match name {
            "lower" | "casefold" => value.to_lowercase(),
            "upper" => value.to_uppercase(),
            "capitalize" => capitalized(value),
            "title" => titled(value),
            "swapcase" => value.chars().flat_map(swapped).collect(),
            "strip" | "lstrip" | "rstrip" => {
                let [chars] = arguments.bind(name, ["chars"])?;
                let chars = optional_text(chars, name)?;
                strip(value, chars.as_deref(), name != "rstrip", name != "lstrip").to_owned()
            }
            "replace" => {
                let [old, new, limit] = arguments.bind(name, ["old", "new", "count"])?;
                let old = text(&required(old, name, "old")?, name)?;
                let new = text(&required(new, name, "new")?, name)?;
                let limit = limit.map_or(Ok(-1), |limit| whole(&limit, name))?;
                return replace(self, value, &old, &new, usize::try_from(limit).ok()).map(|text| Some(text.into()));
            }
            "removeprefix" => {
                let part = one_text(arguments, name)?;
                value.strip_prefix(&*part).unwrap_or(value).to_owned()
            }
            "removesuffix" => {
                let part = one_text(arguments, name)?;
                value.strip_suffix(&*part).unwrap_or(value).to_owned()
            }
            "format" => {
                let text = self.format(value, &arguments)?;
                return Ok(Some(text.into()));
            }
            "join" => {
                let [items] = arguments.bind(name, ["iterable"])?;
                let items = self.values(&required(items, name, "iterable")?)?;
                let texts = items.iter().map(|item| text(item, name)).collect::<Result<Vec<_>>>()?;
                return self.joined(value, &texts).map(|text| Some(text.into()));
            }
            "center" | "ljust" | "rjust" => {
                let [width, fill] = arguments.bind(name, ["width", "fillchar"])?;
                let width = count(&required(width, name, "width")?, name)?;
                let fill = optional_text(fill, name)?.unwrap_or_else(|| " ".into());
                let mut chars = fill.chars();
                let (Some(fill), None) = (chars.next(), chars.next()) else {
                    return Err(Error::render(format!("{name}: expected one character to fill with")));
                };
                match name {
                    "center" => self.center(value, width, fill)?,
                    "ljust" => self.pad(&Spec { fill: Some(fill), width, ..Spec::default() }, "", value, '<')?,
                    _ => self.pad(&Spec { fill: Some(fill), width, ..Spec::default() }, "", value, '>')?,
                }
            }
            "zfill" => {
                let [width] = arguments.bind(name, ["width"])?;
                let width = count(&required(width, name, "width")?, name)?;
                let (sign, digits) = value.split_at(usize::from(value.starts_with(['-', '+'])));
                let spec = Spec { zero: true, width, ..Spec::default() };
                self.pad(&spec, sign, digits, '>')?
            }
            _ => return self.text_question(value, name, arguments),
        };
        self.text(result).map(Some)
    }

    /// Methods of texts that do not give a text.
    fn text_question(&mut self, value: &Arc<str>, name: &str, arguments: Arguments) -> Result<Option<Value>> {
        let every = |rule: fn(char) -> bool| Value::Bool(!value.is_empty() && value.chars().all(rule));
        let letters = || value.chars().any(|c| c.is_lowercase() || c.is_uppercase());
        Ok(Some(match name {
            "isdigit" | "isdecimal" | "isnumeric" => every(char::is_numeric),
            "isalpha" => every(char::is_alphabetic),
            "isalnum" => every(char::is_alphanumeric),
            "isspace" => every(char::is_whitespace),
            "islower" => Value::Bool(letters() && !value.chars().any(char::is_uppercase)),
            "isupper" => Value::Bool(letters() && !value.chars().any(char::is_lowercase)),
            "startswith" | "endswith" => {
                let [parts] = arguments.bind(name, ["part"])?;
                let parts = required(parts, name, "part")?;
                let parts = if matches!(parts, Value::Tuple(_)) { self.values(&parts)? } else { vec![parts] };
                let mut found = false;
                for part in &parts {
                    let part = text(part, name)?;
                    found = found || if name == "startswith" { value.starts_with(&*part) } else { value.ends_with(&*part) };
                }
                Value::Bool(found)
            }
            "count" => {
                let part = one_text(arguments, name)?;
                let found = if part.is_empty() { value.chars().count() + 1 } else { value.matches(&*part).count() };
                Value::Int(i64::try_from(found).unwrap_or(i64::MAX))
            }
            "find" | "index" | "rfind" | "rindex" => {
                let [part, start] = arguments.bind(name, ["part", "start"])?;
                let part = text(&required(part, name, "part")?, name)?;
                let start = start.map_or(Ok(0), |start| count(&start, name))?;
                let from = value.char_indices().nth(start).map_or(value.len(), |(at, _)| at);
                let rest = &value[from..];
                let found = if name.starts_with('r') { rest.rfind(&*part) } else { rest.find(&*part) };
                match found {
                    Some(at) => Value::Int(i64::try_from(value[..from + at].chars().count()).unwrap_or(i64::MAX)),
                    None if name.ends_with("find") => Value::Int(-1),
                    None => return Err(Error::render(format!("{name}: the text is not found"))),
                }
            }
            "split" | "rsplit" => {
                let [separator, limit] = arguments.bind(name, ["sep", "maxsplit"])?;
                let limit = limit.map_or(Ok(-1), |limit| whole(&limit, name))?;
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                let parts = match optional_text(separator, name)? {
                    Some(separator) if separator.is_empty() => return Err(Error::render(format!("{name}: expected a separator"))),
                    Some(separator) => split(value, &separator, limit, name == "rsplit"),
                    None => split_whitespace(value, limit, name == "rsplit"),
                };
                self.text_list(&parts)?
            }
            "splitlines" => {
                let parts: Vec<&str> = value.lines().collect();
                self.text_list(&parts)?
            }
            "partition" | "rpartition" => {
                let separator = one_text(arguments, name)?;
                let found = if name == "partition" { value.split_once(&*separator) } else { value.rsplit_once(&*separator) };
                let parts = match found {
                    Some((before, after)) => [before, &separator, after],
                    None if name == "partition" => [value, "", ""],
                    None => ["", "", value],
                };
                let parts = parts.into_iter().map(|part| self.text(part)).collect::<Result<_>>()?;
                self.tuple(parts)?
            }
            _ => return Ok(None),
        }))
    }

    pub(crate) fn text_list(&mut self, parts: &[&str]) -> Result<Value> {
        let parts = parts.iter().map(|part| self.text(*part)).collect::<Result<_>>()?;
        self.list(parts)
    }

    /// Texts with a separator between them.
    pub(crate) fn joined(&mut self, separator: &str, texts: &[Arc<str>]) -> Result<String> {
        self.allot_many(separator.len(), texts.len())?;
        self.allot(texts.iter().map(|text| text.len()).sum())?;
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        Ok(texts.join(separator))
    }
}

fn swapped(c: char) -> Vec<char> {
    if c.is_uppercase() { c.to_lowercase().collect() } else { c.to_uppercase().collect() }
}

fn optional_text(value: Option<Value>, name: &str) -> Result<Option<Arc<str>>> {
    match value {
        None | Some(Value::None) => Ok(None),
        Some(value) => text(&value, name).map(Some),
    }
}

fn one_text(arguments: Arguments, name: &str) -> Result<Arc<str>> {
    let [part] = arguments.bind(name, ["part"])?;
    text(&required(part, name, "part")?, name)
}
