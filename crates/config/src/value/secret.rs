//! A value that may name secrets: its source can be shown, its content only on request.

use std::fmt;

use serde_json::Value;

use super::{Context, OptionValue};

/// Text with `{secrets.section.option}` filled in. `Debug` hides it; `server.config` shows the source text.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret {
    source: String,
    content: String,
}

impl Secret {
    /// The text with secrets filled in. Never log it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.content
    }

    /// The text as written in the configuration.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

impl OptionValue for Secret {
    const EXPECTED: &'static str = "text (`{secrets.section.option}` may be used)";
    const SENSITIVE: bool = true;
    type Literal = &'static str;

    fn parse(text: &str, context: &Context) -> Result<Self, String> {
        let source = text.trim().to_owned();
        let content = context.secrets.substitute(&source).map_err(|unknown| unknown.to_string())?;
        Ok(Self { source, content })
    }

    fn from_literal(literal: &'static str, _: &Context) -> Self {
        Self { source: literal.to_owned(), content: literal.to_owned() }
    }

    fn to_json(&self) -> Value {
        self.source.as_str().into()
    }
}
