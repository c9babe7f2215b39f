//! A change of somebody else, from note to notification: metadata first. Blocks.

use protocol::event::{FileAction, FilelistChange};

use super::gather::Noted;
use super::{Place, Seen};
use crate::kind;
use crate::library::{Need, RootPath};
use crate::metadata::{Ask, follow};
use crate::root::GCODES;
use crate::service::Files;
use crate::upload::unpack_found;

/// Tells clients of a change, unless a request has made it.
pub(super) fn apply(files: &Files, noted: &Noted) {
    let Ok(path) = find(files, &noted.at) else { return };
    if is_container(noted, &path) {
        return unpacked(files, noted, &path);
    }
    tell(files, &path, || to_tell(files, noted, &path));
}

/// A container that somebody put among the gcode files, and not a link to one.
fn is_container(noted: &Noted, path: &RootPath) -> bool {
    let arrived = matches!(noted.action, FileAction::CreateFile | FileAction::ModifyFile | FileAction::MoveFile);
    arrived && path.root.name == GCODES && kind::is_ufp(path.relative.name()) && path.entry == path.real && path.real.is_file()
}

/// Its gcode file is told instead of it. Nothing is told of a broken one; it stays for its owner to look at.
fn unpacked(files: &Files, noted: &Noted, container: &RootPath) {
    if files.own.is_ours(&noted.at, Seen::at(&container.real)) {
        return;
    }
    match unpack_found(files, container) {
        // It is ours on the disk, yet no request tells of it.
        Ok(gcode) => tell(files, &gcode, || {
            let item = files.library.item(&gcode).ok()?;
            Some(FilelistChange { action: FileAction::CreateFile, item, source_item: None })
        }),
        Err(error) => tracing::warn!(file = %container.relative, %error, "a UFP container was not unpacked"),
    }
}

fn tell(files: &Files, path: &RootPath, change: impl FnOnce() -> Option<FilelistChange>) {
    let (mut change, due) = {
        // Under the lock: the request that made a change has left word of it by now.
        let _changes = files.changes.blocking_lock();
        let Some(change) = change() else { return };
        let due = follow(files, &change);
        (change, due)
    };
    for scan in due.iter().map(|path| files.scans.ask(path, Ask::Now)).collect::<Vec<_>>() {
        // The scan is over when the sender goes.
        let _ = scan.blocking_recv();
    }
    if !due.is_empty()
        && let Ok(item) = files.library.item(path)
    {
        change.item = item;
    }
    files.announce(change);
}

fn to_tell(files: &Files, noted: &Noted, path: &RootPath) -> Option<FilelistChange> {
    let now = Seen::at(&path.real);
    if files.own.is_ours(&noted.at, now) {
        return None;
    }
    let item = match noted.action {
        FileAction::DeleteFile | FileAction::DeleteDir => {
            // Something is there again: that is told by itself.
            let absent = path.entry.symlink_metadata().is_err();
            Some(path.deleted_item()).filter(|_| absent)?
        }
        _ => files.library.item(path).ok()?,
    };
    let source_item = noted.from.as_ref().and_then(|from| find(files, from).ok()).map(|from| from.source_item());
    Some(FilelistChange { action: noted.action, item, source_item })
}

fn find(files: &Files, at: &Place) -> Result<RootPath, crate::refusal::Refusal> {
    files.library.resolve(&at.root, at.path.clone(), Need::Read)
}
