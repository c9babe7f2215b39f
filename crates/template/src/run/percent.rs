//! `"text %s" % values` with Python's rules.

use std::iter::Peekable;
use std::str::Chars;

use super::format::Spec;
use super::heap::Heap;
use super::number::truncate;
use super::value::{Key, Value};
use crate::error::{Error, Result};

/// What fills the placeholders.
struct Values<'v> {
    all: &'v Value,
    list: Vec<Value>,
    taken: usize,
    by_name: bool,
}

impl Values<'_> {
    fn next(&mut self) -> Result<Value> {
        let value = self.list.get(self.taken).cloned();
        self.taken += 1;
        value.ok_or_else(|| Error::render(format!("`%`: there are more placeholders than values ({})", self.list.len())))
    }
}

impl Heap {
    /// Fills the placeholders of `format` with a value, the values of a tuple, or those of a dictionary by name.
    pub(crate) fn percent(&mut self, format: &str, values: &Value) -> Result<String> {
        let list = if matches!(values, Value::Tuple(_)) { self.values(values)? } else { vec![values.clone()] };
        let mut values = Values { all: values, list, taken: 0, by_name: false };
        let mut out = String::new();
        let mut chars = format.chars().peekable();
        while let Some(c) = chars.next() {
            if c == '%' {
                let text = self.placeholder(&mut chars, &mut values)?;
                self.allot(text.len())?;
                out.push_str(&text);
            } else {
                out.push(c);
            }
        }
        let may_stay = values.by_name || matches!(values.all, Value::Dict(_) | Value::List(_)) && values.taken == 0;
        if values.taken < values.list.len() && !may_stay {
            return Err(Error::render(format!("`%`: there are more values ({}) than placeholders", values.list.len())));
        }
        self.allot(out.len())?;
        Ok(out)
    }

    fn placeholder(&mut self, chars: &mut Peekable<Chars<'_>>, values: &mut Values<'_>) -> Result<String> {
        self.spend(1)?;
        let mut named = None;
        if chars.next_if_eq(&'(').is_some() {
            let name = name_in_brackets(chars)?;
            let Value::Dict(map) = values.all else {
                return Err(Error::render("`%(name)s`: expected a dictionary after `%`"));
            };
            values.by_name = true;
            let value = self.maps[*map].get(&Key::Text(name.as_str().into())).cloned();
            named = Some(value.ok_or_else(|| Error::render(format!("`%`: the dictionary has no `{name}`")))?);
        }
        let mut spec = Spec::default();
        while let Some(flag) = chars.next_if(|c| matches!(c, '-' | '+' | ' ' | '#' | '0')) {
            match flag {
                '-' => spec.align = Some('<'),
                '+' => spec.sign = Some('+'),
                ' ' => spec.sign = spec.sign.or(Some(' ')),
                '#' => spec.alternate = true,
                _ => spec.zero = true,
            }
        }
        if chars.next_if_eq(&'*').is_some() {
            let width = star(&values.next()?)?;
            if width < 0 {
                spec.align = Some('<');
            }
            spec.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        } else {
            spec.width = digits(chars).unwrap_or(0);
        }
        if chars.next_if_eq(&'.').is_some() {
            spec.precision = if chars.next_if_eq(&'*').is_some() {
                Some(usize::try_from(star(&values.next()?)?).unwrap_or(0))
            } else {
                Some(digits(chars).unwrap_or(0))
            };
        }
        while chars.next_if(|c| matches!(c, 'h' | 'l' | 'L')).is_some() {}
        let Some(kind) = chars.next() else {
            return Err(Error::render("`%`: the last placeholder is incomplete; write `%%` for a percent sign"));
        };
        if kind == '%' {
            return Ok("%".to_owned());
        }
        let value = match named {
            Some(value) => value,
            None => values.next()?,
        };
        self.fill(kind, &value, &spec)
    }

    fn fill(&mut self, kind: char, value: &Value, spec: &Spec) -> Result<String> {
        let number = |what: &str| Error::render(format!("`%{kind}`: expected {what}, found {}", value.kind()));
        match kind {
            's' | 'r' | 'a' => {
                let text = if kind == 's' { self.str(value)?.to_string() } else { self.repr(value)? };
                let text = spec.precision.map_or(text.clone(), |precision| text.chars().take(precision).collect());
                self.pad(&Spec { zero: false, ..spec.clone() }, "", &text, '>')
            }
            'c' => {
                let text = match value {
                    Value::Text(text) if text.chars().count() == 1 => text.to_string(),
                    other => other
                        .as_int()
                        .and_then(|code| char::from_u32(u32::try_from(code).ok()?))
                        .ok_or_else(|| number("one character"))?
                        .to_string(),
                };
                self.pad(&Spec { zero: false, ..spec.clone() }, "", &text, '>')
            }
            'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
                let whole = match value {
                    Value::Float(value) if matches!(kind, 'd' | 'i' | 'u') => truncate(*value),
                    other => other.as_int(),
                };
                let kind = if matches!(kind, 'i' | 'u') { 'd' } else { kind };
                self.whole_text(whole.ok_or_else(|| number("a whole number"))?, kind, spec)
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                let value = value.as_float().ok_or_else(|| number("a number"))?;
                self.float_spec(value, kind, spec)
            }
            other => Err(Error::render(format!("`%{}` is no placeholder; write `%%` for a percent sign", other.escape_default()))),
        }
    }
}

fn name_in_brackets(chars: &mut Peekable<Chars<'_>>) -> Result<String> {
    let mut name = String::new();
    let mut open = 1;
    for c in chars {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Ok(name);
        }
        name.push(c);
    }
    Err(Error::render("`%`: expected `)` after the name in `%(name)s`"))
}

fn star(value: &Value) -> Result<i64> {
    value.as_int().ok_or_else(|| Error::render("`%*d`: expected a whole number for `*`"))
}

/// A number at the start; one that does not fit is as large as can be, and refused by the limits.
pub(super) fn digits(chars: &mut Peekable<Chars<'_>>) -> Option<usize> {
    let mut number = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        chars.next();
        number = Some(number.unwrap_or(0usize).saturating_mul(10).saturating_add(digit as usize));
    }
    number
}
