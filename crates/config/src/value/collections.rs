//! Lists and dictionaries. Items are trimmed and empty ones dropped.

use indexmap::IndexMap;
use serde_json::Value;

use super::{Context, OptionValue};

impl<T: OptionValue> OptionValue for Vec<T>
where
    T::Literal: 'static,
{
    const EXPECTED: &'static str = "a list, one item per line";
    const SENSITIVE: bool = T::SENSITIVE;
    type Literal = &'static [T::Literal];

    fn parse(text: &str, context: &Context) -> Result<Self, String> {
        let items = text.lines().map(str::trim).filter(|item| !item.is_empty());
        let parsed: Result<_, String> = items.map(|item| T::parse(item, context)).collect();
        parsed.map_err(|expected| format!("{}; each item: {expected}", Self::EXPECTED))
    }

    fn from_literal(literal: Self::Literal, context: &Context) -> Self {
        literal.iter().map(|item| T::from_literal(*item, context)).collect()
    }

    fn to_json(&self) -> Value {
        self.iter().map(T::to_json).collect()
    }
}

macro_rules! separated_lists {
    ($($(#[$doc:meta])* $name:ident: $separator:expr, $expected:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $name(pub Vec<String>);

        impl OptionValue for $name {
            const EXPECTED: &'static str = $expected;
            type Literal = &'static [&'static str];

            fn parse(text: &str, _: &Context) -> Result<Self, String> {
                let items = text.split($separator).map(str::trim).filter(|item| !item.is_empty());
                Ok(Self(items.map(Into::into).collect()))
            }

            fn from_literal(literal: Self::Literal, _: &Context) -> Self {
                Self(literal.iter().map(|item| (*item).to_owned()).collect())
            }

            fn to_json(&self) -> Value {
                self.0.iter().map(String::as_str).collect()
            }
        }
    )+};
}

separated_lists! {
    /// A list whose items are separated by commas.
    CommaList: ',', "a list separated by commas";
    /// A list whose items are separated by white space.
    WordList: char::is_whitespace, "a list separated by spaces";
}

/// One `key=value` per line, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dictionary(pub IndexMap<String, String>);

impl OptionValue for Dictionary {
    const EXPECTED: &'static str = "a dictionary, one `key=value` per line";
    type Literal = &'static [(&'static str, &'static str)];

    fn parse(text: &str, _: &Context) -> Result<Self, String> {
        let pairs: Option<_> = pairs(text).map(|(key, value)| Some((key?, value?))).collect();
        pairs.map(Self).ok_or_else(|| Self::EXPECTED.to_owned())
    }

    fn from_literal(literal: Self::Literal, _: &Context) -> Self {
        Self(literal.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    fn to_json(&self) -> Value {
        self.0.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect()
    }
}

/// One `key` or `key=value` per line, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionalDictionary(pub IndexMap<String, Option<String>>);

impl OptionValue for OptionalDictionary {
    const EXPECTED: &'static str = "a dictionary, one `key` or `key=value` per line";
    type Literal = &'static [(&'static str, Option<&'static str>)];

    fn parse(text: &str, _: &Context) -> Result<Self, String> {
        let pairs: Option<_> = pairs(text).map(|(key, value)| Some((key?, value))).collect();
        pairs.map(Self).ok_or_else(|| Self::EXPECTED.to_owned())
    }

    fn from_literal(literal: Self::Literal, _: &Context) -> Self {
        Self(literal.iter().map(|(key, value)| ((*key).to_owned(), value.map(Into::into))).collect())
    }

    fn to_json(&self) -> Value {
        self.0.iter().map(|(key, value)| (key.clone(), Value::from(value.as_deref()))).collect()
    }
}

/// Key and value of each line, split at the first `=`; the key is `None` when empty.
fn pairs(text: &str) -> impl Iterator<Item = (Option<String>, Option<String>)> {
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let (key, value) = line.split_once('=').map_or((line, None), |(key, value)| (key, Some(value.trim().to_owned())));
        let key = key.trim();
        ((!key.is_empty()).then(|| key.to_owned()), value)
    })
}
