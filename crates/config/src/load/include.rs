//! The include directive: from a pattern to files in a fixed order.

use std::path::{Path, PathBuf};

use super::Loader;
use crate::glob::{is_pattern, matches};
use crate::limits::MAX_FILES;
use crate::syntax::IncludeItem;

impl Loader<'_> {
    /// Reads the files that a directive in `from` names, sorted by path.
    pub(super) fn include(&mut self, from: &Path, include: &IncludeItem, depth: usize) {
        let mut paths = self.expand(from.parent().unwrap_or(Path::new("")), &include.pattern);
        if paths.is_empty() {
            let message = format!("expected a file: nothing matches `{}`", include.pattern);
            return self.problem(from, Some(include.span), message);
        }
        paths.sort();
        for path in paths {
            let count = self.loaded.document.files().len();
            self.file(&path, Some(include.span), depth + 1);
            if count >= MAX_FILES {
                break; // reported once, not per match
            }
        }
    }

    /// All files that fit. Relative patterns may hold wildcards in every component, absolute ones in the last only.
    fn expand(&self, folder: &Path, pattern: &str) -> Vec<PathBuf> {
        let (parents, last) = pattern.rsplit_once('/').map_or((None, pattern), |(parents, last)| (Some(parents), last));
        let mut folders = vec![folder.to_owned()];
        if let Some(parents) = parents {
            if pattern.starts_with('/') {
                folders = vec![Path::new("/").join(parents)];
            } else {
                for component in parents.split('/').filter(|part| !part.is_empty()) {
                    folders = folders.iter().flat_map(|folder| self.step(folder, component, true)).collect();
                    folders.truncate(MAX_FILES + 1);
                }
            }
        }
        let sure = folders.len() == 1 && !is_pattern(last);
        folders.iter().flat_map(|folder| if sure { self.present(folder.join(last)) } else { self.step(folder, last, false) }).collect()
    }

    /// The paths one component further: folders on the way, files at the end.
    fn step(&self, folder: &Path, component: &str, want_dir: bool) -> Vec<PathBuf> {
        if want_dir && !is_pattern(component) {
            return vec![folder.join(component)];
        }
        let entries = self.fs.list(folder).unwrap_or_default();
        let fitting = entries.into_iter().filter(|entry| entry.is_dir == want_dir && matches(component, &entry.name));
        fitting.map(|entry| folder.join(entry.name)).collect()
    }

    /// A path without wildcards counts as a match unless the file is missing; other failures are reported when it is read.
    fn present(&self, path: PathBuf) -> Vec<PathBuf> {
        match self.fs.read(&path, 0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            _ => vec![path],
        }
    }
}
