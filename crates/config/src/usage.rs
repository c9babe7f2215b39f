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

    /// Adds what another reader of the same document saw.
    pub fn merge(&mut self, other: Self) {
        for (section, options) in other.options {
            self.options.entry(section).or_default().extend(options);
        }
    }

    fn knows(&self, section: &str, option: &str) -> bool {
        self.options.get(section).is_some_and(|options| options.contains(option))
    }
}

/// Sections of the configurations that installers write, by their first word, for which this version has nothing: components of existing servers and
/// plug-ins that come with their own section (wire/1-core.md section 1.5, wire/4-clients.md section 10). What a component reads is never looked up here.
const NOT_OFFERED: &[&str] =
    &["analysis", "mmu_server", "notifier", "paneldue", "simplyprint", "spool", "spoolman", "td1", "timelapse", "update_manager"];

/// The first word of a section's name, when it is one of those.
fn not_offered(section: &str) -> Option<&'static str> {
    let kind = section.split_whitespace().next()?;
    NOT_OFFERED.iter().copied().find(|known| *known == kind)
}

/// One warning for each section that nobody read and each option that nobody asked for, in the order of the document. Sections of one kind that is known
/// but not offered share one: nobody can do anything about them, and installers write a dozen.
#[must_use]
pub fn unparsed(document: &Document, usage: &Usage) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut told = BTreeSet::new();
    let is_read = |section: &str| usage.options.contains_key(section);
    for section in document.sections() {
        let (name, place) = (&section.name, document.place(section.span));
        if is_read(name) {
            let unknown = section.options.iter().filter(|(option, _)| !usage.knows(name, option));
            warnings.extend(unknown.map(|(option, setting)| unknown_option(document, name, option, setting)));
        } else if let Some(kind) = not_offered(name) {
            if told.insert(kind) {
                let of_kind = document.sections().filter(|other| !is_read(&other.name) && not_offered(&other.name) == Some(kind));
                let (name, more) = match of_kind.count() {
                    1 => (name.as_str(), String::new()),
                    count => (kind, format!(" and {} more", count - 1)),
                };
                warnings.push(format!(
                    "Unparsed config section [{name}] ({place}{more}): known, but not offered by this version. It may stay."
                ));
            }
        } else {
            warnings
                .push(format!("Unparsed config section [{name}] ({place}): no part of the server uses it. Correct its name or remove it."));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_text;

    fn warnings(text: &str, read: &[(&str, &str)]) -> Vec<String> {
        let mut usage = Usage::default();
        for (section, option) in read {
            usage.option(section, option);
        }
        unparsed(&load_text("core.conf", text).document, &usage)
    }

    #[test]
    fn unread_sections_are_named_in_brackets() {
        assert_eq!(
            warnings("[server]\n[timelaps x]\na: 1\n", &[("server", "host")]),
            ["Unparsed config section [timelaps x] (core.conf:2): no part of the server uses it. Correct its name or remove it."]
        );
    }

    #[test]
    fn what_installers_write_may_stay_and_is_told_once() {
        let text = "[update_manager]\nchannel: dev\n[timelapse]\n[update_manager mainsail]\n[notifier a]\n[update_manager x]\n[spoolman]\n";
        let known = "known, but not offered by this version. It may stay.";
        assert_eq!(
            warnings(text, &[("spoolman", "server")]),
            [
                format!("Unparsed config section [update_manager] (core.conf:1 and 2 more): {known}"),
                format!("Unparsed config section [timelapse] (core.conf:3): {known}"),
                format!("Unparsed config section [notifier a] (core.conf:5): {known}"),
            ]
        );
    }

    #[test]
    fn unread_options_are_quoted_with_their_value() {
        assert_eq!(
            warnings("[server]\nhost: a\nprot: 80\nlist:\n  a\n  b\n", &[("server", "host")]),
            [
                "Unparsed config option 'prot: 80' in section [server] (core.conf:3): it is not known there. Correct its name or remove it.",
                "Unparsed config option 'list: a b' in section [server] (core.conf:4): it is not known there. Correct its name or remove it.",
            ]
        );
    }

    #[test]
    fn clients_find_option_and_section_whatever_the_value() {
        let text = &warnings("[server]\nmsg: it's [x] ]y\n", &[("server", "host")])[0];
        let between = |open: char, close: char| {
            let rest = &text[text.find(open).unwrap() + 1..];
            &rest[..rest.find(close).unwrap()]
        };
        assert!(text.starts_with("Unparsed config option"));
        assert_eq!((between('\'', '\''), between('[', ']')), ("msg: it`s (x) )y", "server"));
    }

    #[test]
    fn inherited_options_count_once() {
        let text = "[DEFAULT]\na: 1\nb: 2\n[server]\n[t]\n";
        let found = warnings(text, &[("server", "a"), ("t", "c")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("Unparsed config option 'b: 2' in section [DEFAULT] (core.conf:3)"));
    }

    #[test]
    fn usages_of_several_readers_add_up() {
        let document = load_text("core.conf", "[server]\na: 1\nb: 2\n[x]\n").document;
        let (mut one, mut two) = (Usage::default(), Usage::default());
        one.option("server", "a");
        two.option("server", "b");
        two.section("x");
        one.merge(two);
        assert_eq!(unparsed(&document, &one), [""; 0]);
    }
}
