//! Text into tokens. Outside of braces everything is text; `{` opens an expression, `{%` a statement, `{#` a comment; a `-` at a brace takes the
//! white space beside it away.

use std::sync::Arc;

use super::strings;
use crate::error::{Error, ErrorKind, Result};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Text(Arc<str>),
    PrintBegin,
    PrintEnd,
    BlockBegin,
    BlockEnd,
    Name(Arc<str>),
    Str(String),
    Int(i64),
    Float(f64),
    Op(&'static str),
    End,
}

#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) token: Token,
    pub(crate) line: u32,
}

/// Operators, longer ones first.
const OPERATORS: [&str; 26] = [
    "**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";",
];

/// Tokens of a whole template.
pub(crate) fn template(source: &str) -> Result<Vec<Placed>> {
    let mut lexer = Lexer::new(source);
    lexer.template()?;
    Ok(lexer.finish())
}

/// Tokens of a bare expression.
pub(crate) fn expression(source: &str) -> Result<Vec<Placed>> {
    let mut lexer = Lexer::new(source);
    lexer.code(None)?;
    Ok(lexer.finish())
}

struct Lexer<'s> {
    rest: &'s str,
    line: u32,
    tokens: Vec<Placed>,
}

impl<'s> Lexer<'s> {
    fn new(source: &'s str) -> Self {
        Self { rest: source, line: 1, tokens: Vec::new() }
    }

    fn finish(mut self) -> Vec<Placed> {
        self.push(Token::End);
        self.tokens
    }

    fn push(&mut self, token: Token) {
        self.tokens.push(Placed { token, line: self.line });
    }

    fn fault<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Error::new(ErrorKind::Syntax, self.line, message))
    }

    /// Goes on by `length` bytes and gives them.
    fn skip(&mut self, length: usize) -> &'s str {
        let (skipped, rest) = self.rest.split_at(length);
        let lines = skipped.bytes().filter(|byte| *byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.rest = rest;
        skipped
    }

    fn skip_space(&mut self) {
        let length = self.rest.len() - self.rest.trim_start().len();
        self.skip(length);
    }

    fn template(&mut self) -> Result<()> {
        while let Some(open) = self.rest.find('{') {
            let text = &self.rest[..open];
            let after = &self.rest[open + 1..];
            let kind = after.chars().next().filter(|c| matches!(c, '%' | '#'));
            let mark = after[kind.map_or(0, char::len_utf8)..].chars().next().filter(|c| matches!(c, '-' | '+'));
            self.text(if mark == Some('-') { text.trim_end() } else { text });
            self.skip(open + 1 + usize::from(kind.is_some()) + usize::from(mark.is_some()));
            match kind {
                Some('#') => self.comment()?,
                Some(_) if self.raw()? => {}
                Some(_) => {
                    self.push(Token::BlockBegin);
                    self.code(Some(&("%}", Token::BlockEnd)))?;
                }
                None => {
                    self.push(Token::PrintBegin);
                    self.code(Some(&("}", Token::PrintEnd)))?;
                }
            }
        }
        self.text(self.rest);
        Ok(())
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(Token::Text(text.into()));
        }
    }

    fn comment(&mut self) -> Result<()> {
        let Some(end) = self.rest.find("#}") else {
            return self.fault("the comment that begins with `{#` is not closed: expected `#}`");
        };
        let strip = self.rest[..end].ends_with('-');
        self.skip(end + 2);
        if strip {
            self.skip_space();
        }
        Ok(())
    }

    /// `raw %} … {% endraw %}` just after `{%`.
    fn raw(&mut self) -> Result<bool> {
        let Some((length, strip_inside)) = closing_word(self.rest, "raw") else { return Ok(false) };
        self.skip(length);
        let mut from = 0;
        while let Some(found) = self.rest[from..].find("{%") {
            let open = from + found;
            let mut inside = &self.rest[open + 2..];
            let strip_before = inside.starts_with('-');
            inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
            if let Some((length, strip_after)) = closing_word(inside, "endraw") {
                let mut text = &self.rest[..open];
                text = if strip_inside { text.trim_start() } else { text };
                text = if strip_before { text.trim_end() } else { text };
                self.text(text);
                self.skip(self.rest.len() - inside.len() + length);
                if strip_after {
                    self.skip_space();
                }
                return Ok(true);
            }
            from = open + 2;
        }
        self.fault("`{% raw %}` is not closed: expected `{% endraw %}`")
    }

    /// Code up to its end at the outermost level of brackets.
    fn code(&mut self, end: Option<&(&str, Token)>) -> Result<()> {
        let begin = self.line;
        let mut open = Vec::new();
        loop {
            self.skip_space();
            if open.is_empty()
                && let Some((closing, token)) = end
            {
                let marked = self.rest.strip_prefix('-').or_else(|| self.rest.strip_prefix('+').filter(|_| *closing == "%}"));
                if let Some(rest) = marked.filter(|rest| rest.starts_with(closing)) {
                    let strip = self.rest.starts_with('-');
                    self.push(token.clone());
                    self.skip(self.rest.len() - rest.len() + closing.len());
                    if strip {
                        self.skip_space();
                    }
                    return Ok(());
                }
                if self.rest.starts_with(closing) {
                    self.push(token.clone());
                    self.skip(closing.len());
                    return Ok(());
                }
            }
            let Some(first) = self.rest.chars().next() else {
                return match end {
                    None => Ok(()),
                    Some((closing, _)) => {
                        Err(Error::new(ErrorKind::Syntax, begin, format!("what is opened here is not closed: expected `{closing}`")))
                    }
                };
            };
            self.token(first, &mut open)?;
        }
    }

    fn token(&mut self, first: char, open: &mut Vec<&'static str>) -> Result<()> {
        if first == '_' || first.is_alphabetic() {
            let length = self.rest.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(self.rest.len());
            self.push(Token::Name(self.rest[..length].into()));
            self.skip(length);
            return Ok(());
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if matches!(first, '"' | '\'') {
            let Some((text, length)) = strings::quoted(self.rest) else {
                return self.fault("a text in quotes is not closed, or an escape in it is wrong");
            };
            self.push(Token::Str(text));
            self.skip(length);
            return Ok(());
        }
        let Some(operator) = OPERATORS.into_iter().find(|operator| self.rest.starts_with(operator)) else {
            return self.fault(format!("the character `{}` has no meaning here", first.escape_default()));
        };
        match operator {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" if open.pop() != Some(operator) => return self.fault(format!("`{operator}` closes nothing that is open")),
            _ => {}
        }
        self.push(Token::Op(operator));
        self.skip(operator.len());
        Ok(())
    }

    fn number(&mut self) -> Result<()> {
        let Some((token, length)) = strings::number(self.rest) else {
            return self.fault("expected a number that fits into 64 bits");
        };
        self.push(token);
        self.skip(length);
        Ok(())
    }
}

/// ` word -%}` at the start: its length and whether white space after it goes away.
fn closing_word(text: &str, word: &str) -> Option<(usize, bool)> {
    let rest = text.trim_start().strip_prefix(word)?;
    let rest = rest.trim_start();
    let strip = rest.starts_with('-');
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest).strip_prefix("%}")?;
    let rest = if strip { rest.trim_start() } else { rest };
    Some((text.len() - rest.len(), strip))
}
