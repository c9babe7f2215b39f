//! Small durable steps on the disk: temporary files that clean up after themselves, rename, sync of folders.

use std::fs::{self, File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};

/// Folder for the copy of a file that arrives from another file system; lives beside the target only while the copy is made.
const COPY_FOLDER: &str = ".bowsprit-copy";
const COPY_NAME: &str = "incoming.part";

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

/// Copies a file, times and mode included, to the target's file system, then renames there.
pub(crate) fn copy_beside(source: &Path, target: &Path) -> io::Result<()> {
    place_beside(target, |copy| copy_file(source, copy))
}

/// Lets `make` make something in a hidden folder beside the target, then renames it there. What `make` leaves must be synced. The caller holds
/// the lock of all changes, so nobody else uses the folder.
pub(crate) fn place_beside(target: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = parent.join(COPY_FOLDER);
    let copy = folder.join(COPY_NAME);
    let placed =
        ensure_folder(&folder).and_then(|()| remove_any(&copy)).and_then(|()| make(&copy)).and_then(|()| fs::rename(&copy, target));
    if placed.is_err() {
        // The first fault is the one to tell.
        let _ = remove_any(&copy);
    }
    // Only empty folders can be removed this way, and a failure costs nothing but an empty hidden folder.
    let _ = fs::remove_dir(&folder);
    placed?;
    sync_parent(target)
}

/// Copies content, times and mode of a file to a new one and syncs it.
pub(crate) fn copy_file(source: &Path, target: &Path) -> io::Result<()> {
    let mut from = File::open(source)?;
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

    #[test]
    fn a_copy_beside_the_target_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("s"), folder.path().join("target"));
        fs::write(&source, "content").unwrap();
        ensure_folder(&folder.path().join(COPY_FOLDER)).unwrap();
        fs::write(folder.path().join(COPY_FOLDER).join(COPY_NAME), "left by a crash").unwrap();
        copy_beside(&source, &target).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "content");
        assert!(!folder.path().join(COPY_FOLDER).exists());
    }

    #[test]
    fn a_failed_copy_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("s");
        fs::write(&source, "content").unwrap();
        let target = folder.path().join("a folder");
        fs::create_dir(&target).unwrap();
        assert!(copy_beside(&source, &target).is_err());
        assert!(!folder.path().join(COPY_FOLDER).exists());
    }
}
