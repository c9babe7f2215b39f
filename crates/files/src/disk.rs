//! Small durable steps on the disk: temporary files that clean up after themselves, rename, sync of folders.

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// How names of what is made beside its target begin; the rest tells which run of the program made it.
const ASIDE_PREFIX: &str = ".bowsprit-copy-";

/// A file that is removed when it is dropped before it got its final place.
#[derive(Debug)]
pub(crate) struct TempFile {
    path: Option<PathBuf>,
    stays: bool,
    /// The open file.
    pub(crate) file: File,
}

impl TempFile {
    /// Makes a new file for reading and writing; fails when there is one of this name already.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        Ok(Self { path: Some(path), stays: false, file })
    }

    /// A file that is there already and stays when it is dropped before it got its final place.
    pub(crate) fn that_stays(path: PathBuf, file: File) -> Self {
        Self { path: Some(path), stays: true, file }
    }

    /// Leaves the file where it is.
    pub(crate) fn keep(mut self) {
        self.path = None;
    }

    /// Brings the file, which must be synced, to the file system of the target, so that [`TempFile::persist`] is only a rename. The target's
    /// folder need not exist yet.
    pub(crate) fn near(self, target: &Path) -> io::Result<Self> {
        let Some(path) = &self.path else { return Err(io::Error::other("the temporary file has gone")) };
        let mut folders = target.ancestors().skip(1);
        let folder = folders.find(|folder| folder.is_dir()).ok_or(io::ErrorKind::NotFound)?;
        if fs::metadata(folder)?.dev() == self.file.metadata()?.dev() {
            return Ok(self);
        }
        let mut copy = Aside::make(&folder.join("any"), |copy| copy_file(path, copy))?;
        let Some(path) = &copy.0 else { return Err(io::Error::other("the copy has gone")) };
        let file = File::options().read(true).write(true).open(path)?;
        Ok(Self { path: copy.0.take(), stays: false, file })
    }

    /// Moves the file over `target` and returns when the move is on the disk; the content must be synced already. Readers of `target` see the
    /// old or the new file, never a part.
    pub(crate) fn persist(mut self, target: &Path) -> io::Result<()> {
        let Some(path) = &self.path else { return Err(io::Error::other("the temporary file has gone")) };
        match fs::rename(path, target) {
            Ok(()) => self.path = None,
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let copied = copy_beside(path, target);
                drop(self);
                return copied;
            }
            Err(error) => return Err(error),
        }
        sync_parent(target)
    }
}

impl io::Write for TempFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.file.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && !self.stays
            && let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "temporary file stays behind until the next start");
        }
    }
}

/// A file or folder that is made beside its target under a hidden name; removed when it is dropped before it got its place.
#[derive(Debug)]
pub(crate) struct Aside(Option<PathBuf>);

impl Aside {
    /// Lets `make` make something under a name that nobody else uses, in the folder of the target. What it leaves must be synced.
    pub(crate) fn make(target: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let path = folder.join(format!("{ASIDE_PREFIX}{}-{}", run(), NEXT.fetch_add(1, Ordering::Relaxed)));
        make(&path).map(|()| Self(Some(path.clone()))).inspect_err(|_| {
            // The first fault is the one to tell.
            let _ = remove_any(&path);
        })
    }

    /// Moves it over `target` and returns when that is on the disk.
    pub(crate) fn place(mut self, target: &Path) -> io::Result<()> {
        let Some(path) = &self.0 else { return Err(io::Error::other("the copy has gone")) };
        fs::rename(path, target)?;
        self.0 = None;
        sync_parent(target)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(path) = &self.0
            && let Err(error) = remove_any(path)
        {
            tracing::warn!(path = %path.display(), %error, "an unfinished copy stays behind until the next start");
        }
    }
}

/// What tells this run of the program from earlier ones, which may have had the same process id.
fn run() -> &'static str {
    static RUN: OnceLock<String> = OnceLock::new();
    RUN.get_or_init(|| uuid::Uuid::new_v4().simple().to_string())
}

/// Removes what earlier runs of the program have left in a folder and below it. Links are not followed.
pub(crate) fn sweep(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.strip_prefix(ASIDE_PREFIX).is_some_and(|rest| !rest.starts_with(run())) {
                match remove_any(&entry.path()) {
                    Ok(()) => tracing::info!(path = %entry.path().display(), "removed an unfinished copy of an earlier run"),
                    Err(error) => tracing::warn!(path = %entry.path().display(), %error, "cannot remove an unfinished copy"),
                }
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
}

/// Copies a file, times and mode included, to the target's file system, then renames there.
pub(crate) fn copy_beside(source: &Path, target: &Path) -> io::Result<()> {
    Aside::make(target, |copy| copy_file(source, copy))?.place(target)
}

/// Opens a file for reading whose links are resolved: a link anywhere in the path was put there since, and is refused. Pipes and devices are, too.
pub(crate) fn open_resolved(real: &Path) -> io::Result<File> {
    // Not blocking: a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = match rustix::fs::openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Old kernels do not have it, old containers do not allow it.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(real, flags, Mode::empty()),
        other => other,
    };
    let file = File::from(opened?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file")) }
}

/// Copies content, times and mode of a file to a new one and syncs it.
pub(crate) fn copy_file(source: &Path, target: &Path) -> io::Result<()> {
    let mut from = open_resolved(source)?;
    let metadata = from.metadata()?;
    let mut to = File::options().write(true).create_new(true).open(target)?;
    io::copy(&mut from, &mut to)?;
    to.set_permissions(metadata.permissions())?;
    to.set_times(FileTimes::new().set_modified(metadata.modified()?))?;
    to.sync_all()
}

/// Removes a file, a link or a folder with all its content; nothing there is no error.
pub(crate) fn remove_any(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes a folder when it is not there.
pub(crate) fn ensure_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        other => other,
    }
}

/// Puts the entries of the folder that holds `path` on the disk.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    match File::open(parent)?.sync_all() {
        // Some network and FUSE file systems cannot sync folders; there is nothing more that we could do.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_dropped_temporary_is_gone_and_a_persisted_one_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let (temp, target) = (folder.path().join("t"), folder.path().join("target"));
        fs::write(&target, "old").unwrap();
        drop(TempFile::create(temp.clone()).unwrap());
        assert!(!temp.exists());
        let mut file = TempFile::create(temp.clone()).unwrap();
        assert!(TempFile::create(temp.clone()).is_err(), "two writers never share a file");
        file.file.write_all(b"new").unwrap();
        file.persist(&target).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert!(!temp.exists());
    }

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_copy_beside_the_target_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("s"), folder.path().join("target"));
        fs::write(&source, "content").unwrap();
        copy_beside(&source, &target).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "content");
        fs::remove_file(&target).unwrap();
        fs::create_dir(&target).unwrap();
        assert!(copy_beside(&source, &target).is_err());
        drop(Aside::make(&target, |copy| copy_file(&source, copy)).unwrap());
        assert!(Aside::make(&target, |copy| fs::create_dir(copy).and(Err(io::ErrorKind::StorageFull.into()))).is_err());
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[test]
    fn copies_of_earlier_runs_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        fs::create_dir_all(deep.join(format!("{ASIDE_PREFIX}x-1/inner"))).unwrap();
        fs::write(folder.path().join(format!("{ASIDE_PREFIX}x-0")), "").unwrap();
        fs::write(folder.path().join("s"), "").unwrap();
        let current = Aside::make(&deep.join("t"), |copy| copy_file(&folder.path().join("s"), copy)).unwrap();
        sweep(folder.path());
        assert_eq!((names(&deep).len(), names(folder.path()).len()), (1, 2));
        current.place(&deep.join("t")).unwrap();
        assert_eq!(names(&deep), ["t"]);
    }

    #[test]
    fn what_is_no_file_or_was_exchanged_for_a_link_is_not_opened() {
        let folder = tempfile::tempdir().unwrap().keep().canonicalize().unwrap();
        fs::create_dir(folder.join("real")).unwrap();
        fs::write(folder.join("real/file"), "secret").unwrap();
        assert!(open_resolved(&folder.join("real/file")).is_ok());
        std::os::unix::fs::symlink("real", folder.join("link")).unwrap();
        std::os::unix::fs::symlink("real/file", folder.join("last")).unwrap();
        let pipe = folder.join("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
        for path in ["link/file", "last", "pipe", "real"] {
            assert!(open_resolved(&folder.join(path)).is_err(), "{path}");
        }
        assert!(copy_file(&pipe, &folder.join("copy")).is_err(), "nobody waits for a pipe");
        fs::remove_dir_all(folder).unwrap();
    }
}
