//! The scanning thread: compares the index with the disk at the start, then works off the queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use protocol::event::{FileAction, FilelistChange};

use super::queue::{Ask, Task};
use super::{Stamp, follow, scan};
use crate::disk;
use crate::library::Need;
use crate::list;
use crate::path::RelPath;
use crate::root::GCODES;
use crate::service::Files;

/// Niceness of the thread: prints and answers come first.
const NICENESS: i32 = 10;

/// Starts the thread; it ends when the file manager goes.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn start(files: &Arc<Files>) -> std::io::Result<()> {
    let (queue, files) = (files.scans.clone(), Arc::downgrade(files));
    std::thread::Builder::new().name("metadata".to_owned()).spawn(move || {
        if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
            tracing::debug!(%error, "the scanning thread keeps its priority");
        }
        let mut any = false;
        guarded(&files, |files| files.library.roots().iter().filter(|root| root.writable).for_each(|root| disk::sweep(&root.path)));
        guarded(&files, |files| any = compare(files));
        queue.start_is_given(any);
        while let Some(task) = queue.next() {
            match task {
                Task::Scan(job) => {
                    guarded(&files, |files| scan::scan(files, &job));
                    // Lets go whoever waits.
                    drop(job.waiters);
                }
                Task::Settled => guarded(&files, settled),
            }
        }
    })?;
    Ok(())
}

/// A file that breaks the scan must not end the thread.
fn guarded(files: &Weak<Files>, work: impl FnOnce(&Arc<Files>)) {
    let Some(files) = files.upgrade() else { return };
    if catch_unwind(AssertUnwindSafe(|| work(&files))).is_err() {
        tracing::error!("a scan ended abnormally");
    }
}

/// Asks for a scan of every file that is new or changed, and forgets those that are gone. No file is opened. True when there are files.
pub(crate) fn compare(files: &Files) -> bool {
    // A root that is gone may come back; what is known of its files is kept until then.
    let Some(root) = files.library.root(GCODES).filter(|root| root.path.is_dir()) else { return false };
    let mut known = files.metadata.stamps();
    let found = list::list(&files.library, &root);
    for file in &found {
        let Ok(path) = RelPath::parse(&file.path) else { continue };
        let real = files.library.resolve(GCODES, path.clone(), Need::Read);
        let now = real.ok().and_then(|real| std::fs::metadata(real.real).ok()).map(|metadata| Stamp::of(&metadata));
        let before = known.remove(path.as_str());
        if now.is_some() && now != before {
            drop(files.scans.ask(&path, Ask::Background));
        }
    }
    for gone in known.keys().filter_map(|path| RelPath::parse(path).ok()) {
        follow::forget(files, &gone);
    }
    !found.is_empty()
}

/// Clients that came while the start's files were scanned look again.
fn settled(files: &Arc<Files>) {
    let Ok(root) = files.library.resolve(GCODES, RelPath::default(), Need::Read) else { return };
    if let Ok(item) = files.library.item(&root) {
        files.announce(FilelistChange { action: FileAction::RootUpdate, item, source_item: None });
    }
}
