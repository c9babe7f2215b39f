//! From text to items; goes on after each error so that a user sees all of them at once.

use std::collections::HashMap;

use super::line::{Line, is_comment_mark};
use super::{DEFAULT_SECTION, FileId, IncludeItem, Item, OptionItem, ParsedFile, SectionItem, Span, SyntaxError};
use crate::limits::MAX_ERRORS_PER_FILE;

/// Parses the text of one file. Never fails as a whole: what is right is in `items`, what is wrong in `errors`.
#[must_use]
pub fn parse(file: FileId, text: &str) -> ParsedFile {
    let mut parser = Parser::new(file);
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, raw) in (1..).zip(body.split('\n')) {
        parser.number = number;
        if let Some(line) = Line::read(raw) {
            parser.line(&line);
        }
    }
    ParsedFile { text: text.to_owned(), items: parser.items, errors: parser.errors, warnings: parser.warnings }
}

/// What the next option line belongs to.
#[derive(Clone, Copy)]
enum Scope {
    /// Before the first header; the flag says that this was reported already.
    Outside { reported: bool },
    /// Inside the section at this index of `items`.
    Section(usize),
    /// After an include directive.
    Include,
    /// After a broken header: its options are skipped without further complaints.
    Broken,
}

/// A line that deeper indented lines continue.
struct Open {
    indent: usize,
    /// Section and option index; `None` swallows the rest of a faulty option.
    target: Option<(usize, usize)>,
}

struct Parser {
    file: FileId,
    number: u32,
    items: Vec<Item>,
    errors: Vec<SyntaxError>,
    warnings: Vec<SyntaxError>,
    scope: Scope,
    open: Option<Open>,
    sections: HashMap<String, usize>,
    options: HashMap<(usize, String), usize>,
}

impl Parser {
    fn new(file: FileId) -> Self {
        Self {
            file,
            number: 0,
            items: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            scope: Scope::Outside { reported: false },
            open: None,
            sections: HashMap::new(),
            options: HashMap::new(),
        }
    }

    fn line(&mut self, line: &Line) {
        if let Some(open) = &self.open
            && line.indent > open.indent
        {
            if let Some(target) = open.target {
                self.continue_value(target, &line.content);
            }
            return;
        }
        self.open = None;
        if line.content.starts_with('[') {
            self.header(&line.content);
        } else {
            let target = self.option(&line.content);
            self.open = Some(Open { indent: line.indent, target });
        }
    }

    fn header(&mut self, content: &str) {
        self.scope = Scope::Broken;
        let Some(end) = content.rfind(']') else {
            return self.error(None, "expected `]` at the end of the section name");
        };
        let name = &content[1..end];
        if !content[end + 1..].trim().is_empty() {
            self.warning("text after `]` is ignored");
        }
        let mut words = name.trim().splitn(2, char::is_whitespace);
        match (words.next(), words.next()) {
            (None | Some(""), _) => self.error(None, "expected a section name between the brackets"),
            (Some("include"), None) => self.error(None, "expected a path: `[include path]`"),
            (Some("include"), Some(pattern)) => self.include(pattern.trim()),
            _ => self.section(name),
        }
    }

    fn include(&mut self, pattern: &str) {
        let span = self.here();
        self.items.push(Item::Include(IncludeItem { pattern: pattern.to_owned(), span }));
        self.scope = Scope::Include;
    }

    fn section(&mut self, name: &str) {
        if let Some(&index) = self.sections.get(name) {
            self.scope = Scope::Section(index);
            if name != DEFAULT_SECTION {
                self.error(None, "expected each section once per file; this one stands above already");
            }
            return;
        }
        let index = self.items.len();
        self.items.push(Item::Section(SectionItem { name: name.to_owned(), span: self.here(), options: Vec::new() }));
        self.sections.insert(name.to_owned(), index);
        self.scope = Scope::Section(index);
    }

    /// Takes an option line and returns where its continuation lines go.
    fn option(&mut self, content: &str) -> Option<(usize, usize)> {
        let section = match self.scope {
            Scope::Section(index) => index,
            Scope::Broken | Scope::Outside { reported: true } => return None,
            Scope::Outside { reported: false } => {
                self.scope = Scope::Outside { reported: true };
                self.error(None, "expected a section header such as `[server]` before the first option");
                return None;
            }
            Scope::Include => {
                self.error(None, "expected a section header: an include has no options");
                return None;
            }
        };
        let Some((name, value)) = content.split_once([':', '=']) else {
            self.error(None, "expected `name: value`, or deeper indentation to go on with the value above");
            return None;
        };
        let name = name.trim().to_lowercase();
        if name.is_empty() || name.starts_with(is_comment_mark) {
            self.error(None, "expected a name before the value");
            return None;
        }
        Some((section, self.store(section, name, value.trim())))
    }

    fn store(&mut self, section: usize, name: String, value: &str) -> usize {
        let option = OptionItem { name: name.clone(), value: value.to_owned(), span: self.here() };
        let key = (section, name);
        if let Some(&index) = self.options.get(&key) {
            self.error(Some(key.1), "expected each option once per section and file; this one stands above already");
            if let Some(known) = self.options_of(section).and_then(|options| options.get_mut(index)) {
                *known = option;
            }
            return index;
        }
        let Some(options) = self.options_of(section) else {
            return 0;
        };
        let index = options.len();
        options.push(option);
        self.options.insert(key, index);
        index
    }

    fn continue_value(&mut self, (section, option): (usize, usize), content: &str) {
        let number = self.number;
        if let Some(option) = self.options_of(section).and_then(|options| options.get_mut(option)) {
            option.value.push('\n');
            option.value.push_str(content);
            option.span.end_line = number;
        }
    }

    fn options_of(&mut self, section: usize) -> Option<&mut Vec<OptionItem>> {
        match self.items.get_mut(section) {
            Some(Item::Section(section)) => Some(&mut section.options),
            _ => None,
        }
    }

    fn here(&self) -> Span {
        Span { file: self.file, line: self.number, end_line: self.number }
    }

    fn fault(&self, option: Option<String>, message: &str) -> SyntaxError {
        let section = match self.scope {
            Scope::Section(index) => self.items.get(index).and_then(|item| match item {
                Item::Section(section) => Some(section.name.clone()),
                Item::Include(_) => None,
            }),
            _ => None,
        };
        SyntaxError { span: self.here(), section, option, message: message.to_owned() }
    }

    fn warning(&mut self, message: &str) {
        if self.warnings.len() < MAX_ERRORS_PER_FILE {
            self.warnings.push(self.fault(None, message));
        }
    }

    fn error(&mut self, option: Option<String>, message: &str) {
        match self.errors.len() {
            n if n < MAX_ERRORS_PER_FILE => self.errors.push(self.fault(option, message)),
            MAX_ERRORS_PER_FILE => self.errors.push(self.fault(None, "further errors of this file are not listed")),
            _ => {}
        }
    }
}
