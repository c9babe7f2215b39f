//! Option structs: one declaration gives the typed values, their documentation and their names in `server.config`.

use serde_json::{Map, Value};

use crate::reader::SectionReader;
use crate::reference::SectionDoc;

/// The typed options of a section; implemented by [`options!`](crate::options!).
pub trait OptionSet: Sized {
    /// Name of the section; ends in ` <name>` when there can be many, as in `power <name>`.
    const SECTION: &'static str;

    /// Further names of the section, in the same form.
    const SECTION_ALIASES: &'static [&'static str];

    /// The section and its options for the reference.
    fn describe() -> SectionDoc;

    /// Takes the options out of a section. All faults are reported to the reader; a faulty option has its default,
    /// and only a required one that is missing or faulty gives `None`.
    fn take(section: &mut SectionReader<'_, '_>) -> Option<Self>;

    /// Typed values by every name of each option, defaults included: one entry of `config` in `server.config`.
    fn effective(&self) -> Map<String, Value>;
}

/// Name, further names and limits of one option; built by [`options!`](crate::options!).
#[derive(Debug, Clone, PartialEq)]
pub struct OptionSpec {
    pub(crate) name: &'static str,
    pub(crate) aliases: Vec<&'static str>,
    pub(crate) old_names: Vec<&'static str>,
    pub(crate) deprecated: Option<&'static str>,
    limits: Vec<(Bound, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    Min,
    Above,
    Max,
    Below,
}

impl OptionSpec {
    /// An option with this name; the prefix of raw identifiers (`r#type`) is dropped.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        let name = name.strip_prefix("r#").unwrap_or(name);
        Self { name, aliases: Vec::new(), old_names: Vec::new(), deprecated: None, limits: Vec::new() }
    }

    /// A further name of equal standing.
    #[must_use]
    pub fn alias(mut self, name: &'static str) -> Self {
        self.aliases.push(name);
        self
    }

    /// A former name: accepted with a warning.
    #[must_use]
    pub fn was(mut self, name: &'static str) -> Self {
        self.old_names.push(name);
        self
    }

    /// Accepted with a warning that ends in `advice`.
    #[must_use]
    pub fn deprecated(mut self, advice: &'static str) -> Self {
        self.deprecated = Some(advice);
        self
    }

    /// The smallest permitted number.
    #[must_use]
    pub fn min(self, number: impl Into<f64>) -> Self {
        self.limit(Bound::Min, number.into())
    }

    /// The number must be greater.
    #[must_use]
    pub fn above(self, number: impl Into<f64>) -> Self {
        self.limit(Bound::Above, number.into())
    }

    /// The largest permitted number.
    #[must_use]
    pub fn max(self, number: impl Into<f64>) -> Self {
        self.limit(Bound::Max, number.into())
    }

    /// The number must be smaller.
    #[must_use]
    pub fn below(self, number: impl Into<f64>) -> Self {
        self.limit(Bound::Below, number.into())
    }

    fn limit(mut self, bound: Bound, number: f64) -> Self {
        self.limits.push((bound, number));
        self
    }

    /// All names, the preferred one first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied()).chain(self.old_names.iter().copied())
    }

    /// True when the number is within the limits, or when there is no number.
    pub(crate) fn permits(&self, number: Option<f64>) -> bool {
        number.is_none_or(|number| {
            self.limits.iter().all(|(bound, limit)| match bound {
                Bound::Min => number >= *limit,
                Bound::Above => number > *limit,
                Bound::Max => number <= *limit,
                Bound::Below => number < *limit,
            })
        })
    }

    /// `expected` with the limits added.
    pub(crate) fn expected(&self, expected: &str) -> String {
        let mut text = expected.to_owned();
        for (bound, limit) in &self.limits {
            let words = match bound {
                Bound::Min => "at least",
                Bound::Above => "above",
                Bound::Max => "at most",
                Bound::Below => "below",
            };
            text.push_str(&format!(", {words} {limit}"));
        }
        text
    }

    /// Adds a value under every name.
    pub fn insert(&self, map: &mut Map<String, Value>, value: &Value) {
        map.extend(self.names().map(|name| (name.to_owned(), value.clone())));
    }
}

/// Declares a struct of typed options that implements [`OptionSet`].
///
/// Each option is `name ["other name"]: Type { limit 1, … } = default`. The other names and the braces are optional; an option
/// without default is required; an optional one has type `Option<T>` and the default `None`. In braces: `min`, `above`, `max`,
/// `below` with a number, `was "old_name"`, `deprecated "advice"`. A struct whose options all have defaults implements `Default`.
/// Further names of the section follow after `|`.
///
/// ```
/// config::options! {
///     /// How the server listens.
///     pub struct ServerOptions: "server" {
///         /// HTTP port.
///         port: u16 { min 1 } = 7125,
///         /// Firmware host socket.
///         fwhost_uds_address ["klippy_uds_address"]: std::path::PathBuf = "/tmp/klippy_uds",
///     }
/// }
/// let loaded = config::load_text("core.conf", "[server]\nport: 80\n");
/// let context = config::Context::default();
/// let mut reader = config::Reader::new(&loaded.document, &context);
/// assert_eq!(reader.read_or_default::<ServerOptions>().port, 80);
/// ```
#[macro_export]
macro_rules! options {
    // Every option has a default: the struct itself has one.
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $set:ident : $section:literal $(| $section_alias:literal)* {
            $(
                $(#[doc = $option_doc:literal])*
                $option:ident $([$($alias:literal),+ $(,)?])? : $type:ty $({ $($key:ident $argument:literal),+ $(,)? })? = $default:expr
            ),* $(,)?
        }
    ) => {
        $crate::options! {@set
            $(#[doc = $doc])*
            $vis struct $set: $section $(| $section_alias)* {
                $($(#[doc = $option_doc])* $option $([$($alias),+])?: $type $({ $($key $argument),+ })? = $default,)*
            }
        }

        impl Default for $set {
            fn default() -> Self {
                let _context = $crate::Context::default();
                Self { $($option: <$type as $crate::OptionValue>::from_literal($default, &_context),)* }
            }
        }
    };
    // Some option is required.
    ($(#[doc = $doc:literal])* $vis:vis struct $($rest:tt)*) => {
        $crate::options! {@set $(#[doc = $doc])* $vis struct $($rest)*}
    };
    (@set
        $(#[doc = $doc:literal])*
        $vis:vis struct $set:ident : $section:literal $(| $section_alias:literal)* {
            $(
                $(#[doc = $option_doc:literal])*
                $option:ident $([$($alias:literal),+ $(,)?])? : $type:ty $({ $($key:ident $argument:literal),+ $(,)? })? $(= $default:expr)?
            ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $set {
            $($(#[doc = $option_doc])* pub $option: $type,)*
        }

        impl $crate::OptionSet for $set {
            const SECTION: &'static str = $section;
            const SECTION_ALIASES: &'static [&'static str] = &[$($section_alias),*];

            fn describe() -> $crate::SectionDoc {
                $crate::SectionDoc::new(Self::SECTION, Self::SECTION_ALIASES, concat!($($doc, "\n"),*))
                $(.option::<$type>(
                    &$crate::options!(@spec $option [$($($alias)+)?] $($($key $argument)+)?),
                    concat!($($option_doc, "\n"),*),
                    $crate::options!(@default $($default)?),
                ))*
            }

            fn take(_section: &mut $crate::SectionReader<'_, '_>) -> Option<Self> {
                $(let $option = _section.take::<$type>(
                    &$crate::options!(@spec $option [$($($alias)+)?] $($($key $argument)+)?),
                    $crate::options!(@default $($default)?),
                );)*
                Some(Self { $($option: $option?,)* })
            }

            fn effective(&self) -> $crate::serde_json::Map<String, $crate::serde_json::Value> {
                let mut _map = $crate::serde_json::Map::new();
                $($crate::options!(@spec $option [$($($alias)+)?] $($($key $argument)+)?)
                    .insert(&mut _map, &$crate::OptionValue::to_json(&self.$option));)*
                _map
            }
        }
    };
    (@spec $option:ident [$($alias:literal)*] $($key:ident $argument:literal)*) => {
        $crate::OptionSpec::new(stringify!($option))$(.alias($alias))*$(.$key($argument))*
    };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
}
