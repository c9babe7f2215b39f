//! Numbers and texts in a given width and form; `str.format`.

use super::arguments::Arguments;
use super::heap::Heap;
use super::number::{float_text, general, grouped, scientific};
use super::percent::digits;
use super::value::Value;
use crate::error::{Error, Result};
use crate::limits::MAX_DIGITS;

/// How a value is to look: `[[fill]align][sign][#][0][width][,][.precision][kind]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spec {
    pub(crate) fill: Option<char>,
    pub(crate) align: Option<char>,
    pub(crate) sign: Option<char>,
    pub(crate) alternate: bool,
    pub(crate) zero: bool,
    pub(crate) width: usize,
    pub(crate) grouping: Option<char>,
    pub(crate) precision: Option<usize>,
    pub(crate) kind: Option<char>,
}

impl Spec {
    fn parse(text: &str) -> Result<Self> {
        let mut spec = Self::default();
        let mut chars = text.chars().peekable();
        let is_align = |c: &char| matches!(c, '<' | '>' | '^' | '=');
        let mut ahead = text.chars();
        let (first, second) = (ahead.next(), ahead.next());
        if second.as_ref().is_some_and(is_align) {
            spec.fill = first;
            spec.align = second;
            chars.next();
            chars.next();
        } else {
            spec.align = chars.next_if(is_align);
        }
        spec.sign = chars.next_if(|c| matches!(c, '+' | '-' | ' '));
        spec.alternate = chars.next_if_eq(&'#').is_some();
        spec.zero = chars.next_if_eq(&'0').is_some();
        spec.width = digits(&mut chars).unwrap_or(0);
        spec.grouping = chars.next_if(|c| matches!(c, ',' | '_'));
        if chars.next_if_eq(&'.').is_some() {
            spec.precision = Some(digits(&mut chars).ok_or_else(|| Error::render("format: expected digits after `.`"))?);
        }
        spec.kind = chars.next();
        if chars.next().is_some() {
            return Err(Error::render("format: the part after `:` is not a valid form"));
        }
        Ok(spec)
    }

    fn digits(&self) -> Result<usize> {
        match self.precision.unwrap_or(6) {
            digits if digits <= MAX_DIGITS => Ok(digits),
            _ => Err(Error::limit(format!("at most {MAX_DIGITS} digits can be asked for"))),
        }
    }
}

impl Heap {
    /// Brings a text to the width asked for; `sign` stays in front of zeros.
    pub(crate) fn pad(&mut self, spec: &Spec, sign: &str, text: &str, default_align: char) -> Result<String> {
        let missing = spec.width.saturating_sub(sign.chars().count() + text.chars().count());
        self.allot_many(missing, 4)?;
        self.allot(sign.len() + text.len())?;
        let fill = spec.fill.unwrap_or(if spec.zero { '0' } else { ' ' });
        let align = spec.align.unwrap_or(if spec.zero { '=' } else { default_align });
        let fills = |count: usize| std::iter::repeat_n(fill, count).collect::<String>();
        Ok(match align {
            '<' if spec.fill.is_none() => format!("{sign}{text}{}", " ".repeat(missing)),
            '<' => format!("{sign}{text}{}", fills(missing)),
            '^' => format!("{}{sign}{text}{}", fills(missing / 2), fills(missing - missing / 2)),
            '=' => format!("{sign}{}{text}", fills(missing)),
            _ => format!("{}{sign}{text}", fills(missing)),
        })
    }

    /// A text in the middle of `width`; an odd space goes to the side that Python's `str.center` chooses.
    pub(crate) fn center(&mut self, text: &str, width: usize, fill: char) -> Result<String> {
        let missing = width.saturating_sub(text.chars().count());
        self.allot_many(missing, 4)?;
        self.allot(text.len())?;
        let left = missing / 2 + (missing & width & 1);
        let fills = |count: usize| std::iter::repeat_n(fill, count).collect::<String>();
        Ok(format!("{}{text}{}", fills(left), fills(missing - left)))
    }

    fn number(&mut self, spec: &Spec, negative: bool, prefix: &str, digits: &str) -> Result<String> {
        let sign = match spec.sign {
            _ if negative => "-",
            Some('+') => "+",
            Some(' ') => " ",
            _ => "",
        };
        let digits = spec.grouping.map_or(digits.to_owned(), |separator| grouped(digits, separator));
        self.pad(spec, &format!("{sign}{prefix}"), &digits, '>')
    }

    /// A whole number as `d`, `x`, `X`, `o` or `b`.
    pub(crate) fn whole_text(&mut self, value: i64, kind: char, spec: &Spec) -> Result<String> {
        let magnitude = value.unsigned_abs();
        let (prefix, mut digits) = match kind {
            'x' => ("0x", format!("{magnitude:x}")),
            'X' => ("0X", format!("{magnitude:X}")),
            'o' => ("0o", format!("{magnitude:o}")),
            'b' => ("0b", format!("{magnitude:b}")),
            _ => ("", magnitude.to_string()),
        };
        if let Some(precision) = spec.precision {
            let missing = precision.saturating_sub(digits.len());
            self.allot(missing)?;
            digits.insert_str(0, &"0".repeat(missing));
        }
        self.number(spec, value < 0, if spec.alternate { prefix } else { "" }, &digits)
    }

    /// A number as `e`, `f` or `g`.
    pub(crate) fn float_spec(&mut self, value: f64, kind: char, spec: &Spec) -> Result<String> {
        let digits = spec.digits()?;
        let magnitude = value.abs();
        let text = if value.is_finite() {
            match kind.to_ascii_lowercase() {
                'e' => scientific(magnitude, digits),
                'f' => format!("{magnitude:.digits$}"),
                _ => general(magnitude, digits, spec.alternate),
            }
        } else {
            float_text(magnitude)
        };
        let text = if kind.is_ascii_uppercase() { text.to_uppercase() } else { text };
        self.number(spec, value.is_sign_negative() && !value.is_nan(), "", &text)
    }

    /// `"{:.2f} {name}".format(…)`.
    pub(crate) fn format(&mut self, format: &str, arguments: &Arguments) -> Result<String> {
        let mut out = String::new();
        let mut rest = format;
        let mut automatic = 0;
        while let Some(at) = rest.find(['{', '}']) {
            out.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                out.push_str(brace);
                rest = after;
                continue;
            }
            let Some(end) = rest.find('}').filter(|_| brace == "{") else {
                return Err(Error::render("format: a brace stands alone; write `{{` or `}}` for a brace"));
            };
            self.spend(1)?;
            let text = self.field(&rest[..end], arguments, &mut automatic)?;
            self.allot(text.len())?;
            out.push_str(&text);
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        self.allot(out.len())?;
        Ok(out)
    }

    fn field(&mut self, field: &str, arguments: &Arguments, automatic: &mut usize) -> Result<String> {
        let (name, spec) = field.split_once(':').unwrap_or((field, ""));
        let (name, conversion) = name.split_once('!').map_or((name, None), |(name, conversion)| (name, Some(conversion)));
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut path) = name.split_at(end);
        let missing = || Error::render("format: there is no value for a placeholder");
        let mut value = if first.is_empty() {
            *automatic += 1;
            arguments.positional.get(*automatic - 1).cloned().ok_or_else(missing)?
        } else if let Ok(index) = first.parse::<usize>() {
            arguments.positional.get(index).cloned().ok_or_else(missing)?
        } else {
            arguments.named.iter().find(|(name, _)| **name == *first).map(|(_, value)| value.clone()).ok_or_else(missing)?
        };
        while !path.is_empty() {
            let (step, after) = if let Some(inside) = path.strip_prefix('[') {
                inside.split_once(']').ok_or_else(|| Error::render("format: expected `]`"))?
            } else {
                let inside = &path[1..];
                inside.split_at(inside.find(['.', '[']).unwrap_or(inside.len()))
            };
            let index = step.parse().map_or_else(|_| Value::from(step), Value::Int);
            value = self.item(&value, &index)?;
            path = after;
            if !path.is_empty() && !path.starts_with(['.', '[']) {
                return Err(Error::render("format: expected `.` or `[` after `]`"));
            }
        }
        match conversion {
            Some("r" | "a") => value = self.repr(&value)?.into(),
            Some("s") => value = Value::Text(self.str(&value)?),
            None => {}
            Some(_) => return Err(Error::render("format: expected `!r` or `!s`")),
        }
        self.formatted(&value, spec)
    }

    fn formatted(&mut self, value: &Value, spec: &str) -> Result<String> {
        if spec.is_empty() {
            return Ok(self.str(value)?.to_string());
        }
        let spec = Spec::parse(spec)?;
        let wrong = || Error::render(format!("format: this form is not for {}", value.kind()));
        match (value, spec.kind) {
            (Value::Int(_) | Value::Bool(_), None | Some('d' | 'n' | 'x' | 'X' | 'o' | 'b')) => {
                self.whole_text(value.as_int().unwrap_or(0), spec.kind.unwrap_or('d'), &spec)
            }
            (Value::Int(_) | Value::Bool(_) | Value::Float(_), Some('e' | 'E' | 'f' | 'F' | 'g' | 'G')) => {
                self.float_spec(value.as_float().unwrap_or(0.0), spec.kind.unwrap_or('f'), &spec)
            }
            (Value::Int(_) | Value::Bool(_) | Value::Float(_), Some('%')) => {
                let digits = spec.digits()?;
                let percent = value.as_float().unwrap_or(0.0) * 100.0;
                self.number(&spec, percent.is_sign_negative(), "", &format!("{:.digits$}%", percent.abs()))
            }
            (Value::Float(value), None) => {
                let text = match spec.precision {
                    Some(_) => general(value.abs(), spec.digits()?, false),
                    None => float_text(value.abs()),
                };
                self.number(&spec, value.is_sign_negative(), "", &text)
            }
            (Value::Int(_) | Value::Bool(_) | Value::Float(_), _) => Err(wrong()),
            (Value::Text(text), None | Some('s')) => {
                let text: String = text.chars().take(spec.precision.unwrap_or(usize::MAX)).collect();
                self.pad(&spec, "", &text, '<')
            }
            _ => Err(wrong()),
        }
    }
}
