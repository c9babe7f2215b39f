//! Copying a folder with everything in it: made aside, then renamed, so that nobody sees a part of it. Blocks.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::disk::{copy_file, place_beside};
use crate::library::{Library, RootPath, is_own};
use crate::list::{MAX_LIST_DEPTH, MAX_LISTED_FILES};
use crate::root::Permissions;

/// Copies what clients may read of a folder. Links stay links.
///
/// # Errors
/// What the system says, and when the folder nests too deep or holds too much; nothing is left then.
pub(crate) fn copy(library: &Library, source: &RootPath, target: &Path) -> io::Result<()> {
    let readable = |path: &Path| library.permissions(&source.root, path) != Permissions::Nothing;
    place_beside(target, |copy| Copier { keep: &readable, copied: 0 }.folder(&source.real, copy, 0))
}

/// Copies all of a folder, for a move across file systems. Links stay links.
///
/// # Errors
/// As [`copy`].
pub(crate) fn copy_whole(source: &RootPath, target: &Path) -> io::Result<()> {
    place_beside(target, |copy| Copier { keep: &|_| true, copied: 0 }.folder(&source.entry, copy, 0))
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
