//! Copying a folder with everything in it: made aside, so that nobody sees a part of it. Blocks.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;

use crate::disk::{Aside, copy_file};
use crate::library::{Library, RootPath, is_own};
use crate::list::{MAX_LIST_DEPTH, MAX_LISTED_FILES};
use crate::metadata::Stamp;
use crate::root::Permissions;

/// Copies what clients may read of a folder. Links stay links.
///
/// # Errors
/// What the system says, and when the folder nests too deep or holds too much; nothing is left then.
pub(crate) fn copy(library: &Library, source: &RootPath, target: &Path) -> io::Result<Aside> {
    let readable = |path: &Path| library.permissions(&source.root, path) != Permissions::Nothing;
    Aside::make(target, |copy| Copier { keep: &readable, copied: 0 }.folder(&source.real, copy, 0))
}

/// Copies all of a folder, for a move across file systems. Links stay links.
///
/// # Errors
/// As [`copy`].
pub(crate) fn copy_whole(source: &RootPath, target: &Path) -> io::Result<Aside> {
    Aside::make(target, |copy| Copier { keep: &|_| true, copied: 0 }.folder(&source.entry, copy, 0))
}

/// A number that is another one when something in a file or folder has changed.
///
/// # Errors
/// What the system says.
pub(crate) fn fingerprint(path: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path)?;
        let stamp = Stamp::of(&metadata);
        (&path, stamp.size, stamp.modified_ns, stamp.inode).hash(&mut hasher);
        if metadata.is_dir() {
            let mut inner = fs::read_dir(&path)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
            inner.sort();
            waiting.append(&mut inner);
        }
    }
    Ok(hasher.finish())
}

struct Copier<'k> {
    keep: &'k dyn Fn(&Path) -> bool,
    copied: usize,
}

impl Copier<'_> {
    fn folder(&mut self, source: &Path, target: &Path, depth: usize) -> io::Result<()> {
        if depth == MAX_LIST_DEPTH {
            return Err(io::Error::other(format!("the folder nests deeper than {MAX_LIST_DEPTH}")));
        }
        fs::create_dir(target)?;
        for entry in fs::read_dir(source)? {
            let entry = entry?;
            let (from, to) = (entry.path(), target.join(entry.file_name()));
            if is_own(&entry.file_name().to_string_lossy()) || !(self.keep)(&from) {
                continue;
            }
            self.copied += 1;
            if self.copied > MAX_LISTED_FILES {
                return Err(io::Error::other(format!("the folder holds more than {MAX_LISTED_FILES} entries")));
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.folder(&from, &to, depth + 1)?;
            } else if kind.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(&from)?, &to)?;
            } else if kind.is_file() {
                copy_file(&from, &to)?;
            }
        }
        File::open(target)?.sync_all()
    }
}
