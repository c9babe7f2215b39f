//! Listing: all files of a root, or the entries of one folder (wire/2-files-jobs.md section 1.6).

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use protocol::ApiError;
use schemars::JsonSchema;
use serde::Serialize;

use crate::item::{self, FileEntry, FileInfo, FolderEntry};
use crate::kind;
use crate::library::{Library, Need, is_own};
use crate::metadata::{Ask, Stamp};
use crate::path::RelPath;
use crate::root::{GCODES, Permissions, Root};
use crate::service::Files;

/// Deepest folder that the file list descends to; links can nest without end.
pub const MAX_LIST_DEPTH: usize = 64;
/// Most files in one list; what comes after them is left out, with a line in the log.
pub const MAX_LISTED_FILES: usize = 200_000;

/// Space on the file system that holds a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiskUsage {
    /// Bytes.
    pub total: u64,
    /// Bytes in use.
    pub used: u64,
    /// Bytes that we may still write.
    pub free: u64,
}

/// The root that a listed folder belongs to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RootInfo {
    /// Its name.
    pub name: String,
    /// What callers may do in it.
    pub permissions: Permissions,
}

/// The entries of one folder.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Directory {
    /// Folders in it, in no particular order.
    pub dirs: Vec<FolderEntry>,
    /// Files in it, in no particular order.
    pub files: Vec<FileEntry>,
    /// Space where it lies.
    pub disk_usage: DiskUsage,
    /// Its root.
    pub root_info: RootInfo,
}

/// Space on the file system of `path`.
///
/// # Errors
/// When the file system does not tell.
pub(crate) fn disk_usage(path: &Path) -> io::Result<DiskUsage> {
    let space = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    Ok(DiskUsage { total: bytes(space.f_blocks), used: bytes(space.f_blocks.saturating_sub(space.f_bfree)), free: bytes(space.f_bavail) })
}

/// One entry of a folder, links followed.
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) real: PathBuf,
    linked: bool,
    pub(crate) metadata: Metadata,
    pub(crate) permissions: Permissions,
}

/// Reads folders of one root.
pub(crate) struct FolderReader<'l> {
    pub(crate) library: &'l Library,
    pub(crate) root: &'l Root,
}

impl FolderReader<'_> {
    /// The entries of a folder (its resolved path) that clients may know of. Broken links, links out of the root and names that are no UTF-8, so
    /// that no request could name them, are left out.
    pub(crate) fn read(&self, folder: &Path) -> io::Result<impl Iterator<Item = Found>> {
        let of_folder = self.library.permissions(self.root, folder);
        let guarded = self.library.has_reservation_below(folder);
        let entries = fs::read_dir(folder)?;
        Ok(entries.filter_map(Result::ok).filter_map(move |entry| {
            let name = entry.file_name().into_string().ok().filter(|name| !is_own(name))?;
            let mut real = entry.path();
            let linked = entry.file_type().ok()?.is_symlink();
            if linked {
                real = real.canonicalize().ok().filter(|real| self.library.is_inside(self.root, real))?;
            }
            let metadata = if linked { fs::metadata(&real) } else { entry.metadata() }.ok()?;
            let mut permissions = of_folder;
            if linked || guarded || name == ".git" {
                permissions = self.library.permissions(self.root, &real);
            }
            if linked && metadata.is_file() {
                permissions = item::of_link(permissions);
            }
            Some(Found { name, real, linked, metadata, permissions })
        }))
    }
}

/// A folder that waits to be walked.
struct Folder {
    real: PathBuf,
    /// Its path relative to the root with a slash at the end, or nothing.
    prefix: String,
    depth: usize,
}

/// All files of a root (of `gcodes`: the gcode files), sorted by their paths in lower case. Follows linked folders, each real folder once.
pub(crate) fn list(library: &Library, root: &Root) -> Vec<FileInfo> {
    below(library, root, &RelPath::default())
}

/// As [`list`], but only what is in one folder and below it. Paths are relative to the root all the same.
pub(crate) fn below(library: &Library, root: &Root, folder: &RelPath) -> Vec<FileInfo> {
    let reader = FolderReader { library, root };
    let prefix = if folder.is_root() { String::new() } else { format!("{folder}/") };
    let only_gcode = root.name == GCODES;
    let mut seen = HashSet::new();
    // Real folders come before linked ones, so that a file that can be reached both ways stands in the list under its real path.
    let mut folders = VecDeque::from([Folder { real: folder.below(&root.path), prefix, depth: 0 }]);
    let mut files = Vec::new();
    while let Some(folder) = folders.pop_front() {
        // A folder that went away meanwhile, or that we may not read, does not spoil the list.
        let Ok(metadata) = fs::metadata(&folder.real) else { continue };
        if !seen.insert((metadata.dev(), metadata.ino())) {
            continue;
        }
        for found in reader.read(&folder.real).into_iter().flatten() {
            let path = format!("{}{}", folder.prefix, found.name);
            if found.metadata.is_dir() {
                if found.permissions == Permissions::Nothing || folder.depth == MAX_LIST_DEPTH {
                    continue;
                }
                let inner = Folder { real: found.real, prefix: path + "/", depth: folder.depth + 1 };
                if found.linked { folders.push_back(inner) } else { folders.push_front(inner) }
            } else if found.metadata.is_file() && (!only_gcode || kind::is_gcode(&found.name)) {
                if files.len() == MAX_LISTED_FILES {
                    tracing::warn!(root = root.name, limit = MAX_LISTED_FILES, "file list cut: too many files");
                    folders.clear();
                    break;
                }
                let (modified, size) = (item::modified(&found.metadata), found.metadata.len());
                files.push(FileInfo { path, modified, size, permissions: found.permissions });
            }
        }
    }
    files.sort_by_cached_key(|file| file.path.to_lowercase());
    files
}

/// The entries of one folder; `extended` adds metadata to gcode files that have it.
pub(crate) fn directory(manager: &Files, text: &str, extended: bool) -> Result<Directory, ApiError> {
    let library = &manager.library;
    let path = library.locate(text, Need::Read)?;
    let absent = |_| ApiError::bad_request(format!("Directory does not exist ({})", path.public()));
    let reader = FolderReader { library, root: &path.root };
    let (mut dirs, mut files) = (Vec::new(), Vec::new());
    let mut records = if extended && path.root.name == GCODES { manager.metadata.folder(&path.relative) } else { HashMap::new() };
    for found in reader.read(&path.real).map_err(absent)? {
        let (modified, size, permissions) = (item::modified(&found.metadata), found.metadata.len(), found.permissions);
        if found.metadata.is_dir() {
            dirs.push(FolderEntry { modified, size, permissions, dirname: found.name });
        } else if found.metadata.is_file() {
            // A record of another state of the file is not shown; the file is read again when nothing else is to do.
            let record = records.remove(&found.name).filter(|record| {
                let valid = record.stamp == Stamp::of(&found.metadata);
                if !valid && let Ok(file) = RelPath::parse(&format!("{}/{}", path.relative, found.name)) {
                    drop(manager.scans.ask(&file, Ask::Background));
                }
                valid
            });
            files.push(FileEntry { modified, size, permissions, filename: found.name, record });
        }
    }
    let disk_usage = disk_usage(&path.real).map_err(absent)?;
    let root_info = RootInfo { name: path.root.name.clone(), permissions: path.root.permissions() };
    Ok(Directory { dirs, files, disk_usage, root_info })
}

#[cfg(test)]
mod tests;
