//! Which folders are watched, and what an event of the kernel means in terms of roots. Blocks.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask};

use super::Place;
use super::gather::{Event, Kind};
use crate::library::{Need, is_own};
use crate::list::MAX_LIST_DEPTH;
use crate::path::RelPath;
use crate::root::Permissions;
use crate::service::Files;

/// File systems that others change without our kernel knowing: NFS, SMB (three kinds), FUSE, 9p, Ceph, AFS.
const REMOTE: &[u32] = &[0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546, 0x0102_1997, 0x00C3_6400, 0x5346_414F];

/// The folders that are watched.
#[derive(Default)]
pub(super) struct Tree {
    folders: HashMap<WatchDescriptor, Place>,
    /// There are folders of which the kernel does not tell everything.
    is_partial: bool,
}

impl Tree {
    /// Watches a folder and those below it, links to folders included; hidden and reserved ones not. What is watched already stays.
    pub(super) fn add(&mut self, files: &Files, inotify: &Inotify, from: &Place) {
        let mask = WatchMask::CREATE
            | WatchMask::DELETE
            | WatchMask::MODIFY
            // Only that somebody must look again: a time of modification may have been set.
            | WatchMask::ATTRIB
            | WatchMask::MOVED_FROM
            | WatchMask::MOVED_TO
            | WatchMask::CLOSE_WRITE
            | WatchMask::MOVE_SELF
            | WatchMask::ONLYDIR;
        let mut waiting = vec![(from.clone(), 0)];
        while let Some((place, depth)) = waiting.pop() {
            let Ok(path) = files.library.resolve(&place.root, place.path.clone(), Need::Read) else { continue };
            if files.library.permissions(&path.root, &path.real) == Permissions::Nothing {
                continue;
            }
            self.is_partial |= is_remote(&path.real);
            let watched = match self.folders.len() < files.settings.observing.max_watched {
                true => inotify.watches().add(&path.real, mask),
                false => Err(io::Error::other("more folders than can be watched")),
            };
            match watched {
                Ok(watch) => match self.folders.get(&watch) {
                    Some(known) if *known != place => {
                        tracing::info!(known = %known.path, again = %place.path, "a folder is reached twice; it is watched under its first name");
                        continue;
                    }
                    Some(_) => {}
                    None => drop(self.folders.insert(watch, place.clone())),
                },
                // It went away meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.is_partial = true;
                    if files.settings.options.enable_observer_warnings {
                        files.warn(format!("Changes in {} by other programs are seen late: {error}", path.real.display()));
                    }
                    return;
                }
            }
            if depth == MAX_LIST_DEPTH {
                continue;
            }
            let entries = fs::read_dir(&path.real).into_iter().flatten().filter_map(Result::ok);
            for name in entries.filter(|entry| entry.path().is_dir()).filter_map(|entry| entry.file_name().into_string().ok()) {
                if !name.starts_with('.')
                    && let Some(inner) = inside(&place, &name)
                {
                    waiting.push((inner, depth + 1));
                }
            }
        }
    }

    /// True when the kernel tells of every change.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_partial
    }

    /// True when this very folder is watched.
    pub(super) fn has(&self, place: &Place) -> bool {
        self.folders.values().any(|known| known == place)
    }

    /// A folder has another name.
    pub(super) fn rename(&mut self, from: &Place, to: &Place) {
        for place in self.folders.values_mut() {
            if place == from {
                *place = to.clone();
            } else if place.is_below(from) {
                let rest = place.path.as_str()[from.path.as_str().len()..].to_owned();
                if let Ok(path) = RelPath::parse(&format!("{}{rest}", to.path)) {
                    *place = Place { root: to.root.clone(), path };
                }
            }
        }
    }

    /// A folder is not ours any more.
    pub(super) fn remove(&mut self, inotify: &Inotify, folder: &Place) {
        self.folders.retain(|watch, place| {
            let goes = place == folder || place.is_below(folder);
            if goes {
                // Fails when the folder is deleted, which ends the watch as well.
                let _ = inotify.watches().remove(watch.clone());
            }
            !goes
        });
    }

    /// The kernel has ended a watch.
    pub(super) fn ended(&mut self, watch: &WatchDescriptor) {
        self.folders.remove(watch);
    }

    /// A watched folder has moved. Of others their parents tell; a root is not at its place any more.
    pub(super) fn moved(&mut self, inotify: &Inotify, watch: &WatchDescriptor) {
        if let Some(root) = self.folders.get(watch).filter(|place| place.path.is_root()).cloned() {
            self.remove(inotify, &root);
        }
    }

    /// What an event says, and where; nothing for what clients do not see.
    pub(super) fn understand(&self, files: &Files, event: &inotify::Event<&std::ffi::OsStr>) -> Option<(Place, Event)> {
        let name = event.name?.to_str().filter(|name| !is_own(name))?;
        let at = inside(self.folders.get(&event.wd)?, name)?;
        let mask = event.mask;
        let kind = || match mask.contains(EventMask::ISDIR) {
            true => Kind::Folder,
            false => kind_of(files, &at),
        };
        let gone = || if mask.contains(EventMask::ISDIR) { Kind::Folder } else { Kind::File };
        let understood = match () {
            () if mask.contains(EventMask::CREATE) => Event::Made(kind()),
            () if mask.contains(EventMask::MODIFY) => Event::Written,
            () if mask.contains(EventMask::CLOSE_WRITE) => Event::Closed,
            () if mask.contains(EventMask::DELETE) => Event::Gone(gone()),
            () if mask.contains(EventMask::MOVED_FROM) => Event::Left(gone(), event.cookie),
            () if mask.contains(EventMask::MOVED_TO) => Event::Arrived(kind(), event.cookie),
            () => return None,
        };
        let is_folder = matches!(
            understood,
            Event::Made(Kind::Folder) | Event::Gone(Kind::Folder) | Event::Left(Kind::Folder, _) | Event::Arrived(Kind::Folder, _)
        );
        (!is_folder || !name.starts_with('.')).then_some((at, understood))
    }
}

fn is_remote(folder: &Path) -> bool {
    // The number is 32 bits wide, whatever type the system has for it.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    rustix::fs::statfs(folder).is_ok_and(|about| REMOTE.contains(&(about.f_type as u32)))
}

/// What stands at a place that the kernel does not call a folder.
fn kind_of(files: &Files, at: &Place) -> Kind {
    let Ok(path) = files.library.resolve(&at.root, at.path.clone(), Need::Read) else { return Kind::File };
    match path.entry.is_symlink() {
        true if path.real.is_dir() => Kind::Folder,
        true => Kind::Link,
        false => Kind::File,
    }
}

fn inside(folder: &Place, name: &str) -> Option<Place> {
    let path = RelPath::parse(&format!("{}/{name}", folder.path)).ok()?;
    Some(Place { root: folder.root.clone(), path })
}
