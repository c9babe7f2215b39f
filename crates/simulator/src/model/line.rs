//! One line of gcode: splitting a line into a command and its parameters, as the real firmware host does (wire document 5, section 6.1).
//!
//! Two notations live side by side: the *traditional* one (`G1 X10 F600`, a letter and a number) and the *extended* one
//! (`SET_PIN PIN=light VALUE=1`, a word and `KEY=VALUE` pairs).

use indexmap::IndexMap;

/// A failed command. The text goes to the console as `!! text` and to the caller as the error message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CommandError(pub String);

impl CommandError {
    /// An error with this text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// A command with its parameters not yet looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Command name in capitals: `G1`, `SET_PIN`.
    pub(crate) name: String,
    /// The whole line without comment, as written. Error texts quote it.
    pub(crate) text: String,
    /// Byte offset in `text` where the parameters begin.
    rest: usize,
    /// A letter and a number, like `G1`.
    traditional: bool,
}

impl Line {
    /// Splits off comment, line number and command name. `None` for a blank line.
    pub(crate) fn parse(source: &str) -> Option<Self> {
        let text = source.split(';').next().unwrap_or("").trim();
        let text = strip_line_number(text);
        if text.is_empty() {
            return None;
        }
        let (rest, traditional) = match traditional_name_end(text) {
            Some(end) => (end, true),
            None => (text.find(char::is_whitespace).unwrap_or(text.len()), false),
        };
        Some(Self { name: text[..rest].to_uppercase(), text: text.to_owned(), rest, traditional })
    }

    /// Everything after the command name, for commands that take free text (`M117`, `M118`).
    pub(crate) fn free_text(&self) -> &str {
        self.text[self.rest..].trim_start()
    }

    /// The parameters.
    ///
    /// # Errors
    /// `Malformed command '…'` if an extended command's text is not a list of `KEY=VALUE`.
    pub(crate) fn params(&self) -> Result<Params, CommandError> {
        let values = if self.traditional {
            letters(&self.text[self.rest..])
        } else {
            pairs(&self.text[self.rest..]).ok_or_else(|| CommandError(format!("Malformed command '{}'", self.text)))?
        };
        Ok(Params { values, text: self.text.clone() })
    }
}

/// `N12 G1 X1*77` → `G1 X1`: line numbers and checksums belong to serial lines, but some files carry them.
fn strip_line_number(text: &str) -> &str {
    let Some(after) = text.strip_prefix(['N', 'n']) else {
        return text;
    };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return text;
    }
    after[digits..].split('*').next().unwrap_or("").trim()
}

/// Where `G1`, `M109`, `T0` ends; `None` if the line does not begin with a letter and a digit.
fn traditional_name_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if !bytes.first()?.is_ascii_alphabetic() || !bytes.get(1)?.is_ascii_digit() {
        return None;
    }
    let number = bytes[1..].iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    Some(1 + number)
}

/// `X10 Y-2.5E1` → X, Y, E. A run of letters is one key: `XNaN` is the key `XNAN` without value, hence no movement.
fn letters(text: &str) -> IndexMap<String, String> {
    let mut values = IndexMap::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        rest = &rest[start..];
        let key_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let value_end = rest[key_end..].find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |at| key_end + at);
        values.insert(rest[..key_end].to_ascii_uppercase(), rest[key_end..value_end].trim().to_owned());
        rest = &rest[value_end..];
    }
    values
}

/// `A=1 B="two words"` → A, B. `None` if a word has no `=` or a quote stays open.
fn pairs(text: &str) -> Option<IndexMap<String, String>> {
    let mut values = IndexMap::new();
    for word in words(text)? {
        let (key, value) = word.split_once('=')?;
        values.insert(key.to_uppercase(), value.to_owned());
    }
    Some(values)
}

/// Words as a shell splits them: both kinds of quotes, backslash outside single quotes.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().push(chars.next()?),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return None;
    }
    words.extend(word);
    Some(words)
}

/// Parameters of one command, with getters that word their errors like the real firmware host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Params {
    values: IndexMap<String, String>,
    text: String,
}

impl Params {
    /// The text of a parameter.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// All parameters in the order written.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// No parameter at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The text of a parameter that must be there.
    ///
    /// # Errors
    /// `Error on '…': missing KEY`.
    pub(crate) fn required(&self, key: &str) -> Result<&str, CommandError> {
        self.get(key).ok_or_else(|| self.error(&format!("missing {key}")))
    }

    /// A number, if the parameter is there.
    ///
    /// # Errors
    /// `Error on '…': unable to parse VALUE`.
    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>, CommandError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(self.error(&format!("unable to parse {value}"))),
        }
    }

    /// A number or its default.
    ///
    /// # Errors
    /// As [`Params::number`].
    pub(crate) fn number_or(&self, key: &str, default: f64) -> Result<f64, CommandError> {
        Ok(self.number(key)?.unwrap_or(default))
    }

    /// A number that must not be below `minimum`.
    ///
    /// # Errors
    /// As [`Params::number`], or `Error on '…': KEY must have minimum of …`.
    pub(crate) fn at_least(&self, key: &str, minimum: f64) -> Result<Option<f64>, CommandError> {
        match self.number(key)? {
            Some(value) if value < minimum => Err(self.error(&format!("{key} must have minimum of {minimum:?}"))),
            value => Ok(value),
        }
    }

    /// A number that must lie in the range.
    ///
    /// # Errors
    /// As [`Params::at_least`], or `Error on '…': KEY must have maximum of …`.
    pub(crate) fn within(&self, key: &str, minimum: f64, maximum: f64) -> Result<Option<f64>, CommandError> {
        match self.at_least(key, minimum)? {
            Some(value) if value > maximum => Err(self.error(&format!("{key} must have maximum of {maximum:?}"))),
            value => Ok(value),
        }
    }

    /// An error that quotes the command.
    pub(crate) fn error(&self, reason: &str) -> CommandError {
        CommandError(format!("Error on '{}': {reason}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,60}") {
            if let Some(line) = Line::parse(&text) {
                prop_assert!(!line.name.is_empty());
                let _ = (line.free_text(), line.params().map(|p| p.number("X")));
            }
        }

        #[test]
        fn quoted_values_come_back(key in "[A-Z][A-Z_]{1,8}", value in "[^\"\\\\;]{0,20}") {
            let line = Line::parse(&format!("SET_IT {key}=\"{value}\"")).unwrap();
            let params = line.params().unwrap();
            prop_assert_eq!(params.get(&key), Some(value.as_str()));
        }

        #[test]
        fn numbers_come_back(x in -1e6_f64..1e6, y in -1000_i32..1000) {
            let params = Line::parse(&format!("G1X{x}Y{y}")).unwrap().params().unwrap();
            prop_assert_eq!(params.number("X").unwrap(), Some(x));
            prop_assert_eq!(params.number("Y").unwrap(), Some(f64::from(y)));
        }
    }

    fn params(text: &str) -> Params {
        Line::parse(text).unwrap().params().unwrap()
    }

    #[test]
    fn blank_lines_and_comments_are_nothing() {
        for text in ["", "   ", "; only words", "  ;x", "N12"] {
            assert_eq!(Line::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn traditional_commands() {
        let line = Line::parse("g1x10 Y-2.5E.04 ; go").unwrap();
        assert_eq!(line.name, "G1");
        let p = line.params().unwrap();
        assert_eq!(p.number("X"), Ok(Some(10.0)));
        assert_eq!(p.number("Y"), Ok(Some(-2.5)));
        assert_eq!(p.number("E"), Ok(Some(0.04)));
        assert_eq!(p.number("Z"), Ok(None));
        assert!(params("G1 XNaN").number("X").unwrap().is_none());
        assert_eq!(Line::parse("N7 M105*33").unwrap().name, "M105");
        assert_eq!(Line::parse("M117 Hi  there").unwrap().free_text(), "Hi  there");
    }

    #[test]
    fn extended_commands() {
        let p = params(r#"SET_PIN PIN='case light' value="1\"0" E="#);
        assert_eq!(p.get("PIN"), Some("case light"));
        assert_eq!(p.get("VALUE"), Some("1\"0"));
        assert_eq!(p.get("E"), Some(""));
        for bad in ["ECHO x", "ECHO A=\"open"] {
            let error = Line::parse(bad).unwrap().params().unwrap_err();
            assert_eq!(error.0, format!("Malformed command '{bad}'"));
        }
        assert_eq!(Line::parse("{% syntax").unwrap().name, "{%");
    }

    #[test]
    fn errors_quote_the_line() {
        assert_eq!(params("M104 S").number("S").unwrap_err().0, "Error on 'M104 S': unable to parse ");
        assert_eq!(
            params("SET_PIN PIN=a VALUE=3").within("VALUE", 0.0, 1.0).unwrap_err().0,
            "Error on 'SET_PIN PIN=a VALUE=3': VALUE must have maximum of 1.0"
        );
    }
}
