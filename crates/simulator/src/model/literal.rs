//! Python literals, which macro variables are written in: numbers, strings, `True`, `None`, lists, tuples and dictionaries → JSON.

use serde_json::{Map, Number, Value};

use super::BARE_WORD;

/// Nesting that is followed.
const MAX_DEPTH: usize = 16;

/// Reads a literal; `None` if the text is none. Numbers too large for a float become the bare word `Infinity`.
pub(super) fn parse(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text.trim() };
    let value = reader.value(0)?;
    reader.rest.is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        let value = match self.rest.chars().next()? {
            '"' | '\'' => Value::String(self.string()?),
            '[' => self.list(']', depth)?,
            '(' => self.list(')', depth)?,
            '{' => self.dictionary(depth)?,
            _ => self.word()?,
        };
        self.rest = self.rest.trim_start();
        Some(value)
    }

    fn eat(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut chars = self.rest.char_indices();
        let (_, quote) = chars.next()?;
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    other => text.push(other),
                },
                c if c == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                c => text.push(c),
            }
        }
        None
    }

    fn list(&mut self, close: char, depth: usize) -> Option<Value> {
        self.rest = self.rest[1..].trim_start();
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(self.value(depth + 1)?);
            if !self.eat(',') && !self.rest.starts_with(close) {
                return None;
            }
        }
        Some(Value::Array(items))
    }

    fn dictionary(&mut self, depth: usize) -> Option<Value> {
        self.rest = self.rest[1..].trim_start();
        let mut map = Map::new();
        while !self.eat('}') {
            let key = match self.value(depth + 1)? {
                Value::String(text) => text,
                key @ (Value::Number(_) | Value::Bool(_)) => key.to_string(),
                _ => return None,
            };
            if !self.eat(':') {
                return None;
            }
            map.insert(key, self.value(depth + 1)?);
            if !self.eat(',') && !self.rest.starts_with('}') {
                return None;
            }
        }
        Some(Value::Object(map))
    }

    fn word(&mut self) -> Option<Value> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-._".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "True" => return Some(Value::Bool(true)),
            "False" => return Some(Value::Bool(false)),
            "None" => return Some(Value::Null),
            _ if !word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => return None,
            _ => {}
        }
        if let Ok(whole) = word.parse::<i64>() {
            return Some(Value::from(whole));
        }
        let number = word.parse::<f64>().ok()?;
        if number.is_infinite() && word.contains(|c: char| c.is_ascii_digit()) {
            let sign = if number < 0.0 { "-" } else { "" };
            return Some(Value::String(format!("{BARE_WORD}{sign}Infinity")));
        }
        Number::from_f64(number).map(Value::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[\\[\\](){}:,'\"\\\\a-z0-9 .é-]{0,40}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn literals() {
        for (text, value) in [
            ("7", json!(7)),
            ("-7.5", json!(-7.5)),
            ("1e3", json!(1000.0)),
            ("'a\\'b'", json!("a'b")),
            ("True", json!(true)),
            ("None", json!(null)),
            ("(1, 2,)", json!([1, 2])),
            ("[]", json!([])),
            ("{1: 2, 'a': (1,2)}", json!({"1": 2, "a": [1, 2]})),
        ] {
            assert_eq!(parse(text), Some(value), "{text}");
        }
        for text in ["", "{1,2}", "1j", "word", "'open", "[1 2]", "1 2", "inf", "nan"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("1e999"), Some(json!(format!("{BARE_WORD}Infinity"))));
        assert_eq!(parse(&"[".repeat(10_000)), None);
    }
}
