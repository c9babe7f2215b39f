//! Types an option can have: how each is read from text, shown in `server.config` and named in messages.

mod choice;
mod collections;
mod path;
mod scalar;
mod secret;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde_json::Value;

pub use collections::{CommaList, Dictionary, OptionalDictionary, WordList};
pub use secret::Secret;

use crate::secrets::Secrets;

/// What values may refer to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// Replaces `{data_path}` in paths.
    pub data_path: PathBuf,
    /// Replaces a leading `~` in paths; without it `~` stays.
    pub home: Option<PathBuf>,
    /// Replaces `{secrets.section.option}`.
    pub secrets: Secrets,
}

impl Context {
    /// A context that leaves `{data_path}` and `~` visible, for documents that do not depend on a machine.
    #[must_use]
    pub fn symbolic() -> Self {
        Self { data_path: PathBuf::from("{data_path}"), ..Self::default() }
    }
}

/// A type that an option of a configuration can have.
pub trait OptionValue: Sized {
    /// What users must write, completing the sentence "expected …".
    const EXPECTED: &'static str;

    /// True when messages must not repeat the value.
    const SENSITIVE: bool = false;

    /// How a default value is written in the [`options!`](crate::options!) macro.
    type Literal: Copy;

    /// Reads the text of an option.
    ///
    /// # Errors
    /// What was expected, usually [`Self::EXPECTED`].
    fn parse(text: &str, context: &Context) -> Result<Self, String>;

    /// The value of a default.
    fn from_literal(literal: Self::Literal, context: &Context) -> Self;

    /// The typed value for `config` of `server.config`; lengths of time are seconds.
    fn to_json(&self) -> Value;

    /// The number that limits apply to; `None` for values without limits.
    fn number(&self) -> Option<f64> {
        None
    }
}

/// Optional values: an option that is not set has no value.
impl<T: OptionValue> OptionValue for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    const SENSITIVE: bool = T::SENSITIVE;
    type Literal = Option<T::Literal>;

    fn parse(text: &str, context: &Context) -> Result<Self, String> {
        T::parse(text, context).map(Some)
    }

    fn from_literal(literal: Self::Literal, context: &Context) -> Self {
        literal.map(|literal| T::from_literal(literal, context))
    }

    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_json)
    }

    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(T::number)
    }
}
