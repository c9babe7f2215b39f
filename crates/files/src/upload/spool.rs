//! Where uploads land before they have a place: a hidden folder on the file system of the `gcodes` root, one file per upload.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use protocol::{ApiError, ErrorKind};

use crate::disk::{TempFile, ensure_folder};
use crate::list::disk_usage;

/// The folder, in the `gcodes` root.
pub(crate) const SPOOL_FOLDER: &str = ".bowsprit-upload";
const SUFFIX: &str = ".part";

/// Uploads that may be under way at once: each has a thread and some buffers.
pub const MAX_PARALLEL_UPLOADS: usize = 48;
/// Space that uploads leave free, in bytes: logs and the database must still be written.
pub const SPACE_LEFT_FREE: u64 = 16 * 1024 * 1024;

/// The folder of unfinished uploads, and how much they still want to write.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    folder: Mutex<Option<PathBuf>>,
    last: AtomicU64,
    under_way: AtomicUsize,
    outstanding: AtomicU64,
}

impl Spool {
    /// Uses the folder below this root from now on and removes what an earlier run left there. Gives the folder.
    pub(crate) fn settle(&self, root: &Path) -> PathBuf {
        let folder = root.join(SPOOL_FOLDER);
        sweep(&folder);
        *self.folder.lock() = Some(folder.clone());
        folder
    }

    /// The folder; it is made when it is missing.
    pub(crate) fn folder(&self) -> io::Result<PathBuf> {
        let folder =
            self.folder.lock().clone().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the gcodes root is not available"))?;
        ensure_folder(&folder)?;
        Ok(folder)
    }

    /// A new file that no other upload has.
    pub(crate) fn create(&self) -> io::Result<TempFile> {
        let folder = self.folder()?;
        loop {
            let number = self.last.fetch_add(1, Ordering::Relaxed);
            match TempFile::create(folder.join(format!("{}-{number}{SUFFIX}", std::process::id()))) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => return other,
            }
        }
    }

    /// Takes one of the places for uploads; dropping the share gives it back.
    pub(crate) fn share(self: &Arc<Self>, announced: u64) -> Option<Share> {
        let before = self.under_way.fetch_add(1, Ordering::Relaxed);
        self.outstanding.fetch_add(announced, Ordering::Relaxed);
        let share = Share { spool: self.clone(), outstanding: announced };
        (before < MAX_PARALLEL_UPLOADS).then_some(share)
    }

    /// Refuses when the disk cannot hold what all uploads under way, this one included, still want to write.
    ///
    /// # Errors
    /// 507 with the numbers.
    pub(crate) fn check_space(&self) -> Result<(), ApiError> {
        let folder = self.folder.lock().clone();
        // When the file system does not tell, writing will.
        let Some(free) = folder.and_then(|folder| disk_usage(folder.parent()?).ok()).map(|usage| usage.free) else { return Ok(()) };
        enough(free, self.outstanding.load(Ordering::Relaxed))
    }
}

fn enough(free: u64, outstanding: u64) -> Result<(), ApiError> {
    let needed = outstanding.saturating_add(SPACE_LEFT_FREE);
    if free >= needed {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorKind::Storage,
        format!("Not enough disk space: {needed} bytes are needed (reserve included), {free} bytes are free"),
    ))
}

/// An upload's share of the spool: one of the places, and space that is counted as taken until it is written.
#[derive(Debug)]
pub(crate) struct Share {
    spool: Arc<Spool>,
    outstanding: u64,
}

impl Share {
    /// `bytes` have arrived: they show in the free space of the disk now.
    pub(crate) fn arrived(&mut self, bytes: u64) {
        let bytes = bytes.min(self.outstanding);
        self.outstanding -= bytes;
        self.spool.outstanding.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.arrived(u64::MAX);
        self.spool.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Removes unfinished uploads of an earlier run.
fn sweep(folder: &Path) {
    // A link here is not ours; following it could remove files elsewhere.
    if !fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir()) {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().ends_with(SUFFIX) {
            match fs::remove_file(entry.path()) {
                Ok(()) => tracing::info!(path = %entry.path().display(), "removed an unfinished upload of an earlier run"),
                Err(error) => tracing::warn!(path = %entry.path().display(), %error, "cannot remove an unfinished upload"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_swept_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(SPOOL_FOLDER);
        fs::create_dir(&folder).unwrap();
        for name in ["1-2.part", "readme"] {
            fs::write(folder.join(name), "x").unwrap();
        }
        Spool::default().settle(root.path());
        assert!(!folder.join("1-2.part").exists() && folder.join("readme").exists());
    }

    #[test]
    fn a_linked_folder_is_not_swept() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("1-2.part"), "x").unwrap();
        std::os::unix::fs::symlink(other.path(), root.path().join(SPOOL_FOLDER)).unwrap();
        Spool::default().settle(root.path());
        assert!(other.path().join("1-2.part").exists());
    }

    #[test]
    fn space_is_counted_for_all_uploads_together() {
        assert!(enough(SPACE_LEFT_FREE + 10, 10).is_ok());
        let error = enough(SPACE_LEFT_FREE + 9, 10).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Storage);
        assert!(error.message.contains(&(SPACE_LEFT_FREE + 10).to_string()) && error.message.contains(&(SPACE_LEFT_FREE + 9).to_string()));

        let spool = Arc::new(Spool::default());
        let (mut one, two) = (spool.share(100).unwrap(), spool.share(50).unwrap());
        one.arrived(30);
        assert_eq!(spool.outstanding.load(Ordering::Relaxed), 120);
        one.arrived(300);
        assert_eq!(spool.outstanding.load(Ordering::Relaxed), 50, "more than announced counts only once");
        drop((one, two));
        assert_eq!(spool.outstanding.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_number_of_uploads_is_bounded() {
        let spool = Arc::new(Spool::default());
        let shares: Vec<_> = (0..MAX_PARALLEL_UPLOADS).map(|_| spool.share(0).unwrap()).collect();
        assert!(spool.share(0).is_none());
        drop(shares);
        assert!(spool.share(0).is_some());
    }
}
