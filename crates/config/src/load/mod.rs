//! Reading a main file and everything it includes into one document, with all problems at once.

mod fallback;
mod include;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

pub use fallback::{Chosen, Source, backup_path, load_or_last_good};

use crate::document::Document;
use crate::fs::{FileIdentity, FileSystem, MemoryFiles, normal};
use crate::limits::{MAX_FILE_SIZE, MAX_FILES, MAX_INCLUDE_DEPTH, MAX_TOTAL_SIZE};
use crate::problem::{Place, Problem};
use crate::syntax::{FileId, Item, Span, SyntaxError, parse};

/// The section that every configuration must have.
pub const REQUIRED_SECTION: &str = "server";

/// What became of a configuration; the document holds whatever could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The merged sections and the list of files.
    pub document: Document,
    /// Everything that is wrong, in the order of reading.
    pub problems: Vec<Problem>,
    /// Oddities that were accepted.
    pub warnings: Vec<Problem>,
}

/// Loads the configuration that starts at `main`, an absolute path.
#[must_use]
pub fn load(main: &Path, fs: &dyn FileSystem) -> Loaded {
    let folder = normal(main.parent().unwrap_or(Path::new("")));
    let mut loader = Loader { fs, folder, loaded: Loaded::default(), seen: HashSet::new(), total_size: 0 };
    if loader.file(main, None, 0) && loader.loaded.document.section(REQUIRED_SECTION).is_none() {
        let problem = loader.loaded.document.missing(REQUIRED_SECTION, "expected this section to exist".to_owned());
        loader.loaded.problems.push(problem);
    }
    loader.loaded
}

/// Loads a configuration without includes from its text; for tests and for checking uploads.
#[must_use]
pub fn load_text(file_name: &str, text: &str) -> Loaded {
    load(Path::new(file_name), &MemoryFiles::new().with(file_name, text))
}

struct Loader<'a> {
    fs: &'a dyn FileSystem,
    /// Folder of the main file.
    folder: PathBuf,
    loaded: Loaded,
    seen: HashSet<FileIdentity>,
    total_size: usize,
}

impl Loader<'_> {
    /// Reads one file and what it includes; `by` is the include directive. False when the file itself could not be used.
    fn file(&mut self, path: &Path, by: Option<Span>, depth: usize) -> bool {
        match self.open(path, depth) {
            Ok(bytes) => {
                self.parse(path, &bytes, depth);
                true
            }
            Err(reason) => {
                self.problem(path, by, reason);
                false
            }
        }
    }

    /// The content of a file that may take part, or why it may not.
    fn open(&mut self, path: &Path, depth: usize) -> Result<Vec<u8>, String> {
        if depth > MAX_INCLUDE_DEPTH {
            return Err(format!("expected includes at most {MAX_INCLUDE_DEPTH} deep"));
        }
        if self.loaded.document.files().len() >= MAX_FILES {
            return Err(format!("expected at most {MAX_FILES} files"));
        }
        let name = self.display_name(path);
        let content = self.fs.read(path, MAX_FILE_SIZE).map_err(|error| format!("expected a readable file `{name}`: {error}"))?;
        if !self.seen.insert(content.identity) {
            return Err(format!("expected each file once: `{name}` is included already (recursive include)"));
        }
        if content.bytes.len() > MAX_FILE_SIZE {
            return Err(format!("expected `{name}` to have at most {MAX_FILE_SIZE} bytes"));
        }
        self.total_size += content.bytes.len();
        if self.total_size > MAX_TOTAL_SIZE {
            return Err(format!("expected all files together to have at most {MAX_TOTAL_SIZE} bytes"));
        }
        Ok(content.bytes)
    }

    fn parse(&mut self, path: &Path, bytes: &[u8], depth: usize) {
        let name = self.display_name(path);
        let file = self.loaded.document.add_file(path.to_owned(), name);
        let text = self.decode(file, bytes);
        let parsed = parse(file, &text);
        let document = &mut self.loaded.document;
        self.loaded.problems.extend(parsed.errors.into_iter().map(|error| located(document, error)));
        self.loaded.warnings.extend(parsed.warnings.into_iter().map(|warning| located(document, warning)));
        document.set_text(file, parsed.text);
        for item in parsed.items {
            match item {
                Item::Section(section) => self.loaded.document.merge(section),
                Item::Include(include) => self.include(path, &include, depth),
            }
        }
    }

    fn decode(&mut self, file: FileId, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if let Err(error) = std::str::from_utf8(bytes) {
            let breaks = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
            let line = u32::try_from(breaks + 1).unwrap_or(u32::MAX);
            let span = Span { file, line, end_line: line };
            let problem = self.loaded.document.problem(span, None, None, "expected UTF-8 text".to_owned());
            self.loaded.problems.push(problem);
        }
        text
    }

    /// Reports at the include directive, or for the whole file when there is none.
    fn problem(&mut self, path: &Path, by: Option<Span>, message: String) {
        let place = match by {
            Some(span) => self.loaded.document.place(span),
            None => Place { file: self.display_name(path), line: None },
        };
        self.loaded.problems.push(Problem { place, section: None, option: None, message });
    }

    fn display_name(&self, path: &Path) -> String {
        let path = normal(path);
        path.strip_prefix(&self.folder).unwrap_or(&path).display().to_string()
    }
}

fn located(document: &Document, error: SyntaxError) -> Problem {
    document.problem(error.span, error.section.as_deref(), error.option.as_deref(), error.message)
}
