//! The merged configuration: sections of all files, where a file read later overrides one read before.

use std::path::PathBuf;

use indexmap::IndexMap;

use crate::problem::{Place, Problem};
use crate::syntax::{DEFAULT_SECTION, FileId, SectionItem, Span, raw_lines, write_section};

/// Section → option → text, as `server.config` shows it in `orig`.
pub type OriginalOptions = IndexMap<String, IndexMap<String, String>>;

/// A value and where it was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Text of the value, see [`crate::syntax::OptionItem::value`].
    pub value: String,
    /// Lines that set it last.
    pub span: Span,
}

/// One merged section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Full name, such as `power my led`.
    pub name: String,
    /// Header in the file that was read last.
    pub span: Span,
    /// Own options, without those inherited from `[DEFAULT]`.
    pub options: IndexMap<String, Setting>,
}

/// One file that took part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path as opened.
    pub path: PathBuf,
    /// Path relative to the main file's folder, absolute when outside of it.
    pub name: String,
    /// Names of the sections in it, in order.
    pub sections: Vec<String>,
    /// Its text.
    pub text: String,
}

/// All sections and files of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    sections: IndexMap<String, Section>,
    defaults: IndexMap<String, Setting>,
    files: Vec<SourceFile>,
}

impl Document {
    /// The sections in the order of first appearance, without `[DEFAULT]`.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.sections.values()
    }

    /// One section by its exact name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.get(name)
    }

    /// Options of `[DEFAULT]`, inherited by every section.
    #[must_use]
    pub fn defaults(&self) -> &IndexMap<String, Setting> {
        &self.defaults
    }

    /// An option of an existing section, its own or an inherited one.
    #[must_use]
    pub fn get(&self, section: &str, option: &str) -> Option<&Setting> {
        let section = self.sections.get(section)?;
        section.options.get(option).or_else(|| self.defaults.get(option))
    }

    /// The files in the order of reading, the main file first.
    #[must_use]
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The position of a span as shown to users.
    #[must_use]
    pub fn place(&self, span: Span) -> Place {
        Place { file: self.file_name(span.file), line: Some(span.line) }
    }

    /// The source lines of a setting or header, unchanged.
    #[must_use]
    pub fn raw(&self, span: Span) -> &str {
        self.files.get(span.file.0 as usize).map_or("", |file| raw_lines(&file.text, span))
    }

    /// `orig` of `server.config`: `DEFAULT` first, then each section with inherited options included.
    #[must_use]
    pub fn orig(&self) -> OriginalOptions {
        let texts = |options: &IndexMap<String, Setting>| -> IndexMap<String, String> {
            options.iter().map(|(name, setting)| (name.clone(), setting.value.clone())).collect()
        };
        let mut all = OriginalOptions::from_iter([(DEFAULT_SECTION.to_owned(), texts(&self.defaults))]);
        for section in self.sections.values() {
            let options = all.entry(section.name.clone()).or_default();
            *options = texts(&section.options);
            for (name, setting) in &self.defaults {
                options.entry(name.clone()).or_insert_with(|| setting.value.clone());
            }
        }
        all
    }

    /// The merged configuration as one file without includes, for the backup of the last good state.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let defaults = (!self.defaults.is_empty()).then_some((DEFAULT_SECTION, &self.defaults));
        let sections = self.sections.values().map(|section| (&*section.name, &section.options));
        for (name, options) in defaults.into_iter().chain(sections) {
            write_section(&mut text, name, options.iter().map(|(name, setting)| (&**name, &*setting.value)));
        }
        text
    }

    pub(crate) fn file_name(&self, file: FileId) -> String {
        self.files.get(file.0 as usize).map(|file| file.name.clone()).unwrap_or_default()
    }

    pub(crate) fn problem(&self, span: Span, section: Option<&str>, option: Option<&str>, message: String) -> Problem {
        Problem { place: self.place(span), section: section.map(Into::into), option: option.map(Into::into), message }
    }

    /// A problem of the configuration as a whole.
    pub(crate) fn missing(&self, section: &str, message: String) -> Problem {
        let place = Place { file: self.file_name(FileId::default()), line: None };
        Problem { place, section: Some(section.to_owned()), option: None, message }
    }

    pub(crate) fn add_file(&mut self, path: PathBuf, name: String) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(SourceFile { path, name, sections: Vec::new(), text: String::new() });
        id
    }

    pub(crate) fn set_text(&mut self, file: FileId, text: String) {
        if let Some(file) = self.files.get_mut(file.0 as usize) {
            file.text = text;
        }
    }

    /// Adds a section of a file; its options override those known so far.
    pub(crate) fn merge(&mut self, item: SectionItem) {
        if let Some(file) = self.files.get_mut(item.span.file.0 as usize)
            && item.name != DEFAULT_SECTION
        {
            file.sections.push(item.name.clone());
        }
        let options = if item.name == DEFAULT_SECTION {
            &mut self.defaults
        } else {
            let section = self.sections.entry(item.name.clone()).or_insert_with(|| Section {
                name: item.name.clone(),
                span: item.span,
                options: IndexMap::new(),
            });
            section.span = item.span;
            &mut section.options
        };
        for option in item.options {
            options.insert(option.name, Setting { value: option.value, span: option.span });
        }
    }
}
