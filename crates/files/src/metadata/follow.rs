//! What changes of files mean for their metadata: records and thumbnails go with their files. Blocks; the caller holds the lock of all changes.

use protocol::event::{FileAction, FilelistChange};

use super::thumbnails;
use crate::kind;
use crate::list;
use crate::path::RelPath;
use crate::root::GCODES;
use crate::service::Files;

/// Brings the records up to date after a change, and returns the files that are to be scanned before clients are told of it.
pub(crate) fn follow(files: &Files, change: &FilelistChange) -> Vec<RelPath> {
    let here = |root: &str, path: &str| RelPath::parse(path).ok().filter(|_| root == GCODES);
    let item = here(&change.item.root, &change.item.path);
    let source = change.source_item.as_ref().and_then(|source| here(&source.root, &source.path));
    match (change.action, source, item) {
        (FileAction::CreateFile | FileAction::ModifyFile, _, Some(path)) => only_gcode(path),
        (FileAction::CreateDir, _, Some(folder)) => below(files, &folder),
        (FileAction::DeleteFile, _, Some(path)) => forget(files, &path),
        (FileAction::DeleteDir, _, Some(folder)) => forget_tree(files, &folder),
        (FileAction::MoveFile, Some(from), Some(to)) => move_file(files, &from, to),
        (FileAction::MoveFile, Some(from), None) => forget(files, &from),
        (FileAction::MoveFile, None, Some(to)) => only_gcode(to),
        (FileAction::MoveDir, Some(from), Some(to)) => {
            files.metadata.rename_tree(&from, &to);
            Vec::new()
        }
        (FileAction::MoveDir, Some(from), None) => forget_tree(files, &from),
        (FileAction::MoveDir, None, Some(to)) => below(files, &to),
        _ => Vec::new(),
    }
}

fn move_file(files: &Files, from: &RelPath, to: RelPath) -> Vec<RelPath> {
    let Some(moved) = files.metadata.get(from) else { return only_gcode(to) };
    if !kind::is_gcode(to.name()) {
        return forget(files, from);
    }
    let images = moved.thumbnails();
    if let Some(replaced) = files.metadata.get(&to) {
        let replaced = replaced.thumbnails();
        let same_folder = from.parent() == to.parent();
        let gone = replaced.iter().filter(|old| !same_folder || images.iter().all(|image| image.relative_path != old.relative_path));
        thumbnails::remove(&files.library, &to.parent(), gone);
    }
    files.metadata.rename(from, &to);
    match thumbnails::relocate(&files.library, &from.parent(), &to.parent(), &images) {
        Ok(()) => Vec::new(),
        Err(error) => {
            tracing::warn!(file = %to, %error, "thumbnails could not be moved");
            Vec::new()
        }
    }
}

pub(super) fn forget(files: &Files, path: &RelPath) -> Vec<RelPath> {
    if let Some(record) = files.metadata.get(path) {
        thumbnails::remove(&files.library, &path.parent(), record.thumbnails().iter());
        files.metadata.remove(path);
    }
    Vec::new()
}

fn forget_tree(files: &Files, folder: &RelPath) -> Vec<RelPath> {
    files.metadata.remove_tree(folder);
    Vec::new()
}

fn only_gcode(path: RelPath) -> Vec<RelPath> {
    if kind::is_gcode(path.name()) { vec![path] } else { Vec::new() }
}

/// All gcode files of a folder.
fn below(files: &Files, folder: &RelPath) -> Vec<RelPath> {
    let Some(root) = files.library.root(GCODES) else { return Vec::new() };
    let found = list::below(&files.library, &root, folder);
    found.iter().filter_map(|file| RelPath::parse(&file.path).ok()).collect()
}
