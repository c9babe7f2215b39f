//! The thread that watches, and the one that looks from time to time where watching is off.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use inotify::{EventMask, Inotify};
use parking_lot::Mutex;
use protocol::event::{FileAction, FilelistChange};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

use super::Place;
use super::apply::apply;
use super::gather::{Event, Gather, Kind};
use super::look::Look;
use super::mounts::Mounts;
use super::tree::Tree;
use crate::library::Need;
use crate::path::RelPath;
use crate::root::{CONFIG, GCODES};
use crate::service::Files;
use crate::settings::Observer;

/// Roots that are watched when clients may change them.
const WATCHED: &[&str] = &[GCODES, CONFIG];
/// Room for events that are read at once.
const EVENT_BYTES: usize = 16 * 1024;

/// Tells the thread to end, and others that it works.
pub(crate) struct Signal {
    stop: Mutex<Option<Arc<OwnedFd>>>,
    ready: AtomicBool,
}

impl Default for Signal {
    fn default() -> Self {
        // Without it there is no way to end the thread, so it does not begin to wait.
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
        Self { stop: Mutex::new(stop.map(Arc::new)), ready: AtomicBool::new(false) }
    }
}

impl Signal {
    /// Ends the thread.
    pub(crate) fn stop(&self) {
        if let Some(stop) = self.stop.lock().take() {
            // Cannot be full: it is written once.
            let _ = rustix::io::write(&stop, &1u64.to_ne_bytes());
        }
    }

    /// True when changes are seen from now on.
    #[cfg(test)]
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Waits until a source has something, the time is over, or the end has come (false).
    fn wait(&self, source: Option<&Inotify>, mounts: Option<&File>, until: Option<Instant>) -> bool {
        // Our own share of it: it must not be closed while we wait for it.
        let Some(stop) = self.stop.lock().clone() else { return false };
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut waited: Vec<_> = source.map(|source| PollFd::new(source, PollFlags::IN)).into_iter().collect();
        waited.extend(mounts.map(|mounts| PollFd::new(mounts, PollFlags::PRI)));
        waited.push(PollFd::new(&stop, PollFlags::IN));
        match rustix::event::poll(&mut waited, timeout.as_ref()) {
            Ok(_) => waited.last().is_none_or(|stop| stop.revents().is_empty()),
            Err(error) => error == rustix::io::Errno::INTR,
        }
    }
}

/// Starts the thread; it ends when the file manager goes.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn start(files: &Arc<Files>) -> io::Result<()> {
    let (signal, observer) = (files.signal.clone(), files.settings.options.file_system_observer);
    let files = Arc::downgrade(files);
    std::thread::Builder::new().name("observer".to_owned()).spawn(move || {
        let watching = match observer {
            Observer::Inotify => {
                let watching = watch(&files, &signal);
                if let Some(manager) = files.upgrade() {
                    manager.news.set_watched(false);
                }
                watching
            }
            Observer::None => {
                only_look(&files, &signal);
                Ok(())
            }
        };
        if let (Err(error), Some(manager)) = (watching, files.upgrade()) {
            manager.warn(format!("Changes by other programs are seen late: inotify: {error}"));
            drop(manager);
            only_look(&files, &signal);
        }
    })?;
    Ok(())
}

fn watched(files: &Files) -> Vec<Place> {
    let writable = |name: &&&str| files.library.root(name).is_some_and(|root| root.writable);
    WATCHED.iter().filter(writable).map(|name| Place { root: (*name).to_owned(), path: RelPath::default() }).collect()
}

/// What is watched, and what is gathered.
struct Watch {
    inotify: Inotify,
    tree: Tree,
    gather: Gather,
}

impl Watch {
    fn begin(files: &Files) -> io::Result<Self> {
        let mut watch = Self { inotify: Inotify::init()?, tree: Tree::default(), gather: Gather::default() };
        watched(files).iter().for_each(|root| watch.tree.add(files, &watch.inotify, root));
        Ok(watch)
    }

    /// True when the kernel tells of every change of a gcode file, none of the roots that are watched being lost.
    fn sees_all(&self, files: &Files) -> bool {
        self.tree.is_whole() && files.library.root(GCODES).is_some_and(|root| root.writable)
    }

    fn lost_roots(&self, files: &Files) -> Vec<Place> {
        watched(files).into_iter().filter(|root| !self.tree.has(root)).collect()
    }
}

fn watch(files: &Weak<Files>, signal: &Signal) -> io::Result<()> {
    let Some(manager) = files.upgrade() else { return Ok(()) };
    let (mut watch, mut mounts, mut look) = (Watch::begin(&manager)?, Mounts::begin(&manager), Look::begin(&manager));
    let mut lost_due = watch.lost_roots(&manager).first().map(|_| Instant::now());
    if !watch.tree.is_whole() {
        look.look(&manager, &watched(&manager));
    }
    manager.news.set_watched(lost_due.is_none() && watch.sees_all(&manager));
    drop(manager);
    signal.ready.store(true, Ordering::Release);
    let mut buffer = vec![0; EVENT_BYTES];
    loop {
        let next = [watch.gather.next_due(), (!watch.tree.is_whole()).then_some(look.due()), lost_due].into_iter().flatten().min();
        if !signal.wait(Some(&watch.inotify), mounts.source(), next) {
            return Ok(());
        }
        let Some(files) = files.upgrade() else { return Ok(()) };
        files.news.add();
        let all = read(&files, &mut watch, &mut buffer)?;
        let remounted = mounts.has_changed(&files);
        if !all || watch.gather.is_full() || remounted {
            tracing::info!(remounted, "too much has changed to tell it one by one: everything is looked at again");
            // Anew: after lost events nobody knows which folder a watch stands for.
            watch = Watch::begin(&files)?;
            watched(&files).iter().for_each(|root| refresh(&files, root));
        }
        for noted in watch.gather.due(Instant::now()) {
            if noted.action == FileAction::DeleteDir {
                watch.tree.remove(&watch.inotify, &noted.at);
            }
            apply(&files, &noted);
        }
        if !watch.tree.is_whole() {
            look.look(&files, &watched(&files));
        }
        if lost_due.is_none_or(|due| due <= Instant::now()) {
            lost_due = find_roots(&files, &mut watch).then(|| Instant::now() + files.settings.observing.lost_root_period);
        }
        files.news.set_watched(lost_due.is_none() && watch.sees_all(&files));
    }
}

/// Watches roots that are there again. True when some are still gone.
fn find_roots(files: &Files, watch: &mut Watch) -> bool {
    let mut gone = false;
    for root in watch.lost_roots(files) {
        watch.tree.add(files, &watch.inotify, &root);
        if watch.tree.has(&root) {
            refresh(files, &root);
        } else {
            gone = true;
        }
    }
    gone
}

/// Takes in what the kernel has; false when it has lost some.
fn read(files: &Files, watch: &mut Watch, buffer: &mut [u8]) -> io::Result<bool> {
    let Watch { inotify, tree, gather } = watch;
    let mut folders = Vec::new();
    let events = match inotify.read_events(buffer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
        other => other?,
    };
    let (mut all, mut moved) = (true, Vec::new());
    for event in events {
        if event.mask.contains(EventMask::Q_OVERFLOW) {
            all = false;
        } else if event.mask.contains(EventMask::IGNORED) {
            tree.ended(&event.wd);
        } else if event.mask.contains(EventMask::MOVE_SELF) {
            moved.push(event.wd.clone());
        } else if let Some((at, what)) = tree.understand(files, &event) {
            match what {
                Event::Made(Kind::Folder) => folders.push(at.clone()),
                Event::Arrived(Kind::Folder, cookie) => match gather.left_from(cookie) {
                    Some(from) => tree.rename(from, &at),
                    None => folders.push(at.clone()),
                },
                _ => {}
            }
            gather.event(Instant::now(), at, what);
        }
    }
    moved.iter().for_each(|watch| tree.moved(inotify, watch));
    // What was made in a folder before it was watched is found when the folder is told.
    folders.iter().for_each(|folder| tree.add(files, inotify, folder));
    Ok(all)
}

/// Looks from time to time, where no events come.
fn only_look(files: &Weak<Files>, signal: &Signal) {
    let Some(manager) = files.upgrade() else { return };
    let mut look = Look::begin(&manager);
    look.look(&manager, &watched(&manager));
    drop(manager);
    signal.ready.store(true, Ordering::Release);
    while signal.wait(None, None, Some(look.due())) {
        let Some(files) = files.upgrade() else { break };
        look.look(&files, &watched(&files));
    }
}

/// Tells clients to look again, and scans what is new.
pub(super) fn refresh(files: &Files, root: &Place) {
    if root.root == GCODES {
        crate::metadata::compare(files);
    }
    let found = files.library.resolve(&root.root, RelPath::default(), Need::Read).ok();
    if let Some(item) = found.and_then(|root| files.library.item(&root).ok()) {
        files.announce(FilelistChange { action: FileAction::RootUpdate, item, source_item: None });
    }
}
