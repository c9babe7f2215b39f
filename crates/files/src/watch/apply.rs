//! A change of somebody else, from note to notification: metadata first. Blocks.

use protocol::event::{FileAction, FilelistChange};

use super::gather::Noted;
use super::{Place, Seen};
use crate::library::{Need, RootPath};
use crate::metadata::{Ask, follow};
use crate::service::Files;

/// Tells clients of a change, unless a request has made it.
pub(super) fn apply(files: &Files, noted: &Noted) {
    let Ok(path) = find(files, &noted.at) else { return };
    let (mut change, due) = {
        // Under the lock: the request that made a change has left word of it by now.
        let _changes = files.changes.blocking_lock();
        let Some(change) = to_tell(files, noted, &path) else { return };
        let due = follow(files, &change);
        (change, due)
    };
    for scan in due.iter().map(|path| files.scans.ask(path, Ask::Now)).collect::<Vec<_>>() {
        // The scan is over when the sender goes.
        let _ = scan.blocking_recv();
    }
    if !due.is_empty()
        && let Ok(item) = files.library.item(&path)
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
