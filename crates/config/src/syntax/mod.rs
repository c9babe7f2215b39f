//! The text of one configuration file as sections and options with their lines.
//!
//! Rules: `[section]`; `name: value` or `name = value`; deeper indented lines go on with the value; comment lines and blank lines vanish, also inside
//! values; an inline comment starts at a `#` or `;` after a space, escaped as ` \#`. Names of options are lower-cased, everything else is kept verbatim and
//! nothing is interpolated. All errors of a file are collected.

mod line;
mod parse;
mod print;
#[cfg(test)]
mod tests;

pub use parse::parse;
pub(crate) use print::write_section;

/// Name of the section whose options every other section inherits.
pub const DEFAULT_SECTION: &str = "DEFAULT";

/// Index of a file in the order of first reading; 0 is the main file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// Lines of one file, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First line.
    pub line: u32,
    /// Last line; differs from `line` for multi-line values only.
    pub end_line: u32,
}

/// One option as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionItem {
    /// Lower-cased name.
    pub name: String,
    /// Trimmed lines joined by newline; starts with a newline when the first line was empty.
    pub value: String,
    /// Lines from the name to the end of the value.
    pub span: Span,
}

/// One section as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionItem {
    /// The text between the brackets, verbatim.
    pub name: String,
    /// Line of the header.
    pub span: Span,
    /// Options in the order of the file, each name once.
    pub options: Vec<OptionItem>,
}

/// One `[include pattern]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncludeItem {
    /// Path or glob, as written.
    pub pattern: String,
    /// Line of the directive.
    pub span: Span,
}

/// A part of a file; their order matters because includes take effect in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A section with its options.
    Section(SectionItem),
    /// A request to read other files here.
    Include(IncludeItem),
}

/// Something in a file that breaks the rules. Never repeats the text of the file, which may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub span: Span,
    /// The section it stands in, if any.
    pub section: Option<String>,
    /// The option concerned, if any.
    pub option: Option<String>,
    /// What was expected.
    pub message: String,
}

/// The outcome of parsing one file; usable even when there are errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedFile {
    /// The source text, for showing and rewriting.
    pub text: String,
    /// Sections and includes in order.
    pub items: Vec<Item>,
    /// All violations of the rules, in the order of lines, at most [`MAX_ERRORS_PER_FILE`](crate::limits::MAX_ERRORS_PER_FILE) and a last remark.
    pub errors: Vec<SyntaxError>,
    /// Oddities that are accepted.
    pub warnings: Vec<SyntaxError>,
}

impl ParsedFile {
    /// The sections without the includes.
    pub fn sections(&self) -> impl Iterator<Item = &SectionItem> {
        self.items.iter().filter_map(|item| match item {
            Item::Section(section) => Some(section),
            Item::Include(_) => None,
        })
    }
}

/// The lines of `text` that `span` covers, unchanged, without the last line end.
#[must_use]
pub fn raw_lines(text: &str, span: Span) -> &str {
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let Some(from) = starts.nth(span.line.saturating_sub(1) as usize) else {
        return "";
    };
    let length = text[from..].split_inclusive('\n').take((span.end_line - span.line) as usize + 1).map(str::len).sum::<usize>();
    text[from..from + length].trim_end_matches(['\n', '\r'])
}
