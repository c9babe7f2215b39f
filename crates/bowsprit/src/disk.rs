//! Configuration files on the real disk.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use config::FileSystem;
use config::fs::{Entry, FileContent, FileIdentity};

/// The real disk.
pub struct Disk;

impl FileSystem for Disk {
    fn read(&self, path: &Path, limit: usize) -> io::Result<FileContent> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
        Ok(FileContent { bytes, identity: FileIdentity { device: metadata.dev(), inode: metadata.ino() } })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_dir = std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir());
            entries.push(Entry { name, is_dir });
        }
        Ok(entries)
    }
}
