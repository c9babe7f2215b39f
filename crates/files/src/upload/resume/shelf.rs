//! Where uploads that can be continued wait: two files each in the spool's folder, `ID.upload` (what it is) and `ID.data` (what has arrived).
//!
//! The content is made first and removed last, so a record without content is an upload whose file has got its place. Blocks.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::model::Record;
use crate::disk::{TempFile, remove_any, sync_parent};

const RECORD_SUFFIX: &str = ".upload";
const DATA_SUFFIX: &str = ".data";
/// Ends like other unfinished files, so that the sweep at the start removes it.
const NEW_RECORD_SUFFIX: &str = ".upload.part";
/// Largest record that is read, in bytes: far more than the limits of its members allow.
const MAX_RECORD_BYTES: u64 = 1024 * 1024;

/// An upload of an earlier run.
pub(super) struct Found {
    pub(super) id: String,
    pub(super) record: Record,
    /// Bytes of content; `None` when there is no content any more.
    pub(super) received: Option<u64>,
    /// When something arrived last.
    pub(super) touched: SystemTime,
}

pub(super) fn data_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}{DATA_SUFFIX}"))
}

fn record_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}{RECORD_SUFFIX}"))
}

/// Makes a new, empty upload; it is on the disk afterwards.
pub(super) fn create(folder: &Path, id: &str, record: &Record) -> io::Result<()> {
    let data = TempFile::create(data_path(folder, id))?;
    data.file.sync_all()?;
    save(folder, id, record)?;
    data.keep();
    Ok(())
}

/// Writes what an upload is.
pub(super) fn save(folder: &Path, id: &str, record: &Record) -> io::Result<()> {
    let mut temp = TempFile::create(folder.join(format!("{id}{NEW_RECORD_SUFFIX}")))?;
    temp.file.write_all(&serde_json::to_vec(record)?)?;
    temp.file.sync_all()?;
    temp.persist(&record_path(folder, id))
}

/// Removes the content alone: the file has got its place.
pub(super) fn remove_data(folder: &Path, id: &str) -> io::Result<()> {
    remove_any(&data_path(folder, id))
}

/// Removes an upload.
pub(super) fn remove(folder: &Path, id: &str) -> io::Result<()> {
    remove_any(&record_path(folder, id))?;
    // In this order on the disk, too: else an upload that was given up could look like one that is complete.
    sync_parent(&record_path(folder, id))?;
    remove_data(folder, id)
}

/// Reads what an earlier run left and removes what is no upload. What is given is on the disk.
pub(super) fn load(folder: &Path) -> Vec<Found> {
    // A link here is not ours; following it could remove files elsewhere.
    if !fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir()) {
        return Vec::new();
    }
    let names = || fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let found: Vec<Found> = names().filter_map(|name| read(folder, name.strip_suffix(RECORD_SUFFIX)?)).collect();
    for name in names() {
        let id = name.strip_suffix(DATA_SUFFIX).or_else(|| name.strip_suffix(RECORD_SUFFIX));
        if id.is_some_and(|id| found.iter().all(|upload| upload.id != id))
            && let Err(error) = fs::remove_file(folder.join(&name))
        {
            tracing::warn!(name, %error, "cannot remove what an upload left");
        }
    }
    found
}

fn read(folder: &Path, id: &str) -> Option<Found> {
    let path = record_path(folder, id);
    let metadata = fs::symlink_metadata(&path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_RECORD_BYTES {
        return None;
    }
    let record = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    let data = File::options().write(true).open(data_path(folder, id)).ok();
    // What the process wrote before it was killed may still be on its way to the disk.
    let content = data.and_then(|data| data.sync_all().and_then(|()| data.metadata()).ok());
    let touched = content.as_ref().unwrap_or(&metadata).modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Some(Found { id: id.to_owned(), record, received: content.map(|content| content.len()), touched })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record { length: 10, fields: vec![("filename".into(), "a".into())], metadata: "filename YQ==".into(), answer: None }
    }

    #[test]
    fn uploads_are_found_again_and_rubbish_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), "one", &record()).unwrap();
        create(folder.path(), "placed", &record()).unwrap();
        fs::write(data_path(folder.path(), "one"), "12345").unwrap();
        remove_data(folder.path(), "placed").unwrap();
        for (name, content) in [("orphan.data", "x"), ("broken.upload", "{"), ("broken.data", "x"), ("other", "stays")] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let mut found = load(folder.path());
        found.sort_by(|one, other| one.id.cmp(&other.id));
        assert_eq!(
            found.iter().map(|upload| (upload.id.as_str(), upload.received)).collect::<Vec<_>>(),
            [("one", Some(5)), ("placed", None)]
        );
        assert_eq!(found[0].record, record());
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["one.data", "one.upload", "other", "placed.upload"]);
        remove(folder.path(), "one").unwrap();
        assert_eq!(load(folder.path()).len(), 1);
    }

    #[test]
    fn an_upload_that_cannot_be_made_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("one.upload")).unwrap();
        assert!(create(folder.path(), "one", &record()).is_err());
        assert!(!data_path(folder.path(), "one").exists());
    }
}
