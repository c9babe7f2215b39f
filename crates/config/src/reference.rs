//! The configuration reference as Markdown, made from the option structs so that it cannot be out of date.

use std::fmt::Write;

use serde_json::Value;

use crate::options::OptionSpec;
use crate::value::{Context, OptionValue};

/// Documentation of one section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionDoc {
    /// Name, ending in ` <name>` when there can be many.
    pub name: &'static str,
    /// Further names.
    pub aliases: &'static [&'static str],
    /// What the section is for, paragraphs separated by an empty line.
    pub text: String,
    /// Its options in the order of declaration.
    pub options: Vec<OptionDoc>,
}

/// Documentation of one option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionDoc {
    /// Preferred name.
    pub name: &'static str,
    /// Further names.
    pub aliases: Vec<&'static str>,
    /// Former names, accepted with a warning.
    pub old_names: Vec<&'static str>,
    /// Type and limits in words.
    pub kind: String,
    /// Default as one would write it; empty when an optional option is not set.
    pub default: String,
    /// True when there is no default.
    pub required: bool,
    /// Advice when the option should no longer be used.
    pub deprecated: Option<&'static str>,
    /// What the option does, on one line.
    pub text: String,
}

impl SectionDoc {
    /// A section without options yet; `doc` is the text of its doc comment.
    #[must_use]
    pub fn new(name: &'static str, aliases: &'static [&'static str], doc: &str) -> Self {
        let lines: Vec<&str> = doc.trim().lines().map(str::trim).collect();
        Self { name, aliases, text: lines.join("\n"), options: Vec::new() }
    }

    /// Adds an option of type `T`.
    #[must_use]
    pub fn option<T: OptionValue>(mut self, spec: &OptionSpec, doc: &str, default: Option<T::Literal>) -> Self {
        let shown = default.map(|literal| default_text(&T::from_literal(literal, &Context::symbolic()).to_json()));
        self.options.push(OptionDoc {
            name: spec.name,
            aliases: spec.aliases.clone(),
            old_names: spec.old_names.clone(),
            kind: spec.expected(T::EXPECTED),
            required: shown.is_none(),
            default: shown.unwrap_or_default(),
            deprecated: spec.deprecated,
            text: doc.split_whitespace().collect::<Vec<_>>().join(" "),
        });
        self
    }
}

fn default_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(default_text).collect::<Vec<_>>().join(", "),
        Value::Object(pairs) => pairs.iter().map(|(key, value)| format!("{key}={}", default_text(value))).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The reference of all sections, in the order given.
#[must_use]
pub fn reference(sections: &[SectionDoc]) -> String {
    let mut page =
        String::from("# Configuration reference\n\nThis page is generated from the option structs of the server; do not edit it.\n");
    for section in sections {
        let _ = write_section(&mut page, section); // writing to a String cannot fail
    }
    page
}

fn write_section(page: &mut String, section: &SectionDoc) -> std::fmt::Result {
    writeln!(page, "\n## [{}]\n", section.name)?;
    if !section.text.is_empty() {
        writeln!(page, "{}\n", section.text)?;
    }
    if !section.aliases.is_empty() {
        let names: Vec<String> = section.aliases.iter().map(|name| format!("`[{name}]`")).collect();
        writeln!(page, "Also accepted: {}.\n", names.join(", "))?;
    }
    if section.options.is_empty() {
        return writeln!(page, "No options.");
    }
    writeln!(page, "| Option | Type | Default | Meaning |\n|---|---|---|---|")?;
    for option in &section.options {
        let default = match (option.required, option.default.as_str()) {
            (true, _) => "required".to_owned(),
            (false, "") => "none".to_owned(),
            (false, text) => format!("`{}`", cell(text)),
        };
        writeln!(page, "| `{}` | {} | {default} | {} |", option.name, cell(&option.kind), cell(&meaning(option)))?;
    }
    Ok(())
}

fn meaning(option: &OptionDoc) -> String {
    let mut parts = vec![option.text.clone()];
    let quoted = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if !option.aliases.is_empty() {
        parts.push(format!("Also accepted: {}.", quoted(&option.aliases)));
    }
    if !option.old_names.is_empty() {
        parts.push(format!("Former name: {}.", quoted(&option.old_names)));
    }
    if let Some(advice) = option.deprecated {
        parts.push(format!("Deprecated: {advice}."));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// Text that stays within one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', "<br>")
}
