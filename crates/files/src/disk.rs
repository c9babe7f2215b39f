//! Small durable steps on the disk: temporary files that clean up after themselves, rename, sync of folders.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Folder for the copy of a file that arrives from another file system; lives beside the target only while the copy is made.
const COPY_FOLDER: &str = ".bowsprit-copy";
const COPY_NAME: &str = "incoming.part";

/// A file that is removed when it is dropped before it got its final place.
#[derive(Debug)]
pub(crate) struct TempFile {
    path: Option<PathBuf>,
    /// The open file.
    pub(crate) file: File,
}

impl TempFile {
    /// Makes a new file for reading and writing; fails when there is one of this name already.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        Ok(Self { path: Some(path), file })
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

impl Drop for TempFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "temporary file stays behind until the next start");
        }
    }
}

/// Copies to the target's file system, then renames there. The caller holds the lock of all changes, so nobody else uses the folder.
fn copy_beside(source: &Path, target: &Path) -> io::Result<()> {
    let parent = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = parent.join(COPY_FOLDER);
    let copied = copy_into(source, &folder, target);
    // Only empty folders can be removed this way, and a failure costs nothing but an empty hidden folder.
    let _ = fs::remove_dir(&folder);
    copied?;
    sync_parent(target)
}

fn copy_into(source: &Path, folder: &Path, target: &Path) -> io::Result<()> {
    ensure_folder(folder)?;
    let path = folder.join(COPY_NAME);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut copy = TempFile::create(path)?;
    io::copy(&mut File::open(source)?, &mut copy.file)?;
    copy.file.sync_all()?;
    let Some(path) = &copy.path else { return Err(io::Error::other("the temporary file has gone")) };
    fs::rename(path, target)?;
    copy.path = None;
    Ok(())
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
