//! Making and deleting folders (wire/2-files-jobs.md section 1.7). Blocks; the caller holds the lock of all changes.

use std::fs;

use protocol::event::FileItem;
use protocol::{ApiError, ErrorKind};

use crate::disk::sync_parent;
use crate::library::{Library, Need, RootPath};
use crate::refusal::{Refusal, in_use, system};

/// Makes a folder; its parent must be there.
pub(crate) fn create(library: &Library, text: &str) -> Result<RootPath, ApiError> {
    let path = writable(library, text)?;
    path.relative.check_new().map_err(|fault| Refusal::from(fault).for_operation(text))?;
    // The entry and not what it leads to: a broken link is not filled in.
    fs::create_dir(&path.entry).and_then(|()| sync_parent(&path.entry)).map_err(|error| system(&error))?;
    Ok(path)
}

/// Deletes a folder; only with `force` when something is in it. Of a link to a folder, only the link goes.
pub(crate) fn delete(library: &Library, text: &str, force: bool, loaded: Option<&str>) -> Result<FileItem, ApiError> {
    let path = writable(library, text)?;
    if path.relative.is_root() {
        return Err(ApiError::bad_request("Cannot delete root directory"));
    }
    if !path.real.is_dir() {
        return Err(ApiError::bad_request(format!("Directory does not exist ({text})")));
    }
    let linked = path.entry != path.real;
    if (force || linked) && library.holds_loaded(&path, loaded) {
        return Err(in_use());
    }
    let deleted = match () {
        () if linked => fs::remove_file(&path.entry),
        () if force => {
            library.refuse_reserved_below(&path)?;
            fs::remove_dir_all(&path.entry)
        }
        () => fs::remove_dir(&path.entry),
    };
    deleted.and_then(|()| sync_parent(&path.entry)).map_err(|error| system(&error))?;
    Ok(path.deleted_item())
}

fn writable(library: &Library, text: &str) -> Result<RootPath, ApiError> {
    let path = library.locate(text, Need::Write)?;
    if path.root.writable { Ok(path) } else { Err(ApiError::new(ErrorKind::NotAllowed, "Operation Not Supported")) }
}

#[cfg(test)]
mod tests;
