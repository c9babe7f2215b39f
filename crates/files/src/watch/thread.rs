//! The thread that watches, and the one that looks from time to time where watching is off.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use inotify::{EventMask, Inotify};
use parking_lot::Mutex;
use protocol::event::{FileAction, FilelistChange};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

use super::Place;
use super::apply::apply;
use super::gather::{Event, Gather, Kind};
use super::tree::Tree;
use crate::library::Need;
use crate::list;
use crate::path::RelPath;
use crate::root::{CONFIG, GCODES};
use crate::service::Files;
use crate::settings::Observer;

/// Roots that are watched when clients may change them.
const WATCHED: &[&str] = &[GCODES, CONFIG];
/// How often the roots are looked at when nothing tells of changes.
const PERIOD: Duration = Duration::from_secs(60);
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

    /// Waits until `source` has something, the time is over, or the end has come (false).
    fn wait(&self, source: Option<&Inotify>, until: Option<Instant>) -> bool {
        // Our own share of it: it must not be closed while we wait for it.
        let Some(stop) = self.stop.lock().clone() else { return false };
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut waited: Vec<_> = source.map(|source| PollFd::new(source, PollFlags::IN)).into_iter().collect();
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
            Observer::Inotify => watch(&files, &signal),
            Observer::None => {
                look(&files, &signal);
                Ok(())
            }
        };
        if let (Err(error), Some(manager)) = (watching, files.upgrade()) {
            manager.warn(format!("Changes by other programs are seen late: inotify: {error}"));
            drop(manager);
            look(&files, &signal);
        }
    })?;
    Ok(())
}

fn watched(files: &Files) -> Vec<Place> {
    let writable = |name: &&&str| files.library.root(name).is_some_and(|root| root.writable);
    WATCHED.iter().filter(writable).map(|name| Place { root: (*name).to_owned(), path: RelPath::default() }).collect()
}

fn watch(files: &Weak<Files>, signal: &Signal) -> io::Result<()> {
    let mut inotify = Inotify::init()?;
    let (mut tree, mut gather) = (Tree::default(), Gather::default());
    if let Some(files) = files.upgrade() {
        watched(&files).iter().for_each(|root| tree.add(&files, &inotify, root));
    }
    signal.ready.store(true, Ordering::Release);
    let mut buffer = vec![0; EVENT_BYTES];
    while signal.wait(Some(&inotify), gather.next_due()) {
        let Some(files) = files.upgrade() else { break };
        let all = read(&files, &mut inotify, &mut buffer, &mut tree, &mut gather)?;
        if !all || gather.is_full() {
            tracing::warn!("too many changes at once: everything is looked at again");
            gather = Gather::default();
            for root in watched(&files) {
                tree.add(&files, &inotify, &root);
                refresh(&files, &root);
            }
        }
        for noted in gather.due(Instant::now()) {
            if noted.action == FileAction::DeleteDir {
                tree.remove(&inotify, &noted.at);
            }
            apply(&files, &noted);
        }
    }
    Ok(())
}

/// Takes in what the kernel has; false when it has lost some.
fn read(files: &Files, inotify: &mut Inotify, buffer: &mut [u8], tree: &mut Tree, gather: &mut Gather) -> io::Result<bool> {
    let mut folders = Vec::new();
    let events = match inotify.read_events(buffer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
        other => other?,
    };
    let mut all = true;
    for event in events {
        if event.mask.contains(EventMask::Q_OVERFLOW) {
            all = false;
        } else if event.mask.contains(EventMask::IGNORED) {
            tree.ended(&event.wd);
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
    // What was made in a folder before it was watched is found when the folder is told.
    folders.iter().for_each(|folder| tree.add(files, inotify, folder));
    Ok(all)
}

/// Compares the roots with what they were, where no events come.
fn look(files: &Weak<Files>, signal: &Signal) {
    signal.ready.store(true, Ordering::Release);
    let mut before = None;
    while signal.wait(None, Some(Instant::now() + if before.is_none() { Duration::ZERO } else { PERIOD })) {
        let Some(files) = files.upgrade() else { break };
        let now: Vec<_> = watched(&files).into_iter().map(|root| (fingerprint(&files, &root), root)).collect();
        for (print, root) in &now {
            if before.as_ref().is_some_and(|before: &Vec<(u64, Place)>| !before.iter().any(|known| known == &(*print, root.clone()))) {
                refresh(&files, root);
            }
        }
        before = Some(now);
    }
}

pub(super) fn fingerprint(files: &Files, root: &Place) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files.library.root(&root.root).iter().flat_map(|root| list::list(&files.library, root)) {
        (file.path, file.size, file.modified.to_bits()).hash(&mut hasher);
    }
    hasher.finish()
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
