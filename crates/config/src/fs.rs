//! The little that loading needs from a file system, and a file system in memory for tests.
//!
//! This crate does no I/O itself: the caller implements [`FileSystem`] for the real disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

/// What makes two paths the same file: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// Number of the device.
    pub device: u64,
    /// Number of the inode on it.
    pub inode: u64,
}

/// A file as read.
#[derive(Debug, Clone)]
pub struct FileContent {
    /// The bytes, possibly cut after the limit that was asked for plus one.
    pub bytes: Vec<u8>,
    /// Which file it is.
    pub identity: FileIdentity,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name without the folder.
    pub name: String,
    /// True for folders and links to folders.
    pub is_dir: bool,
}

/// Access to configuration files.
pub trait FileSystem {
    /// Reads a regular file. Stops after `limit` + 1 bytes, so that an oversized file is recognised without being loaded.
    ///
    /// # Errors
    /// When there is no such file or it cannot be read.
    fn read(&self, path: &Path, limit: usize) -> io::Result<FileContent>;

    /// The names in a folder, in any order; names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// When there is no such folder or it cannot be read.
    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>>;
}

/// Files in memory; folders exist through the files in them.
#[derive(Debug, Default, Clone)]
pub struct MemoryFiles {
    files: BTreeMap<PathBuf, (Vec<u8>, u64)>,
    next: u64,
}

impl MemoryFiles {
    /// No files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file.
    #[must_use]
    pub fn with(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.next += 1;
        self.files.insert(normal(Path::new(path)), (content.as_ref().to_vec(), self.next));
        self
    }

    /// Adds another name of a file that was added before, like a hard link.
    #[must_use]
    pub fn with_link(mut self, path: &str, target: &str) -> Self {
        if let Some(file) = self.files.get(&normal(Path::new(target))).cloned() {
            self.files.insert(normal(Path::new(path)), file);
        }
        self
    }
}

impl FileSystem for MemoryFiles {
    fn read(&self, path: &Path, limit: usize) -> io::Result<FileContent> {
        let (bytes, inode) = self.files.get(&normal(path)).ok_or_else(not_found)?;
        let length = bytes.len().min(limit.saturating_add(1));
        Ok(FileContent { bytes: bytes[..length].to_vec(), identity: FileIdentity { device: 0, inode: *inode } })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let folder = normal(folder);
        let below = self.files.keys().filter_map(|path| path.strip_prefix(&folder).ok());
        let names: BTreeSet<(String, bool)> = below
            .filter_map(|rest| {
                let mut parts = rest.components();
                let name = parts.next()?.as_os_str().to_str()?.to_owned();
                Some((name, parts.next().is_some()))
            })
            .collect();
        if names.is_empty() {
            return Err(not_found());
        }
        // Descending, so that a caller who forgets to sort fails its tests.
        Ok(names.into_iter().rev().map(|(name, is_dir)| Entry { name, is_dir }).collect())
    }
}

fn not_found() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no such file")
}

/// The path without `.` and `..` as far as its text allows; links are not followed.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(result.components().next_back(), Some(Component::Normal(_))) => {
                result.pop();
            }
            Component::ParentDir if result.has_root() => {}
            other => result.push(other),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_by_text() {
        for (path, expected) in [("/a/./b/../c", "/a/c"), ("/../a", "/a"), ("../a/..", ".."), ("a/..", "")] {
            assert_eq!(normal(Path::new(path)), Path::new(expected));
        }
    }

    #[test]
    fn folders_list_files_and_folders() {
        let files = MemoryFiles::new().with("/c/main.conf", "").with("/c/d/x.conf", "");
        let names = files.list(Path::new("/c/.")).unwrap();
        assert_eq!(names, [Entry { name: "main.conf".into(), is_dir: false }, Entry { name: "d".into(), is_dir: true }]);
        assert!(files.list(Path::new("/nowhere")).is_err());
    }
}
