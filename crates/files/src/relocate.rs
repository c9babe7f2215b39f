//! Moving and copying, by request (wire/2-files-jobs.md section 1.7). Blocks; the caller holds the lock of all changes.

use std::fs;
use std::io;

use protocol::ApiError;
use protocol::event::FileAction;
use rustix::fs::Access;

use crate::disk::{copy_beside, remove_any, sync_parent};
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

/// Renames, or copies and deletes across file systems. A folder as destination takes the source in; a file is replaced.
pub(crate) fn relocate(library: &Library, from: &str, to: &str, loaded: &dyn Fn() -> Option<String>) -> Result<Relocated, ApiError> {
    let Ends { source, dest, into } = Ends::check(library, from, to, Need::Write, loaded)?;
    if !source.root.writable {
        return Err(ApiError::bad_request(format!("Source path is read-only, cannot move: {}", source.root.name)));
    }
    if library.holds_loaded(&source, loaded().as_deref()) {
        return Err(in_use());
    }
    library.refuse_reserved_below(&source)?;
    if source.relative.is_root() {
        return Err(ApiError::bad_request("Cannot move a root directory"));
    }
    if into && dest.entry.symlink_metadata().is_ok() {
        return Err(ApiError::bad_request(format!("Destination path '{}' already exists", dest.public())));
    }
    let action = if source.real.is_dir() { FileAction::MoveDir } else { FileAction::MoveFile };
    let moved = fs::rename(&source.entry, &dest.entry).or_else(|error| match error.kind() {
        io::ErrorKind::CrossesDevices => move_across(&source, &dest),
        _ => Err(error),
    });
    moved.and_then(|()| sync_parent(&dest.entry)).and_then(|()| sync_parent(&source.entry)).map_err(|error| system(&error))?;
    Ok(Relocated { dest: again(library, dest)?, source, action })
}

/// Copies a file over or into the destination, or a folder to a new place. Times of files are kept.
pub(crate) fn copy(library: &Library, from: &str, to: &str, loaded: &dyn Fn() -> Option<String>) -> Result<Relocated, ApiError> {
    let source_is_folder = library.locate(from, Need::Read)?.real.is_dir();
    let ends = if source_is_folder { Ends::check_new(library, from, to)? } else { Ends::check(library, from, to, Need::Read, loaded)? };
    let Ends { source, dest, .. } = ends;
    let action = match source_is_folder {
        true => FileAction::CreateDir,
        false if dest.real.exists() => FileAction::ModifyFile,
        false => FileAction::CreateFile,
    };
    if source.real == dest.real {
        return Err(ApiError::bad_request(format!("'{}' and '{}' are the same file", source.public(), dest.public())));
    }
    let copied = match action {
        FileAction::CreateDir => tree::copy(library, &source, &dest.entry),
        _ if dest.real.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // As with uploads: when a link stands there, the file that it leads to is replaced.
        _ => copy_beside(&source.real, &dest.real),
    };
    copied.map_err(|error| system(&error))?;
    Ok(Relocated { dest: again(library, dest)?, source, action })
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

/// Copy, then delete. When the deletion fails the copy stays: nothing is lost.
fn move_across(source: &RootPath, dest: &RootPath) -> io::Result<()> {
    let metadata = source.entry.symlink_metadata()?;
    // Nothing is copied that could not be removed afterwards.
    let emptied = source.entry.parent().into_iter().chain(metadata.is_dir().then_some(source.entry.as_path()));
    for folder in emptied {
        rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?;
    }
    if metadata.is_dir() {
        if dest.entry.symlink_metadata().is_ok() {
            return Err(rustix::io::Errno::EXIST.into());
        }
        // Whatever a copy would leave out must not be lost by the deletion that follows.
        tree::copy_whole(source, &dest.entry)?;
    } else if metadata.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(&source.entry)?, &dest.entry)?;
    } else {
        copy_beside(&source.entry, &dest.entry)?;
    }
    remove_any(&source.entry)
}

/// The destination as it is now that something is there.
fn again(library: &Library, dest: RootPath) -> Result<RootPath, ApiError> {
    library.resolve(&dest.root.name, dest.relative, Need::Read).map_err(|refusal| refusal.for_operation(""))
}

#[cfg(test)]
mod tests;
