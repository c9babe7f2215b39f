//! Templates as values of options.

use std::fmt;
use std::path::{Path, PathBuf};

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

/// A path that is rendered once, when the configuration is read; it sees `secrets` and `data_path`, and a leading `~` is the home folder.
#[derive(Clone, PartialEq, Eq)]
pub struct RenderedPath {
    source: String,
    path: PathBuf,
}

impl RenderedPath {
    /// The path with everything filled in. Do not log it when [`Self::is_secret`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True when the configuration names secrets in it.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.source.contains("secrets")
    }

    /// What may be shown: the path, or the text of the configuration when it names secrets.
    fn shown(&self) -> &str {
        self.path.to_str().filter(|_| !self.is_secret()).unwrap_or(&self.source)
    }
}

impl fmt::Debug for RenderedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

impl OptionValue for RenderedPath {
    const EXPECTED: &'static str = "a path (a template: `~`, `{data_path}` and `{secrets.section.option}` may be used)";
    type Literal = &'static str;

    fn parse(text: &str, context: &config::Context) -> Result<Self, String> {
        let Rendered { source, content } = Rendered::parse(text, context)?;
        let path = PathBuf::parse(&content, context).map_err(|_| Self::EXPECTED.to_owned())?;
        Ok(Self { source, path })
    }

    fn from_literal(literal: &'static str, context: &config::Context) -> Self {
        Self { source: literal.to_owned(), path: PathBuf::from_literal(literal, context) }
    }

    fn to_json(&self) -> Json {
        self.shown().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> config::Context {
        let (secrets, _) = config::Secrets::parse("core.secrets", br#"{"host": {"socket": "hidden.sock"}}"#);
        config::Context { data_path: "/data".into(), home: Some("/home/me".into()), secrets }
    }

    #[test]
    fn paths_are_templates_and_show_no_secrets() {
        let read = |text: &str| RenderedPath::parse(text, &context());
        for (text, path, shown) in [
            ("{data_path}/comms/a.sock", "/data/comms/a.sock", "/data/comms/a.sock"),
            ("~/a", "/home/me/a", "/home/me/a"),
            ("{ data_path ~ '/b' }", "/data/b", "/data/b"),
            ("/run/{secrets.host.socket}", "/run/hidden.sock", "/run/{secrets.host.socket}"),
        ] {
            let value = read(text).unwrap();
            assert_eq!((value.path(), value.to_json()), (Path::new(path), Json::from(shown)), "{text}");
            assert!(!format!("{value:?}").contains("hidden"));
        }
        for text in ["", "{ data_path", "{ nothing.at.all }"] {
            let fault = read(text).unwrap_err();
            assert!(fault.starts_with("a path") || fault.starts_with("a template"), "{fault}");
        }
    }
}
