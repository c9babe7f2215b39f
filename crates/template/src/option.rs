//! Templates as values of options.

use std::fmt;

use config::OptionValue;
use serde_json::Value as Json;

use crate::host::{Context, NoHost};
use crate::template::Template;

/// An option that is rendered per event: a fault in its syntax is a fault of the configuration.
impl OptionValue for Template {
    const EXPECTED: &'static str = "a template";
    // Its source may hold a password that somebody did not put into the secrets file.
    const SENSITIVE: bool = true;
    type Literal = &'static str;

    fn parse(text: &str, _: &config::Context) -> Result<Self, String> {
        Self::compile(text).map_err(|error| format!("a template ({error})"))
    }

    fn from_literal(literal: &'static str, _: &config::Context) -> Self {
        // Defaults are written by us and covered by tests; a broken one shows as its own text.
        Self::compile(literal).unwrap_or_else(|_| Self::plain(literal))
    }

    fn to_json(&self) -> Json {
        self.source().into()
    }
}

/// Text of an option that is rendered once, when the configuration is read; it sees `secrets` and `data_path`.
/// `Debug` hides it; `server.config` shows the source.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    source: String,
    content: String,
}

impl Rendered {
    /// The text with everything filled in. Never log it.
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

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rendered(hidden)")
    }
}

impl OptionValue for Rendered {
    const EXPECTED: &'static str = "text (a template: `{secrets.section.option}` may be used)";
    const SENSITIVE: bool = true;
    type Literal = &'static str;

    fn parse(text: &str, context: &config::Context) -> Result<Self, String> {
        let mut variables = Context::new(&context.secrets).with("data_path", context.data_path.to_string_lossy());
        let template = Template::compile(text).map_err(|error| format!("a template ({error})"))?;
        let content = template.render(&mut variables, &mut NoHost).map_err(|error| format!("a template that can be rendered ({error})"))?;
        Ok(Self { source: template.source().to_owned(), content })
    }

    fn from_literal(literal: &'static str, _: &config::Context) -> Self {
        Self { source: literal.to_owned(), content: literal.to_owned() }
    }

    fn to_json(&self) -> Json {
        self.source.as_str().into()
    }
}
