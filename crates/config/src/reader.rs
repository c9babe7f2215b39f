//! Typed access to a document that notes what was read, what was wrong and what is outdated.

use crate::document::{Document, Setting};
use crate::options::{OptionSet, OptionSpec};
use crate::problem::{Problem, shown};
use crate::usage::Usage;
use crate::value::{Context, OptionValue};

/// Reads option structs out of a document.
#[derive(Debug)]
pub struct Reader<'a> {
    document: &'a Document,
    context: &'a Context,
    /// What was asked for so far; see [`unparsed`](crate::unparsed).
    pub usage: Usage,
    /// Values that are missing or wrong.
    pub problems: Vec<Problem>,
    /// Outdated names and other things that were accepted.
    pub warnings: Vec<Problem>,
}

/// A section that exists and its options.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<T> {
    /// Full name as written, such as `power my led`.
    pub section: String,
    /// What follows the first word, such as `my led`; empty for plain sections.
    pub name: String,
    /// The options, faulty ones replaced by defaults; `None` when a required one is missing or faulty.
    pub options: Option<T>,
    /// The faults of this section; they are also in [`Reader::problems`].
    pub problems: Vec<Problem>,
}

impl<T> Entry<T> {
    /// The options if nothing at all is wrong with them, else the faults. For components that rather fail than run with defaults.
    ///
    /// # Errors
    /// The problems of the section, at least one.
    pub fn sound(self) -> Result<T, Vec<Problem>> {
        match self.options {
            Some(options) if self.problems.is_empty() => Ok(options),
            _ => Err(self.problems),
        }
    }
}

impl<'a> Reader<'a> {
    /// A reader that has read nothing yet.
    #[must_use]
    pub fn new(document: &'a Document, context: &'a Context) -> Self {
        Self { document, context, usage: Usage::default(), problems: Vec::new(), warnings: Vec::new() }
    }

    /// The document that is read.
    #[must_use]
    pub fn document(&self) -> &'a Document {
        self.document
    }

    /// The options of a section that need not exist.
    pub fn read_or_default<T: OptionSet + Default>(&mut self) -> T {
        self.read().and_then(|entry| entry.options).unwrap_or_default()
    }

    /// The options of a plain section by any of its names; `None` when there is no such section. When several exist the first name wins.
    pub fn read<T: OptionSet>(&mut self) -> Option<Entry<T>> {
        let name = section_names::<T>().find(|name| self.document.section(name).is_some())?;
        self.read_section(name)
    }

    /// The options of all sections `[word name]` for any first word of the set, in the order of the document.
    pub fn read_all<T: OptionSet>(&mut self) -> Vec<Entry<T>> {
        let words: Vec<&str> = section_names::<T>().collect();
        let sections = self.document.sections().filter(|section| {
            let (word, name) = split_name(&section.name);
            words.contains(&word) && !name.is_empty()
        });
        sections.filter_map(|section| self.read_section(&section.name)).collect()
    }

    /// The options of the section with exactly this name; for sets that share a section. `None` when it does not exist.
    pub fn read_section<T: OptionSet>(&mut self, section: &str) -> Option<Entry<T>> {
        self.document.section(section)?;
        self.usage.section(section);
        let before = self.problems.len();
        let options = T::take(&mut SectionReader { reader: self, section });
        let problems = self.problems[before..].to_vec();
        let (_, name) = split_name(section);
        Some(Entry { section: section.to_owned(), name: name.to_owned(), options, problems })
    }

    /// Options of a section whose names start with `prefix`, by the rest of the name, in order. Faulty ones are reported and left out.
    pub fn read_prefixed<T: OptionValue>(&mut self, section: &str, prefix: &str) -> Vec<(String, T)> {
        let Some(found) = self.document.section(section) else {
            return Vec::new();
        };
        self.usage.section(section);
        let mut values = Vec::new();
        for (option, setting) in &found.options {
            let Some(rest) = option.strip_prefix(prefix) else {
                continue;
            };
            self.usage.option(section, option);
            match T::parse(&setting.value, self.context) {
                Ok(value) => values.push((rest.to_owned(), value)),
                Err(expected) => self.wrong::<T>(section, option, setting, &expected),
            }
        }
        values
    }

    /// Adds a fault that a component found itself, such as options that exclude each other.
    pub fn reject(&mut self, section: &str, option: &str, message: impl Into<String>) {
        let problem = self.note(section, option, message.into());
        self.problems.push(problem);
    }

    /// Adds a warning of a component at an option.
    pub fn warn(&mut self, section: &str, option: &str, message: impl Into<String>) {
        let problem = self.note(section, option, message.into());
        self.warnings.push(problem);
    }

    fn note(&self, section: &str, option: &str, message: String) -> Problem {
        let span = self.document.get(section, option).map(|setting| setting.span);
        match span.or_else(|| self.document.section(section).map(|section| section.span)) {
            Some(span) => self.document.problem(span, Some(section), Some(option), message),
            None => Problem { option: Some(option.to_owned()), ..self.document.missing(section, message) },
        }
    }

    fn wrong<T: OptionValue>(&mut self, section: &str, option: &str, setting: &Setting, expected: &str) {
        let found = if T::SENSITIVE { String::new() } else { format!(", found `{}`", shown(&setting.value)) };
        let message = format!("expected {expected}{found}");
        self.problems.push(self.document.problem(setting.span, Some(section), Some(option), message));
    }
}

/// One section during reading; used by the code that [`options!`](crate::options!) writes.
#[derive(Debug)]
pub struct SectionReader<'r, 'a> {
    reader: &'r mut Reader<'a>,
    section: &'r str,
}

impl<'a> SectionReader<'_, 'a> {
    /// The value of an option, its default when it is absent or faulty, `None` when there is no default.
    pub fn take<T: OptionValue>(&mut self, spec: &OptionSpec, default: Option<T::Literal>) -> Option<T> {
        let context = self.reader.context;
        let default = || default.map(|literal| T::from_literal(literal, context));
        let Some((name, setting)) = self.find(spec) else {
            if default().is_none() {
                let message = format!("expected {}; this option is required", spec.expected(T::EXPECTED));
                self.reader.reject(self.section, spec.name, message);
            }
            return default();
        };
        let parsed = T::parse(&setting.value, context).map_err(|expected| spec.expected(&expected));
        let checked = parsed.and_then(|value| if spec.permits(value.number()) { Ok(value) } else { Err(spec.expected(T::EXPECTED)) });
        match checked {
            Ok(value) => Some(value),
            Err(expected) => {
                self.reader.wrong::<T>(self.section, name, setting, &expected);
                default()
            }
        }
    }

    /// The setting under the first name that is set. Further ones are reported, because which of them counts is not obvious.
    fn find(&mut self, spec: &OptionSpec) -> Option<(&'static str, &'a Setting)> {
        let document = self.reader.document;
        let mut found: Option<(&'static str, &'a Setting)> = None;
        for name in spec.names() {
            self.reader.usage.option(self.section, name);
            let Some(setting) = document.get(self.section, name) else {
                continue;
            };
            match found {
                Some((preferred, _)) => {
                    self.reader.warn(self.section, name, format!("ignored, because it is another name of `{preferred}`, which is set too"));
                }
                None => found = Some((name, setting)),
            }
        }
        if let Some((name, _)) = found {
            self.warn_if_outdated(spec, name);
        }
        found
    }

    fn warn_if_outdated(&mut self, spec: &OptionSpec, name: &str) {
        if let Some(advice) = spec.deprecated {
            self.reader.warn(self.section, name, format!("this option is deprecated: {advice}"));
        } else if spec.old_names.contains(&name) {
            self.reader.warn(self.section, name, format!("this name is deprecated: write `{}`", spec.name));
        }
    }
}

/// First word and rest of a section name.
fn split_name(section: &str) -> (&str, &str) {
    let section = section.trim();
    section.split_once(char::is_whitespace).map_or((section, ""), |(word, name)| (word, name.trim()))
}

/// All names of a set's section without the ` <name>`.
fn section_names<T: OptionSet>() -> impl Iterator<Item = &'static str> {
    std::iter::once(T::SECTION).chain(T::SECTION_ALIASES.iter().copied()).map(|name| name.strip_suffix(" <name>").unwrap_or(name))
}
