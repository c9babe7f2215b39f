//! From single events of the kernel to changes that clients understand: pairs of moves, finished writes, deletions and new folders gathered.
//! Pure: time is an argument. Source: wire/2-files-jobs.md section 2.1.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use protocol::event::FileAction;

use crate::path::RelPath;

/// Quiet time after which deletions and new folders are told.
const QUIET: Duration = Duration::from_millis(250);
/// Longest time that a folder in which things go on happening is held back.
const LONGEST: Duration = Duration::from_secs(5);
/// Time after which something that moved away without arriving counts as deleted.
const LOST: Duration = Duration::from_secs(1);
/// Changes that may be gathered at once; when there are more, everything is looked at again.
pub(super) const MAX_GATHERED: usize = 10_000;

/// A place in a root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) root: String,
    pub(crate) path: RelPath,
}

impl Place {
    /// True for what lies below `folder`, at any depth.
    pub(super) fn is_below(&self, folder: &Self) -> bool {
        let rest = self.path.as_str().strip_prefix(folder.path.as_str());
        self.root == folder.root && (folder.path.is_root() || rest.is_some_and(|rest| rest.starts_with('/')))
    }

    fn has_parent_of(&self, other: &Self) -> bool {
        self.root == other.root && self.path.parent() == other.path.parent()
    }
}

/// What a place holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    /// A folder, or a link to one.
    Folder,
    /// A link to something else: complete as soon as it is there.
    Link,
}

/// An event of the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    Made(Kind),
    Written,
    Closed,
    Gone(Kind),
    Left(Kind, u32),
    Arrived(Kind, u32),
}

/// A change to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) action: FileAction,
    pub(super) at: Place,
    pub(super) from: Option<Place>,
}

struct Left {
    cookie: u32,
    at: Place,
    kind: Kind,
    /// The file is still being written, and whether it is new.
    open: Option<bool>,
    due: Instant,
}

struct NewFolder {
    at: Place,
    due: Instant,
    latest: Instant,
}

/// Events that are not told yet.
#[derive(Default)]
pub(super) struct Gather {
    /// Files that are being written, and whether they are new.
    open: HashMap<Place, bool>,
    gone: Vec<(Place, Kind)>,
    gone_due: Option<Instant>,
    left: Vec<Left>,
    folders: Vec<NewFolder>,
    ready: Vec<Noted>,
}

impl Gather {
    /// Takes an event in.
    pub(super) fn event(&mut self, now: Instant, at: Place, event: Event) {
        if let Some(folder) = self.folders.iter_mut().find(|folder| at.is_below(&folder.at)) {
            folder.due = (now + QUIET).min(folder.latest);
            // Moved into the new folder: it is gone where it was.
            if let Event::Arrived(_, cookie) = event
                && let Some(left) = self.take_left(cookie)
            {
                self.gone(now, left.at, left.kind);
            }
            return;
        }
        match event {
            Event::Made(Kind::Folder) => self.folder(now, at),
            Event::Made(Kind::Link) => self.appeared(FileAction::CreateFile, at, None),
            Event::Made(Kind::File) => {
                self.flush_gone_beside(&at);
                self.open.insert(at, true);
            }
            Event::Written => {
                self.open.entry(at).or_insert(false);
            }
            Event::Closed => match self.open.remove(&at) {
                Some(true) => self.appeared(FileAction::CreateFile, at, None),
                Some(false) => self.appeared(FileAction::ModifyFile, at, None),
                None => {}
            },
            Event::Gone(kind) => self.gone(now, at, kind),
            Event::Left(kind, cookie) => self.left(now, at, kind, cookie),
            Event::Arrived(kind, cookie) => self.arrived(now, at, kind, cookie),
        }
    }

    /// True when the two halves of this move belong together.
    pub(super) fn left_from(&self, cookie: u32) -> Option<&Place> {
        self.left.iter().find(|left| left.cookie == cookie).map(|left| &left.at)
    }

    /// True when too much is gathered to go on.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() + self.gone.len() + self.left.len() + self.folders.len() + self.ready.len() > MAX_GATHERED
    }

    /// When there will be something to tell, if nothing else happens.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let folders = self.folders.iter().map(|folder| folder.due);
        self.left.iter().map(|left| left.due).chain(folders).chain(self.gone_due).min()
    }

    /// What is to be told now, in order.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Noted> {
        if self.gone_due.is_some_and(|due| due <= now) {
            self.gone_due = None;
            let gone = std::mem::take(&mut self.gone);
            self.ready.extend(gone.into_iter().map(deleted));
        }
        let (lost, left) = std::mem::take(&mut self.left).into_iter().partition(|left: &Left| left.due <= now);
        self.left = left;
        self.ready.extend(lost.into_iter().map(|left| deleted((left.at, left.kind))));
        let (quiet, folders) = std::mem::take(&mut self.folders).into_iter().partition(|folder: &NewFolder| folder.due <= now);
        self.folders = folders;
        self.ready.extend(quiet.into_iter().map(|folder: NewFolder| Noted { action: FileAction::CreateDir, at: folder.at, from: None }));
        std::mem::take(&mut self.ready)
    }

    fn folder(&mut self, now: Instant, at: Place) {
        self.flush_gone_beside(&at);
        self.folders.push(NewFolder { at, due: now + QUIET, latest: now + LONGEST });
    }

    fn appeared(&mut self, action: FileAction, at: Place, from: Option<Place>) {
        self.flush_gone_beside(&at);
        self.ready.push(Noted { action, at, from });
    }

    fn gone(&mut self, now: Instant, at: Place, kind: Kind) {
        self.open.remove(&at);
        // A folder that was not told of yet comes and goes unnoticed.
        let before = self.folders.len();
        self.folders.retain(|folder| folder.at != at);
        if self.folders.len() < before {
            return;
        }
        // A deleted folder hides its content.
        self.gone.retain(|(place, _)| !place.is_below(&at));
        self.gone.push((at, kind));
        self.gone_due = Some(now + QUIET);
    }

    fn left(&mut self, now: Instant, at: Place, kind: Kind, cookie: u32) {
        let open = self.open.remove(&at);
        self.left.push(Left { cookie, at, kind, open, due: now + LOST });
    }

    fn arrived(&mut self, now: Instant, at: Place, kind: Kind, cookie: u32) {
        self.open.remove(&at);
        let Some(Left { at: from, open, .. }) = self.take_left(cookie) else {
            return match kind {
                Kind::Folder => self.folder(now, at),
                Kind::File | Kind::Link => self.appeared(FileAction::CreateFile, at, None),
            };
        };
        let pending = self.folders.iter().position(|folder| folder.at == from);
        match (pending, open) {
            (Some(index), _) => self.folders[index].at = at,
            // Told when it is closed, under its new name.
            (None, Some(new)) => drop(self.open.insert(at, new)),
            (None, None) if kind == Kind::Folder => self.appeared(FileAction::MoveDir, at, Some(from)),
            (None, None) => self.appeared(FileAction::MoveFile, at, Some(from)),
        }
    }

    fn take_left(&mut self, cookie: u32) -> Option<Left> {
        let index = self.left.iter().position(|left| left.cookie == cookie)?;
        Some(self.left.remove(index))
    }

    /// Something new in a folder: what was deleted there before is told first.
    fn flush_gone_beside(&mut self, at: &Place) {
        let (beside, gone) = std::mem::take(&mut self.gone).into_iter().partition(|(place, _)| place.has_parent_of(at));
        self.gone = gone;
        self.ready.extend(Vec::<(Place, Kind)>::into_iter(beside).map(deleted));
        if self.gone.is_empty() {
            self.gone_due = None;
        }
    }
}

fn deleted((at, kind): (Place, Kind)) -> Noted {
    let action = if kind == Kind::Folder { FileAction::DeleteDir } else { FileAction::DeleteFile };
    Noted { action, at, from: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        Place { root: "gcodes".into(), path: RelPath::parse(text).unwrap() }
    }

    /// Tells events one millisecond apart and returns what was told, each with the milliseconds at which it was.
    fn told(events: &[(&str, Event)]) -> Vec<(u64, FileAction, String)> {
        let start = Instant::now();
        let (mut gather, mut told, mut at) = (Gather::default(), Vec::new(), 0);
        let mut look = |gather: &mut Gather, at: u64| {
            let noted = gather.due(start + Duration::from_millis(at));
            told.extend(noted.into_iter().map(|noted| (at, noted.action, noted.at.path.to_string())));
        };
        for (path, event) in events {
            gather.event(start + Duration::from_millis(at), place(path), *event);
            look(&mut gather, at);
            at += 1;
        }
        for at in at..1500 {
            look(&mut gather, at);
        }
        assert!(gather.next_due().is_none());
        told
    }

    #[test]
    fn a_file_is_told_when_it_is_closed() {
        use Event::{Closed, Made, Written};
        assert_eq!(told(&[("a", Made(Kind::File)), ("a", Written), ("a", Closed)]), [(2, FileAction::CreateFile, "a".into())]);
        assert_eq!(told(&[("a", Written), ("a", Closed), ("b", Closed)]), [(1, FileAction::ModifyFile, "a".into())]);
        assert_eq!(told(&[("a", Made(Kind::Link))]), [(0, FileAction::CreateFile, "a".into())]);
    }

    #[test]
    fn moves_are_paired() {
        use Event::{Arrived, Closed, Left, Made, Written};
        let file = Kind::File;
        assert_eq!(told(&[("a", Left(file, 1)), ("b", Arrived(file, 1))]), [(1, FileAction::MoveFile, "b".into())]);
        assert_eq!(told(&[("a", Left(Kind::Folder, 1)), ("b", Arrived(Kind::Folder, 1))]), [(1, FileAction::MoveDir, "b".into())]);
        assert_eq!(
            told(&[("a", Left(file, 1)), ("b", Arrived(file, 2))]),
            [(1, FileAction::CreateFile, "b".into()), (1000, FileAction::DeleteFile, "a".into())]
        );
        let renamed = [("a", Made(file)), ("a", Written), ("a", Left(file, 1)), ("b", Arrived(file, 1)), ("b", Closed)];
        assert_eq!(told(&renamed), [(4, FileAction::CreateFile, "b".into())], "renamed before it was closed");
    }

    #[test]
    fn deletions_are_gathered_and_folders_hide_their_content() {
        use Event::{Gone, Made};
        let events = [("d/x", Gone(Kind::File)), ("d/e", Gone(Kind::Folder)), ("d", Gone(Kind::Folder)), ("dx", Gone(Kind::File))];
        assert_eq!(told(&events), [(253, FileAction::DeleteDir, "d".into()), (253, FileAction::DeleteFile, "dx".into())]);
        let replaced = [("a", Gone(Kind::File)), ("b", Made(Kind::Link))];
        assert_eq!(told(&replaced), [(1, FileAction::DeleteFile, "a".into()), (1, FileAction::CreateFile, "b".into())]);
    }

    #[test]
    fn a_new_folder_is_told_once_when_it_is_quiet() {
        use Event::{Arrived, Closed, Gone, Left, Made, Written};
        let folder = Kind::Folder;
        let events = [("d", Made(folder)), ("d/x", Made(Kind::File)), ("d/x", Written), ("d/x", Closed), ("d/e", Made(folder))];
        assert_eq!(told(&events), [(254, FileAction::CreateDir, "d".into())]);
        assert_eq!(told(&[("d", Made(folder)), ("d", Gone(folder))]), []);
        assert_eq!(
            told(&[("d", Made(folder)), ("d", Left(folder, 1)), ("e", Arrived(folder, 1))]),
            [(250, FileAction::CreateDir, "e".into())]
        );
        let filled = [("d", Made(folder)), ("a", Left(Kind::File, 1)), ("d/a", Arrived(Kind::File, 1))];
        assert_eq!(told(&filled), [(252, FileAction::DeleteFile, "a".into()), (252, FileAction::CreateDir, "d".into())]);
    }
}
