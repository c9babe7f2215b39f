//! Where the files of the kernel are.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest text that is read from a file of the kernel.
const MAX_TEXT: u64 = 256 * 1024;

/// The root folder of the file system; another one in tests.
#[derive(Debug, Clone)]
pub struct Roots(PathBuf);

impl Default for Roots {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Roots {
    /// Everything below this folder.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// An absolute path of the machine.
    #[must_use]
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.0.join(absolute.trim_start_matches('/'))
    }

    /// The text of a file without the white space around it; damaged characters are replaced.
    #[must_use]
    pub fn text(&self, absolute: &str) -> Option<String> {
        text_of(&self.path(absolute))
    }

    /// Names in a folder in their order; none when there is no such folder.
    #[must_use]
    pub fn names(&self, absolute: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(absolute)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// [`Roots::text`] of a path that is known already.
pub(crate) fn text_of(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A tree with these files.
    pub(crate) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Roots) {
        let folder = tempfile::tempdir().unwrap();
        let roots = Roots::at(folder.path());
        for (path, content) in files {
            let path = roots.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        (folder, roots)
    }

    #[test]
    fn what_is_not_there_is_empty() {
        let (_keep, roots) = tree(&[("/sys/a/b", " x \n")]);
        assert_eq!((roots.text("/sys/a/b").as_deref(), roots.text("/sys/none")), (Some("x"), None));
        assert_eq!((roots.names("/sys/a"), roots.names("/none")), (vec!["b".to_owned()], Vec::new()));
    }
}
