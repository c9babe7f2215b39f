//! Search filters (RFC 4515). What users type is put into values of a filter that is parsed already: it cannot become a part of its structure.

use std::fmt::Write;
use std::ops::BitOr;

use super::ber::{BOOLEAN, OCTETS, SEQUENCE, element, group};

/// Filters within filters.
const MAX_DEPTH: u32 = 16;

/// Longest filter in bytes.
const MAX_LENGTH: usize = 4096;

/// Context tag of the choices of RFC 4511 section 4.5.1 that are made of others.
const CONSTRUCTED: u8 = 0xa0;
/// The same for those that are not.
const PRIMITIVE: u8 = 0x80;

/// A search filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// All of them hold.
    And(Vec<Filter>),
    /// One of them holds.
    Or(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// A comparison of an attribute with a value.
    Compare(Comparison, String, Vec<u8>),
    /// The attribute is there.
    Present(String),
    /// The parts of a value between its stars; the first and the last may be empty.
    Parts(String, Vec<Vec<u8>>),
    /// A matching rule: attribute, rule, value, whether the parts of the entry's name count as well.
    Rule(Option<String>, Option<String>, Vec<u8>, bool),
}

/// How an attribute is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `~=`
    About,
}

impl Filter {
    /// Entries whose `attribute` is `value`.
    #[must_use]
    pub fn equal(attribute: &str, value: &str) -> Self {
        Self::Compare(Comparison::Equal, attribute.to_owned(), value.into())
    }

    /// Reads a filter such as `(&(objectClass=Person)(uid=anna))`.
    ///
    /// # Errors
    /// What was expected, and after how many bytes; without the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > MAX_LENGTH {
            return Err(format!("at most {MAX_LENGTH} bytes"));
        }
        let mut parser = Parser { text, at: 0 };
        let filter = parser.filter(0);
        let filter = filter.and_then(|filter| if parser.rest().is_empty() { Ok(filter) } else { Err("the end") });
        filter.map_err(|expected| format!("{expected} after {} bytes", parser.at))
    }

    /// Puts `name` in the place of `word` wherever that stands in a value. In a value that is a distinguished name (`uid=WORD,ou=people`)
    /// the name is escaped as one, too. True when the word was found.
    pub fn fill_in(&mut self, word: &str, name: &str) -> bool {
        match self {
            Self::And(filters) | Self::Or(filters) => filters.iter_mut().map(|filter| filter.fill_in(word, name)).fold(false, BitOr::bitor),
            Self::Not(filter) => filter.fill_in(word, name),
            Self::Compare(_, _, value) | Self::Rule(_, _, value, _) => fill_in(value, word, name),
            Self::Parts(_, parts) => parts.iter_mut().map(|part| fill_in(part, word, name)).fold(false, BitOr::bitor),
            Self::Present(_) => false,
        }
    }

    /// As it travels.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::And(filters) => group(CONSTRUCTED, filters.iter().map(Self::encode)),
            Self::Or(filters) => group(CONSTRUCTED | 1, filters.iter().map(Self::encode)),
            Self::Not(filter) => element(CONSTRUCTED | 2, &filter.encode()),
            Self::Compare(comparison, attribute, value) => {
                let tag = match comparison {
                    Comparison::Equal => 3,
                    Comparison::AtLeast => 5,
                    Comparison::AtMost => 6,
                    Comparison::About => 8,
                };
                group(CONSTRUCTED | tag, [element(OCTETS, attribute.as_bytes()), element(OCTETS, value)])
            }
            Self::Present(attribute) => element(PRIMITIVE | 7, attribute.as_bytes()),
            Self::Parts(attribute, parts) => {
                let last = parts.len().saturating_sub(1);
                let tagged = parts.iter().enumerate().filter(|(_, part)| !part.is_empty()).map(|(index, part)| {
                    let place = if index == 0 {
                        0
                    } else if index == last {
                        2
                    } else {
                        1
                    };
                    element(PRIMITIVE | place, part)
                });
                group(CONSTRUCTED | 4, [element(OCTETS, attribute.as_bytes()), group(SEQUENCE, tagged)])
            }
            Self::Rule(attribute, rule, value, with_name) => {
                let rule = rule.as_ref().map(|rule| element(PRIMITIVE | 1, rule.as_bytes()));
                let attribute = attribute.as_ref().map(|attribute| element(PRIMITIVE | 2, attribute.as_bytes()));
                let with_name = with_name.then(|| element(PRIMITIVE | 4, &[0xff]));
                let parts = [rule, attribute, Some(element(PRIMITIVE | 3, value)), with_name];
                group(CONSTRUCTED | 9, parts.into_iter().flatten())
            }
        }
    }
}

/// A boolean, for requests that carry filters.
pub(super) fn boolean(value: bool) -> Vec<u8> {
    element(BOOLEAN, &[if value { 0xff } else { 0 }])
}

fn fill_in(value: &mut Vec<u8>, word: &str, name: &str) -> bool {
    let word = word.as_bytes();
    let mut filled = Vec::new();
    let mut rest = value.as_slice();
    while let Some(at) = rest.windows(word.len()).position(|window| window == word) {
        filled.extend(&rest[..at]);
        let in_distinguished_name = filled.contains(&b'=');
        filled.extend(if in_distinguished_name { escaped_for_dn(name).into_bytes() } else { name.as_bytes().to_vec() });
        rest = &rest[at + word.len()..];
    }
    let found = rest.len() != value.len();
    filled.extend(rest);
    *value = filled;
    found
}

/// A value as a part of a distinguished name (RFC 4514 section 2.4).
fn escaped_for_dn(value: &str) -> String {
    let last = value.chars().count().saturating_sub(1);
    value.chars().enumerate().fold(String::new(), |mut out, (index, c)| {
        let is_outer_space = c == ' ' && (index == 0 || index == last);
        if matches!(c, '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=') || is_outer_space || (c == '#' && index == 0) {
            out.push('\\');
            out.push(c);
        } else if c == '\0' {
            let _ = write!(out, "\\00");
        } else {
            out.push(c);
        }
        out
    })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

type Parsed<T> = Result<T, &'static str>;

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes `token` when it is next.
    fn eat(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    fn filter(&mut self, depth: u32) -> Parsed<Filter> {
        if depth > MAX_DEPTH {
            return Err("fewer parentheses within each other");
        }
        if !self.eat("(") {
            return Err("`(`");
        }
        self.skip_space();
        let filter = if self.eat("&") {
            Filter::And(self.filters(depth)?)
        } else if self.eat("|") {
            Filter::Or(self.filters(depth)?)
        } else if self.eat("!") {
            self.skip_space();
            Filter::Not(Box::new(self.filter(depth + 1)?))
        } else {
            self.item()?
        };
        self.skip_space();
        if self.eat(")") { Ok(filter) } else { Err("`)`") }
    }

    fn filters(&mut self, depth: u32) -> Parsed<Vec<Filter>> {
        let mut filters = Vec::new();
        loop {
            self.skip_space();
            if !self.rest().starts_with('(') {
                return if filters.is_empty() { Err("`(`") } else { Ok(filters) };
            }
            filters.push(self.filter(depth + 1)?);
        }
    }

    fn item(&mut self) -> Parsed<Filter> {
        let attribute = self.word();
        if self.rest().starts_with(':') {
            return self.rule(attribute);
        }
        if attribute.is_empty() {
            return Err("the name of an attribute");
        }
        let comparison = match () {
            () if self.eat("=") => Comparison::Equal,
            () if self.eat(">=") => Comparison::AtLeast,
            () if self.eat("<=") => Comparison::AtMost,
            () if self.eat("~=") => Comparison::About,
            () => return Err("`=`, `>=`, `<=`, `~=` or `:=`"),
        };
        let mut parts = self.value()?;
        match (comparison, parts.len()) {
            (_, 1) => Ok(Filter::Compare(comparison, attribute, parts.pop().unwrap_or_default())),
            (Comparison::Equal, 2) if parts.iter().all(Vec::is_empty) => Ok(Filter::Present(attribute)),
            (Comparison::Equal, _) if parts.iter().any(|part| !part.is_empty()) => Ok(Filter::Parts(attribute, parts)),
            _ => Err("a value without `*`"),
        }
    }

    /// `attribute:dn:rule:=value`, each part but the value optional.
    fn rule(&mut self, attribute: String) -> Parsed<Filter> {
        let with_name = self.eat(":dn");
        let rule = if !self.rest().starts_with(":=") && self.eat(":") { Some(self.word()) } else { None };
        let is_named = !attribute.is_empty() || rule.is_some();
        if !is_named || rule.as_ref().is_some_and(String::is_empty) || !self.eat(":=") {
            return Err("`:=` after an attribute or a rule");
        }
        match self.value()?.as_slice() {
            [value] => Ok(Filter::Rule((!attribute.is_empty()).then_some(attribute), rule, value.clone(), with_name)),
            _ => Err("a value without `*`"),
        }
    }

    fn word(&mut self) -> String {
        let end =
            self.rest().find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.' | ';' | '_')).unwrap_or(self.rest().len());
        let word = self.rest()[..end].to_owned();
        self.at += end;
        word
    }

    /// The parts of a value between its stars.
    fn value(&mut self) -> Parsed<Vec<Vec<u8>>> {
        let mut parts = vec![Vec::new()];
        while let Some(c) = self.rest().chars().next() {
            match c {
                ')' => break,
                '(' => return Err("no `(` in a value; write `\\28`"),
                '*' => parts.push(Vec::new()),
                '\\' => {
                    let digits = self.rest().get(1..3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
                    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or("two hexadecimal digits after `\\`")?;
                    parts.iter_mut().last().ok_or("a value")?.push(byte);
                    self.at += 2;
                }
                _ => parts.iter_mut().last().ok_or("a value")?.extend(c.to_string().bytes()),
            }
            self.at += c.len_utf8();
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(text: &str, name: &str) -> Filter {
        let mut filter = Filter::parse(text).unwrap();
        assert!(filter.fill_in("USERNAME", name), "{text}");
        filter
    }

    #[test]
    fn reads_what_directories_are_asked() {
        let filter = Filter::parse("(&(objectClass=Person)( | (uid=an\\2ana)(mail=*@example.*))(!(locked=*)) )").unwrap();
        let Filter::And(parts) = &filter else { panic!("{filter:?}") };
        assert_eq!(parts[0], Filter::equal("objectClass", "Person"));
        let mail = Filter::Parts("mail".into(), vec![b"".into(), b"@example.".into(), b"".into()]);
        assert_eq!(parts[1], Filter::Or(vec![Filter::equal("uid", "an*na"), mail]));
        assert_eq!(parts[2], Filter::Not(Box::new(Filter::Present("locked".into()))));
        let nested = "(memberOf:1.2.840.113556.1.4.1941:=cn=x)";
        let rule = Filter::Rule(Some("memberOf".into()), Some("1.2.840.113556.1.4.1941".into()), b"cn=x".into(), false);
        assert_eq!(Filter::parse(nested), Ok(rule));
        assert_eq!(Filter::parse("(a>=1)"), Ok(Filter::Compare(Comparison::AtLeast, "a".into(), b"1".into())));
    }

    #[test]
    fn travels_as_the_standard_says() {
        assert_eq!(Filter::equal("uid", "a").encode(), b"\xa3\x08\x04\x03uid\x04\x01a");
        assert_eq!(Filter::parse("(!(a=*))").unwrap().encode(), b"\xa2\x03\x87\x01a");
        assert_eq!(Filter::parse("(a=x*y*z)").unwrap().encode(), b"\xa4\x0e\x04\x01a\x30\x09\x80\x01x\x81\x01y\x82\x01z");
        assert_eq!(Filter::parse("(a:dn:=x)").unwrap().encode(), b"\xa9\x09\x82\x01a\x83\x01x\x84\x01\xff");
    }

    #[test]
    fn faults_are_named_with_their_place() {
        for (text, expected) in [
            ("uid=x", "`(` after 0 bytes"),
            ("(uid=x", "`)` after 6 bytes"),
            ("(uid=x))", "the end after 7 bytes"),
            ("(&)", "`(` after 2 bytes"),
            ("(=x)", "the name of an attribute after 1 bytes"),
            ("(uid=\\4)", "two hexadecimal digits after `\\` after 5 bytes"),
            ("(uid>=*)", "a value without `*` after 7 bytes"),
            ("(:=x)", "`:=` after an attribute or a rule after 1 bytes"),
        ] {
            assert_eq!(Filter::parse(text), Err(expected.to_owned()), "{text}");
        }
        assert!(Filter::parse(&format!("{}(a=b){}", "(!".repeat(99), ")".repeat(99))).unwrap_err().starts_with("fewer"));
        assert!(Filter::parse(&"(".repeat(5000)).unwrap_err().starts_with("at most"));
    }

    #[test]
    fn a_name_is_only_ever_a_value() {
        let names = ["*", "anna)(uid=*", "*)(|(objectClass=*", "a\\2a", "a\0", "(", "USERNAME"];
        for name in names {
            assert_eq!(filled("(&(objectClass=Person)(uid=USERNAME))", name), {
                Filter::And(vec![Filter::equal("objectClass", "Person"), Filter::equal("uid", name)])
            });
        }
        let in_name = |name: &str| match filled("(entryDN=uid=USERNAME,ou=people,dc=x)", name) {
            Filter::Compare(_, _, value) => String::from_utf8(value).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(in_name("anna"), "uid=anna,ou=people,dc=x");
        assert_eq!(in_name("anna,ou=admins"), "uid=anna\\,ou\\=admins,ou=people,dc=x");
        assert_eq!(in_name("# a+b \"\\<>; "), "uid=\\# a\\+b \\\"\\\\\\<\\>\\;\\ ,ou=people,dc=x");
        assert!(!Filter::parse("(USERNAME=*)").unwrap().fill_in("USERNAME", "x"), "no name of an attribute");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[()&|!=*a:\\\\2<>~ é]{0,40}") {
            if let Ok(filter) = Filter::parse(&text) {
                let _ = filter.encode();
            }
        }
    }
}
