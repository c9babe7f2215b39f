//! From items back to text that parses to the same items.

use super::line::{escaped, is_comment_mark};
use super::{Item, ParsedFile};

/// Columns by which lines of a multi-line value are indented.
const INDENT: &str = "    ";

impl ParsedFile {
    /// The items in plain form: comments gone, one style of delimiters and indentation.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for item in &self.items {
            match item {
                Item::Include(include) => push_line(&mut text, &format!("[include {}]", include.pattern)),
                Item::Section(section) => {
                    write_section(&mut text, &section.name, section.options.iter().map(|option| (&*option.name, &*option.value)));
                }
            }
        }
        text
    }
}

/// Appends one section with its options.
pub(crate) fn write_section<'a>(text: &mut String, name: &str, options: impl Iterator<Item = (&'a str, &'a str)>) {
    if !text.is_empty() {
        text.push('\n');
    }
    push_line(text, &format!("[{name}]"));
    for (name, value) in options {
        let mut lines = value.split('\n');
        let first = lines.next().unwrap_or_default();
        // A backslash before a comment mark is literal only when no space precedes it.
        let gap = if first.is_empty() || is_literal_escape(first) { "" } else { " " };
        push_line(text, &format!("{name}:{gap}{first}"));
        for line in lines {
            push_line(text, &format!("{INDENT}{line}"));
        }
    }
}

fn is_literal_escape(text: &str) -> bool {
    text.strip_prefix('\\').is_some_and(|rest| rest.starts_with(is_comment_mark))
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(&escaped(line));
    text.push('\n');
}
