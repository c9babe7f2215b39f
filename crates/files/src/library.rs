//! The roots on the disk, and the only way from a request to a path: [`Library::resolve`].
//!
//! Everything here blocks; the service calls it on blocking threads. A [`RootPath`] has its links resolved and was found under its root, outside
//! of `.git` folders and of reserved paths. Containment goes by path components, never by text. Source: wire/2-files-jobs.md section 1.2.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use protocol::ApiError;
use protocol::event::{FileItem, SourceItem};

use crate::item;
use crate::path::{MAX_PATH_BYTES, OWN_PREFIX, PathFault, RelPath, RequestPath};
use crate::refusal::Refusal;
use crate::root::{GCODES, Permissions, Reserved, Root, Roots};
use crate::watch::Place;

/// What a request wants to do with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Read,
    Write,
}

/// A checked path: the only way to a file.
#[derive(Debug, Clone)]
pub(crate) struct RootPath {
    pub(crate) root: Arc<Root>,
    pub(crate) relative: RelPath,
    /// The directory entry: links resolved up to the last name, which may be a link itself.
    pub(crate) entry: PathBuf,
    /// All links resolved.
    pub(crate) real: PathBuf,
}

impl RootPath {
    /// `root/relative`, as requests write it.
    pub(crate) fn public(&self) -> String {
        if self.relative.is_root() { self.root.name.clone() } else { format!("{}/{}", self.root.name, self.relative) }
    }

    /// Root and path.
    pub(crate) fn place(&self) -> Place {
        Place { root: self.root.name.clone(), path: self.relative.clone() }
    }

    /// The place that a moved thing had.
    pub(crate) fn source_item(&self) -> SourceItem {
        SourceItem { path: self.relative.to_string(), root: self.root.name.clone() }
    }

    /// The item for a thing that is gone.
    pub(crate) fn deleted_item(&self) -> FileItem {
        FileItem {
            path: self.relative.to_string(),
            root: self.root.name.clone(),
            modified: 0.0,
            size: 0,
            permissions: Permissions::Nothing.as_str().to_owned(),
        }
    }
}

/// The roots, what is reserved in them, and where links may lead.
#[derive(Debug, Default)]
pub(crate) struct Library {
    roots: RwLock<Roots>,
    reserved: RwLock<Vec<Reserved>>,
    link_targets: Vec<PathBuf>,
}

impl Library {
    pub(crate) fn new(link_targets: &[PathBuf]) -> Self {
        Self { link_targets: link_targets.iter().map(|path| resolved(path)).collect(), ..Self::default() }
    }

    /// Adds or moves a root. True when a known root now points elsewhere.
    ///
    /// # Errors
    /// A sentence for the owner when the folder cannot be a root.
    pub(crate) fn register(&self, name: &str, path: &Path, writable: bool) -> Result<bool, String> {
        let refused = |why: String| format!("Root '{name}' is not available: {}: {why}", path.display());
        let real = path.canonicalize().map_err(|error| refused(error.to_string()))?;
        if !real.is_dir() {
            return Err(refused("not a folder".into()));
        }
        if real.parent().is_none() {
            return Err(refused("the whole file system cannot be a root".into()));
        }
        Ok(self.roots.write().set(Root { name: name.to_owned(), path: real, writable }))
    }

    /// Reserves a path; the same name again replaces the earlier reservation.
    pub(crate) fn reserve(&self, mut reserved: Reserved) {
        reserved.path = resolved(&reserved.path);
        let mut all = self.reserved.write();
        all.retain(|known| known.name != reserved.name);
        all.push(reserved);
    }

    /// Folders outside of the roots that links may lead to.
    pub(crate) fn link_targets(&self) -> impl Iterator<Item = &Path> {
        self.link_targets.iter().map(PathBuf::as_path)
    }

    pub(crate) fn root(&self, name: &str) -> Option<Arc<Root>> {
        self.roots.read().get(name).cloned()
    }

    pub(crate) fn roots(&self) -> Vec<Arc<Root>> {
        self.roots.read().iter().cloned().collect()
    }

    /// Parses and resolves a path that begins with its root; errors are those of operations.
    pub(crate) fn locate(&self, text: &str, need: Need) -> Result<RootPath, ApiError> {
        let located = RequestPath::parse(text).map_err(Refusal::from).and_then(|path| self.resolve(&path.root, path.relative, need));
        located.map_err(|refusal| refusal.for_operation(text))
    }

    /// The checked path of a normalised one. The thing itself need not exist.
    pub(crate) fn resolve(&self, root: &str, relative: RelPath, need: Need) -> Result<RootPath, Refusal> {
        let root = self.root(root).ok_or_else(|| Refusal::UnknownRoot(root.to_owned()))?;
        let real = real_path(&relative.below(&root.path)).map_err(Refusal::Io)?;
        let entry = match relative.is_root() {
            true => real.clone(),
            false => real_path(&relative.parent().below(&root.path)).map_err(Refusal::Io)?.join(relative.name()),
        };
        refuse_names(relative.names())?;
        for path in [&entry, &real] {
            if !self.is_inside(&root, path) {
                return Err(Refusal::Outside);
            }
            if path.as_os_str().len() >= MAX_PATH_BYTES {
                return Err(Refusal::Text(PathFault::TooLong));
            }
            self.refuse_guarded(&root, path, need, &relative)?;
        }
        Ok(RootPath { root, relative, entry, real })
    }

    /// True when a resolved path may be reached through this root.
    pub(crate) fn is_inside(&self, root: &Root, real: &Path) -> bool {
        real.starts_with(&root.path) || self.link_targets.iter().any(|target| real.starts_with(target))
    }

    fn refuse_guarded(&self, root: &Root, path: &Path, need: Need, relative: &RelPath) -> Result<(), Refusal> {
        refuse_names(path.strip_prefix(&root.path).unwrap_or(path).iter().filter_map(|name| name.to_str()))?;
        match self.reservation(path) {
            Some(reserved) if need == Need::Write || !reserved.readable => {
                Err(Refusal::Reserved { file: relative.name().to_owned(), name: reserved.name })
            }
            _ => Ok(()),
        }
    }

    /// The reservation that covers a resolved path; one that forbids reading comes first.
    fn reservation(&self, real: &Path) -> Option<Reserved> {
        let all = self.reserved.read();
        all.iter().filter(|reserved| reserved.covers(real)).min_by_key(|reserved| reserved.readable).cloned()
    }

    /// True when something below this folder is reserved, so that its entries must be asked about one by one.
    pub(crate) fn has_reservation_below(&self, folder: &Path) -> bool {
        self.reserved.read().iter().any(|reserved| reserved.path.starts_with(folder))
    }

    /// What callers may do with a thing in this root, `real` being its resolved path.
    pub(crate) fn permissions(&self, root: &Root, real: &Path) -> Permissions {
        let names = real.strip_prefix(&root.path).unwrap_or(real).iter().filter_map(|name| name.to_str());
        match self.reservation(real) {
            _ if refuse_names(names).is_err() => Permissions::Nothing,
            Some(reserved) if !reserved.readable => Permissions::Nothing,
            Some(_) => Permissions::Read,
            None => root.permissions(),
        }
    }

    /// The item as it is now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn item(&self, path: &RootPath) -> io::Result<FileItem> {
        let metadata = fs::metadata(&path.real)?;
        let mut permissions = self.permissions(&path.root, &path.real);
        if metadata.is_file() && path.entry != path.real {
            permissions = item::of_link(permissions);
        }
        Ok(FileItem {
            path: if path.relative.is_root() { ".".to_owned() } else { path.relative.to_string() },
            root: path.root.name.clone(),
            modified: item::modified(&metadata),
            size: metadata.len(),
            permissions: permissions.as_str().to_owned(),
        })
    }

    /// The resolved path of the loaded file, which the print job names relative to `gcodes`.
    pub(crate) fn loaded(&self, name: Option<String>) -> Option<PathBuf> {
        let root = self.root(GCODES)?;
        let relative = RelPath::parse(&name?).ok().filter(|relative| !relative.is_root())?;
        real_path(&relative.below(&root.path)).ok()
    }

    /// True when a path is the loaded file or a folder with it, under the name that the print job uses or after resolving links.
    pub(crate) fn holds_loaded(&self, path: &RootPath, name: Option<&str>) -> bool {
        let named = || {
            let root = self.root(GCODES)?;
            let relative = RelPath::parse(name?).ok().filter(|relative| !relative.is_root())?;
            Some(real_path(&relative.parent().below(&root.path)).ok()?.join(relative.name()))
        };
        let places = [named(), self.loaded(name.map(str::to_owned))];
        places.iter().flatten().any(|place| place.starts_with(&path.real) || place.starts_with(&path.entry))
    }

    /// Refuses to remove, move or overwrite a folder with something reserved in it.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn refuse_reserved_below(&self, path: &RootPath) -> Result<(), ApiError> {
        let all = self.reserved.read();
        match all.iter().find(|reserved| reserved.path.starts_with(&path.real) || reserved.path.starts_with(&path.entry)) {
            Some(reserved) => {
                let (file, name) = (path.relative.name().to_owned(), reserved.name.clone());
                Err(Refusal::Reserved { file, name }.for_operation(""))
            }
            None => Ok(()),
        }
    }
}

/// True for names of files and folders that no request sees.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with(OWN_PREFIX)
}

fn refuse_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), Refusal> {
    for name in names {
        if name == ".git" {
            return Err(Refusal::Git);
        }
        if is_own(name) {
            return Err(Refusal::Own);
        }
    }
    Ok(())
}

/// Resolves links as far as the path exists; what does not exist is appended as it stands (it holds no `..`).
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut at = path;
    let mut missing = Vec::new();
    loop {
        match at.canonicalize() {
            Ok(real) => return Ok(missing.iter().rev().fold(real, |path, name| path.join(name))),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else { return Err(error) };
                missing.push(name);
                at = parent;
            }
            Err(error) => return Err(error),
        }
    }
}

/// As [`real_path`], for paths of the owner: unresolvable ones stay as they are.
fn resolved(path: &Path) -> PathBuf {
    real_path(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests;
