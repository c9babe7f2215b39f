//! A broken configuration must not keep the server from answering: the last good one takes its place.

use std::path::{Path, PathBuf};

use super::{Loaded, load};
use crate::document::Document;
use crate::fs::FileSystem;
use crate::problem::Problem;

/// Where the configuration in use comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The main file, without errors.
    Main,
    /// The backup of the last good state, because the main file has errors.
    LastGood,
    /// What could be read of a faulty main file, because there is no usable backup.
    Salvaged,
}

/// The configuration to run with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The merged configuration.
    pub document: Document,
    /// Where it comes from.
    pub source: Source,
    /// What is wrong with the main file; empty for [`Source::Main`].
    pub problems: Vec<Problem>,
    /// Lines for the warnings of `server.info`: the choice made, then every problem.
    pub warnings: Vec<String>,
}

/// Name of the backup beside the main file: `.<file name>.bkp`.
#[must_use]
pub fn backup_path(main: &Path) -> PathBuf {
    let name = main.file_name().unwrap_or_default().to_string_lossy();
    main.with_file_name(format!(".{name}.bkp"))
}

/// Loads `main`; when it has problems, takes the backup instead, and failing that what could be read of `main`.
#[must_use]
pub fn load_or_last_good(main: &Path, fs: &dyn FileSystem) -> Chosen {
    let Loaded { document, problems, warnings } = load(main, fs);
    let mut lines: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    if problems.is_empty() {
        return Chosen { document, source: Source::Main, problems, warnings: lines };
    }
    let backup = backup_path(main);
    let last_good = load(&backup, fs);
    let (document, source, choice) = if last_good.problems.is_empty() {
        let choice = format!("the last good one, {}, is in use until it is corrected", backup.display());
        (last_good.document, Source::LastGood, choice)
    } else {
        let choice = "there is no last good one, so faulty parts are ignored and defaults are in use".to_owned();
        (document, Source::Salvaged, choice)
    };
    lines.insert(0, format!("The configuration {} has errors; {choice}.", main.display()));
    lines.extend(problems.iter().map(ToString::to_string));
    Chosen { document, source, problems, warnings: lines }
}
