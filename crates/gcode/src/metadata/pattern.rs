//! The small pattern language of the field tables: the specification's own notation (section 3.3), matched over bytes.
//!
//! | Written | Means |
//! |---|---|
//! | `·`, `·+`, `·*` | one, one or more, any number of white spaces, line ends included |
//! | `⟨F⟩`, `⟨D⟩`, `⟨S⟩` | captured: a number, digits, the rest of the line |
//! | `⟨F+⟩`, `⟨D+⟩`, `⟨S+⟩` | the same, not captured |
//! | `¿` | any one byte |
//! | `¶` | end of a line, not consumed |
//! | anything else | itself |
//!
//! One thing differs from plain reading: directly before `⟨S⟩` white space ends with its line, and may be missing there. So
//! a setting whose trailing space an editor took away is empty, and does not take the next line for its value.
//!
//! Matching never steps back, so its cost is linear in the text for all the patterns used.

use std::ops::Range;

use memchr::memmem;

/// Longest value taken from one line, in bytes; what is longer is cut. Keeps hostile lines from becoming large lists.
pub(super) const MAX_VALUE: usize = 16 * 1024;

/// Longest line that may stand between two parts of a pattern, in bytes.
const MAX_SKIPPED_LINE: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'p> {
    Literal(&'p str),
    Space,
    Spaces,
    MaybeSpaces,
    /// One or several white spaces of the same line, or the end of it.
    SpaceBeforeValue {
        several: bool,
    },
    Number {
        captured: bool,
    },
    Digits {
        captured: bool,
    },
    RestOfLine {
        captured: bool,
    },
    AnyByte,
    LineEnd,
}

/// Names of the multi-character tokens; longer ones before their own beginnings.
const SPELLING: [(&str, Token<'static>); 11] = [
    ("·+", Token::Spaces),
    ("·*", Token::MaybeSpaces),
    ("·", Token::Space),
    ("⟨F⟩", Token::Number { captured: true }),
    ("⟨F+⟩", Token::Number { captured: false }),
    ("⟨D⟩", Token::Digits { captured: true }),
    ("⟨D+⟩", Token::Digits { captured: false }),
    ("⟨S⟩", Token::RestOfLine { captured: true }),
    ("⟨S+⟩", Token::RestOfLine { captured: false }),
    ("¿", Token::AnyByte),
    ("¶", Token::LineEnd),
];

/// A place where a pattern matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// What the capturing token took; empty at the end of the match without one.
    pub(super) captured: Range<usize>,
    /// Just after the match.
    pub(super) end: usize,
}

/// A pattern ready to be searched.
pub(super) struct Pattern<'p> {
    tokens: Vec<Token<'p>>,
    /// The literal that is searched for, and how many bytes of the match lie before it.
    anchor: (&'p str, usize),
}

impl<'p> Pattern<'p> {
    /// Reads the notation.
    pub(super) fn new(notation: &'p str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = notation;
        while !rest.is_empty() {
            if let Some((spelling, token)) = SPELLING.iter().find(|(spelling, _)| rest.starts_with(spelling)) {
                tokens.push(*token);
                rest = &rest[spelling.len()..];
            } else {
                let end = SPELLING.iter().filter_map(|(spelling, _)| rest.find(spelling)).min().unwrap_or(rest.len());
                tokens.push(Token::Literal(&rest[..end]));
                rest = &rest[end..];
            }
        }
        if let [.., space, Token::RestOfLine { captured: true }] = &mut tokens[..]
            && matches!(space, Token::Space | Token::Spaces)
        {
            *space = Token::SpaceBeforeValue { several: *space == Token::Spaces };
        }
        let anchor = anchor(&tokens);
        Self { tokens, anchor }
    }

    /// First match in `text` that begins at or after `from`.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<Match> {
        let (literal, before) = self.anchor;
        let finder = memmem::Finder::new(literal);
        let searched = text.get(from.checked_add(before)?..)?;
        finder.find_iter(searched).find_map(|at| self.match_at(text, from + at))
    }

    /// All matches, none overlapping another.
    pub(super) fn find_all<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Match> + 't {
        let (literal, before) = self.anchor;
        let mut free_from = 0;
        memmem::find_iter(text, literal).filter_map(move |at| {
            let start = at.checked_sub(before).filter(|&start| start >= free_from)?;
            let found = self.match_at(text, start)?;
            free_from = found.end;
            Some(found)
        })
    }

    fn match_at(&self, text: &[u8], start: usize) -> Option<Match> {
        let mut at = start;
        let mut captured = None;
        for token in &self.tokens {
            let rest = text.get(at..)?;
            let length = token.length(rest)?;
            if token.captures() {
                captured = Some(at..at + length);
            }
            at += length;
        }
        Some(Match { captured: captured.unwrap_or(at..at), end: at })
    }
}

/// The longest literal at a fixed distance from the pattern's start, and that distance.
fn anchor<'p>(tokens: &[Token<'p>]) -> (&'p str, usize) {
    let mut best = ("", 0);
    let mut before = 0;
    for token in tokens {
        before += match token {
            Token::Literal(literal) => {
                if literal.len() > best.0.len() {
                    best = (literal, before);
                }
                literal.len()
            }
            Token::Space | Token::AnyByte => 1,
            _ => break,
        };
    }
    best
}

impl Token<'_> {
    fn captures(self) -> bool {
        matches!(self, Self::Number { captured: true } | Self::Digits { captured: true } | Self::RestOfLine { captured: true })
    }

    /// How many bytes at the start of `text` the token takes, if it fits there.
    fn length(self, text: &[u8]) -> Option<usize> {
        let spaces = || text.iter().take_while(|byte| is_space(**byte)).count();
        let spaces_on_line = || text.iter().take_while(|byte| is_space(**byte) && **byte != b'\n').count();
        let at_line_end = text.first().is_none_or(|byte| *byte == b'\n');
        match self {
            Self::Literal(literal) => text.starts_with(literal.as_bytes()).then_some(literal.len()),
            Self::Space => text.first().is_some_and(|byte| is_space(*byte)).then_some(1),
            Self::Spaces => Some(spaces()).filter(|&count| count > 0),
            Self::MaybeSpaces => Some(spaces()),
            Self::SpaceBeforeValue { several } => match spaces_on_line() {
                0 => at_line_end.then_some(0),
                count => Some(if several { count } else { 1 }),
            },
            Self::Number { .. } => Some(number_length(text)).filter(|&count| count > 0),
            Self::Digits { .. } => Some(digits(text)).filter(|&count| count > 0),
            Self::RestOfLine { captured: true } => Some(rest_of_line(text, MAX_VALUE).0),
            Self::RestOfLine { captured: false } => {
                Some(rest_of_line(text, MAX_SKIPPED_LINE)).filter(|(_, whole)| *whole).map(|(length, _)| length)
            }
            Self::AnyByte => (!text.is_empty()).then_some(1),
            Self::LineEnd => at_line_end.then_some(0),
        }
    }
}

/// Length of the line at the start of `text`, at most `limit`, and whether the line ends there.
fn rest_of_line(text: &[u8], limit: usize) -> (usize, bool) {
    let seen = &text[..text.len().min(limit)];
    match memchr::memchr(b'\n', seen) {
        Some(feed) => (feed, true),
        None => (seen.len(), seen.len() == text.len()),
    }
}

/// Length of the number at the start of `text`: digits, a point, digits; no sign, no exponent, no trailing point.
pub(super) fn number_length(text: &[u8]) -> usize {
    let whole = digits(text);
    let fraction = match text.get(whole) {
        Some(b'.') => digits(&text[whole + 1..]),
        _ => 0,
    };
    if fraction > 0 { whole + 1 + fraction } else { whole }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// White space as the specification counts it: also vertical tab and form feed.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<'t>(notation: &str, text: &'t str) -> Option<&'t str> {
        let found = Pattern::new(notation).find(text.as_bytes(), 0)?;
        text.get(found.captured)
    }

    #[test]
    fn numbers_have_no_sign_exponent_or_trailing_point() {
        assert_eq!(first("= ⟨F⟩", "a = 0.25mm"), Some("0.25"));
        assert_eq!(first("= ⟨F⟩", "a = 215."), Some("215"));
        assert_eq!(first("= ⟨F⟩", "a = .5"), Some(".5"));
        assert_eq!(first("= ⟨F⟩", "a = 1e5"), Some("1"));
        assert_eq!(first("= ⟨F⟩", "a = -5"), None);
        assert_eq!(first("= ⟨F⟩", "a = -5 b = 7"), Some("7"), "goes on after a failed place");
    }

    #[test]
    fn spaces_and_tokens_before_the_anchor() {
        assert_eq!(first(";·name·=·⟨S⟩", ";\tname = x y \nz"), Some("x y "));
        assert_eq!(first(";·name·=·⟨S⟩", "; name  = x"), None);
        assert_eq!(first(";·+name,⟨S⟩", ";   name,"), Some(""));
        assert_eq!(first("Ext #⟨D+⟩·+=·+⟨F⟩·*mm", "; Ext #12 =  3.5mm"), Some("3.5"));
        assert_eq!(first(";Type·¿⟨D+⟩:·⟨S⟩", ";Type #1: PLA"), Some("PLA"));
        assert_eq!(first("Z⟨F⟩¶", "Z1 F\nZ2\n"), Some("2"));
        assert_eq!(first(";LAYER:1·+⟨S+⟩·+;HEIGHT:⟨F⟩", ";LAYER:1\n;W:2\n;HEIGHT:0.3"), Some("0.3"));
    }

    #[test]
    fn empty_values_do_not_take_the_next_line() {
        for text in ["; a =\n; b = 1\n", "; a = \n; b = 1\n", "; a ="] {
            assert_eq!(first(";·a·=·⟨S⟩", text), Some(""), "{text:?}");
        }
        assert_eq!(first(";·a·:·+⟨S⟩", "; a : \t\n; b : 1\n"), Some(""));
        assert_eq!(first(";·a·:·+⟨S⟩", "; a :x\n"), None);
    }

    #[test]
    fn matches_do_not_overlap() {
        let pattern = Pattern::new("aa");
        assert_eq!(pattern.find_all(b"aaaaa").map(|found| found.end).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn long_values_are_cut() {
        let text = format!("v={}", "x".repeat(2 * MAX_VALUE));
        assert_eq!(first("v=⟨S⟩", &text).map(str::len), Some(MAX_VALUE));
    }

    #[test]
    fn the_anchor_is_the_longest_literal_at_a_fixed_distance() {
        assert_eq!(Pattern::new(";·nozzle_diameter·=·⟨F⟩ long literal behind").anchor, ("nozzle_diameter", 2));
        assert_eq!(Pattern::new(";·+extruder").anchor, (";", 0));
    }
}
