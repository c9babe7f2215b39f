//! Which parts of a configuration were read, and the warnings about the rest.
//!
//! The beginnings of the warnings, the quotes and the brackets are what web clients recognise (wire/4-clients.md section 10).

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Document, Setting};
use crate::problem::shown;
use crate::syntax::DEFAULT_SECTION;

/// Names of the sections and options that some component asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    options: BTreeMap<String, BTreeSet<String>>,
    faulty: BTreeSet<String>,
}

impl Usage {
    /// Notes that a component knows this section.
    pub fn section(&mut self, section: &str) {
        if !self.options.contains_key(section) {
            self.options.insert(section.to_owned(), BTreeSet::new());
        }
    }

    /// Notes that a component knows this option of the section.
    pub fn option(&mut self, section: &str, option: &str) {
        self.options.entry(section.to_owned()).or_default().insert(option.to_owned());
    }

    /// Notes that a section has an error: its component may have stopped before it asked for all options.
    pub fn faulty(&mut self, section: &str) {
        self.faulty.insert(section.to_owned());
    }

    /// Adds what another reader of the same document saw.
    pub fn merge(&mut self, other: Self) {
        for (section, options) in other.options {
            self.options.entry(section).or_default().extend(options);
        }
        self.faulty.extend(other.faulty);
    }

    fn knows(&self, section: &str, option: &str) -> bool {
        self.options.get(section).is_some_and(|options| options.contains(option))
    }
}

/// One warning for each section that nobody read and each option that nobody asked for, in the order of the document.
#[must_use]
pub fn unparsed(document: &Document, usage: &Usage) -> Vec<String> {
    let mut warnings = Vec::new();
    for section in document.sections() {
        if !usage.options.contains_key(&section.name) {
            let place = document.place(section.span);
            warnings.push(format!(
                "Unparsed config section [{}] ({place}): no part of the server uses it. Correct its name or remove it.",
                section.name
            ));
        } else if !usage.faulty.contains(&section.name) {
            let unknown = section.options.iter().filter(|(option, _)| !usage.knows(&section.name, option));
            warnings.extend(unknown.map(|(option, setting)| unknown_option(document, &section.name, option, setting)));
        }
    }
    let inherited = document.defaults().iter().filter(|(option, _)| !usage.options.values().any(|known| known.contains(*option)));
    warnings.extend(inherited.map(|(option, setting)| unknown_option(document, DEFAULT_SECTION, option, setting)));
    warnings
}

fn unknown_option(document: &Document, section: &str, option: &str, setting: &Setting) -> String {
    // Clients cut the text at the first quotes and brackets, so the value must hold none.
    let plain = |text: &str| text.replace('\'', "`").replace('[', "(").replace(']', ")");
    let (name, value) = (plain(option), plain(&shown(&setting.value)));
    let place = document.place(setting.span);
    format!(
        "Unparsed config option '{name}: {value}' in section [{section}] ({place}): it is not known there. Correct its name or remove it."
    )
}
