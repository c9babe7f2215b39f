//! Configuration files: syntax with spans, includes, secrets, typed options, unknown-option report, reference.
//!
//! From file to component: [`load()`] reads the main file and its includes into a [`Document`] ([`load_or_last_good`] replaces a broken one),
//! a [`Reader`] takes option structs out of it that [`options!`] declares, [`unparsed`] lists what nobody asked for, and [`reference()`]
//! writes the manual page. Nothing stops at the first fault: every [`Problem`] names file, line, section and option.
//!
//! The crate does no I/O; the caller supplies a [`FileSystem`]. Source of the rules: wire/1-core.md section 7.

mod document;
pub mod fs;
pub mod glob;
pub mod limits;
mod load;
mod options;
#[cfg(test)]
mod options_tests;
mod problem;
mod reader;
mod reference;
mod secrets;
pub mod syntax;
mod usage;
mod value;

pub use document::{Document, OriginalOptions, Section, Setting, SourceFile};
pub use fs::{FileSystem, MemoryFiles};
pub use load::{Chosen, Loaded, REQUIRED_SECTION, Source, backup_path, load, load_or_last_good, load_text};
pub use options::{OptionSet, OptionSpec};
pub use problem::{Place, Problem};
pub use reader::{Entry, Reader, SectionReader};
pub use reference::{OptionDoc, SectionDoc, reference};
pub use secrets::{Secrets, UnknownSecret};
/// For the code that the macros write.
#[doc(hidden)]
pub use serde_json;
pub use usage::{Usage, unparsed};
pub use value::{CommaList, Context, Dictionary, OptionValue, OptionalDictionary, Secret, WordList};
