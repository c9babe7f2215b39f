//! Deleting a file (wire/2-files-jobs.md section 1.5). Blocks; the caller holds the lock of all changes.

use std::fs;

use protocol::event::FileItem;
use protocol::{ApiError, ErrorKind};

use crate::disk::sync_parent;
use crate::library::{Library, Need};
use crate::refusal::failed;

/// Removes the file and returns the item that answers and notifications carry. `loaded`: the loaded file, relative to `gcodes`.
pub(crate) fn delete_file(library: &Library, text: &str, loaded: Option<String>) -> Result<FileItem, ApiError> {
    let path = library.locate(text, Need::Write)?;
    if !path.root.writable {
        return Err(ApiError::new(ErrorKind::NotAllowed, format!("Path not available for DELETE: {text}")));
    }
    if !path.real.is_file() {
        return Err(ApiError::bad_request(format!("Invalid file path: {text}")));
    }
    if library.loaded(loaded).as_ref() == Some(&path.real) {
        return Err(ApiError::forbidden("File currently in use"));
    }
    // The entry, not what it leads to: deleting a link leaves the other file alone.
    fs::remove_file(&path.entry)
        .and_then(|()| sync_parent(&path.entry))
        .map_err(|error| failed(ErrorKind::Internal, "Unable to delete file", &error))?;
    Ok(path.deleted_item())
}

#[cfg(test)]
mod tests;
