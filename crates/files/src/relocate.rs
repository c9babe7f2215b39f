//! Moving and copying, by request (wire/2-files-jobs.md section 1.7). Blocks.
//!
//! Content is copied aside before the caller takes the lock of all changes ([`prepare_move`], [`prepare_copy`]); under the lock everything is
//! checked again, and the copy is renamed to its place ([`relocate`], [`copy`]).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use protocol::ApiError;
use protocol::event::FileAction;
use rustix::fs::Access;

use crate::disk::{Aside, copy_file, remove_any, sync_parent};
use crate::library::{Library, Need, RootPath};
use crate::refusal::{Refusal, in_use, system};
use crate::tree;

/// What was moved or copied.
#[derive(Debug)]
pub(crate) struct Relocated {
    pub(crate) source: RootPath,
    /// Where it is now.
    pub(crate) dest: RootPath,
    pub(crate) action: FileAction,
}

/// A copy that waits for its place.
#[derive(Debug)]
pub(crate) struct Prepared {
    aside: Aside,
    target: PathBuf,
    /// What the source was when it was copied.
    source: u64,
    /// It is what the source leads to.
    follows: bool,
}

/// Copies aside what a move has to bring to another file system; nothing when a rename will do.
pub(crate) fn prepare_move(
    library: &Library,
    from: &str,
    to: &str,
    loaded: &dyn Fn() -> Option<String>,
) -> Result<Option<Prepared>, ApiError> {
    let Ends { source, dest, .. } = Ends::check_move(library, from, to, loaded)?;
    let prepared = || {
        let there = dest.entry.parent().map(fs::metadata).transpose()?.map(|folder| folder.dev());
        let metadata = source.entry.symlink_metadata()?;
        if there == Some(metadata.dev()) || metadata.is_symlink() {
            return Ok(None);
        }
        copied_whole(&source, &dest, &metadata).map(Some)
    };
    prepared().map_err(|error: io::Error| system(&error))
}

/// Renames, or puts the copy in its place and deletes. A folder as destination takes the source in; a file is replaced.
pub(crate) fn relocate(
    library: &Library,
    from: &str,
    to: &str,
    prepared: Option<Prepared>,
    loaded: &dyn Fn() -> Option<String>,
) -> Result<Relocated, ApiError> {
    let Ends { source, dest, .. } = Ends::check_move(library, from, to, loaded)?;
    let action = if source.real.is_dir() { FileAction::MoveDir } else { FileAction::MoveFile };
    let moved = match prepared {
        Some(prepared) => {
            prepared.place(&source, &dest.entry)?;
            remove_any(&source.entry)
        }
        None => fs::rename(&source.entry, &dest.entry).or_else(|error| match error.kind() {
            io::ErrorKind::CrossesDevices => move_across(&source, &dest),
            _ => Err(error),
        }),
    };
    moved.and_then(|()| sync_parent(&dest.entry)).and_then(|()| sync_parent(&source.entry)).map_err(|error| system(&error))?;
    Ok(Relocated { dest: again(library, dest)?, source, action })
}

/// Copies aside.
pub(crate) fn prepare_copy(library: &Library, from: &str, to: &str, loaded: &dyn Fn() -> Option<String>) -> Result<Prepared, ApiError> {
    let (Ends { source, dest, .. }, action) = Ends::check_copy(library, from, to, loaded)?;
    let target = copy_target(&dest, action);
    let prepared = || {
        let state = tree::fingerprint(&source.real)?;
        let aside = match action {
            FileAction::CreateDir => tree::copy(library, &source, target)?,
            _ if target.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            _ => Aside::make(target, |copy| copy_file(&source.real, copy))?,
        };
        Ok(Prepared { aside, target: target.to_owned(), source: state, follows: true })
    };
    prepared().map_err(|error: io::Error| system(&error))
}

/// Puts a copy of a file over or into the destination, or that of a folder to a new place. Times of files are kept.
pub(crate) fn copy(
    library: &Library,
    from: &str,
    to: &str,
    prepared: Prepared,
    loaded: &dyn Fn() -> Option<String>,
) -> Result<Relocated, ApiError> {
    let (Ends { source, dest, .. }, action) = Ends::check_copy(library, from, to, loaded)?;
    prepared.place(&source, copy_target(&dest, action))?;
    Ok(Relocated { dest: again(library, dest)?, source, action })
}

/// As with uploads: when a link stands there, the file that it leads to is replaced.
fn copy_target(dest: &RootPath, action: FileAction) -> &Path {
    if action == FileAction::CreateDir { &dest.entry } else { &dest.real }
}

fn copied_whole(source: &RootPath, dest: &RootPath, metadata: &fs::Metadata) -> io::Result<Prepared> {
    if metadata.is_dir() && dest.entry.symlink_metadata().is_ok() {
        return Err(rustix::io::Errno::EXIST.into());
    }
    // Nothing is copied that could not be removed afterwards.
    let emptied = source.entry.parent().into_iter().chain(metadata.is_dir().then_some(source.entry.as_path()));
    for folder in emptied {
        rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?;
    }
    let state = tree::fingerprint(&source.entry)?;
    // Whatever a copy would leave out must not be lost by the deletion that follows.
    let aside = match metadata.is_dir() {
        true => tree::copy_whole(source, &dest.entry)?,
        false => Aside::make(&dest.entry, |copy| copy_file(&source.entry, copy))?,
    };
    Ok(Prepared { aside, target: dest.entry.clone(), source: state, follows: false })
}

impl Prepared {
    /// Puts the copy in its place if that, and the source, are what they were.
    fn place(self, source: &RootPath, target: &Path) -> Result<(), ApiError> {
        let now = tree::fingerprint(if self.follows { &source.real } else { &source.entry });
        if target != self.target || !now.is_ok_and(|now| now == self.source) {
            return Err(ApiError::bad_request(format!("'{}' changed while it was copied", source.public())));
        }
        self.aside.place(target).map_err(|error| system(&error))
    }
}

/// The two ends of a move or copy, checked.
struct Ends {
    source: RootPath,
    dest: RootPath,
    /// The destination was a folder, so the thing goes into it under its own name.
    into: bool,
}

impl Ends {
    fn check(library: &Library, from: &str, to: &str, need: Need, loaded: &dyn Fn() -> Option<String>) -> Result<Self, ApiError> {
        let source = library.locate(from, need)?;
        let mut dest = writable_dest(library, to)?;
        if !source.real.exists() && source.entry.symlink_metadata().is_err() {
            return Err(ApiError::bad_request(format!("File {from} does not exist")));
        }
        let into = dest.real.is_dir() && dest.entry != source.entry;
        if into {
            dest = writable_dest(library, &format!("{to}/{}", source.relative.name()))?;
        }
        dest.relative.check_new().map_err(|fault| Refusal::from(fault).for_operation(to))?;
        if dest.real.exists() && library.holds_loaded(&dest, loaded().as_deref()) {
            return Err(in_use());
        }
        Ok(Self { source, dest, into })
    }

    fn check_move(library: &Library, from: &str, to: &str, loaded: &dyn Fn() -> Option<String>) -> Result<Self, ApiError> {
        let ends = Self::check(library, from, to, Need::Write, loaded)?;
        let Self { source, dest, into } = &ends;
        if !source.root.writable {
            return Err(ApiError::bad_request(format!("Source path is read-only, cannot move: {}", source.root.name)));
        }
        if library.holds_loaded(source, loaded().as_deref()) {
            return Err(in_use());
        }
        library.refuse_reserved_below(source)?;
        if source.relative.is_root() {
            return Err(ApiError::bad_request("Cannot move a root directory"));
        }
        if *into && dest.entry.symlink_metadata().is_ok() {
            return Err(ApiError::bad_request(format!("Destination path '{}' already exists", dest.public())));
        }
        Ok(ends)
    }

    fn check_copy(library: &Library, from: &str, to: &str, loaded: &dyn Fn() -> Option<String>) -> Result<(Self, FileAction), ApiError> {
        let is_folder = library.locate(from, Need::Read)?.real.is_dir();
        let ends = if is_folder { Self::check_new(library, from, to)? } else { Self::check(library, from, to, Need::Read, loaded)? };
        let Self { source, dest, .. } = &ends;
        if source.real == dest.real {
            return Err(ApiError::bad_request(format!("'{}' and '{}' are the same file", source.public(), dest.public())));
        }
        let action = match is_folder {
            true => FileAction::CreateDir,
            false if dest.real.exists() => FileAction::ModifyFile,
            false => FileAction::CreateFile,
        };
        Ok((ends, action))
    }

    /// For copies of folders, which never go over or into something.
    fn check_new(library: &Library, from: &str, to: &str) -> Result<Self, ApiError> {
        let (source, dest) = (library.locate(from, Need::Read)?, writable_dest(library, to)?);
        dest.relative.check_new().map_err(|fault| Refusal::from(fault).for_operation(to))?;
        if dest.entry.symlink_metadata().is_ok() {
            return Err(system(&rustix::io::Errno::EXIST.into()));
        }
        if dest.entry.starts_with(&source.real) {
            return Err(ApiError::bad_request("A folder cannot be copied into itself"));
        }
        Ok(Self { source, dest, into: false })
    }
}

fn writable_dest(library: &Library, text: &str) -> Result<RootPath, ApiError> {
    let dest = library.locate(text, Need::Write)?;
    if dest.root.writable { Ok(dest) } else { Err(ApiError::bad_request(format!("Destination path is read-only: {}", dest.root.name))) }
}

/// Copy, then delete, for links and where only the rename itself finds that it leads to another file system. When the deletion fails the copy
/// stays: nothing is lost.
fn move_across(source: &RootPath, dest: &RootPath) -> io::Result<()> {
    let metadata = source.entry.symlink_metadata()?;
    let aside = match metadata.is_symlink() {
        true => Aside::make(&dest.entry, |copy| std::os::unix::fs::symlink(fs::read_link(&source.entry)?, copy))?,
        false => copied_whole(source, dest, &metadata)?.aside,
    };
    aside.place(&dest.entry)?;
    remove_any(&source.entry)
}

/// The destination as it is now that something is there.
fn again(library: &Library, dest: RootPath) -> Result<RootPath, ApiError> {
    library.resolve(&dest.root.name, dest.relative, Need::Read).map_err(|refusal| refusal.for_operation(""))
}

#[cfg(test)]
mod tests;
