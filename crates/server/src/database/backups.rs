//! The folder of backups: which names are good, what is in it, and which automatic ones have to go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Zoned;
use protocol::ApiError;

/// Bytes of a backup's name at most: with what is added while it is written it still fits into a folder.
const MAX_NAME_BYTES: usize = 200;

/// Backups that are listed at most, in the order of their names.
const MAX_LISTED: usize = 1000;

/// Beginning of the names of automatic backups; only those are ever removed by themselves.
const AUTOMATIC: &str = "automatic-backup-";

/// Beginning of the names of backups that clients ask for without a name. Document 1, *Database*.
const ASKED_FOR: &str = "sqldb-backup-";

/// The folder of backups.
pub(super) struct Backups {
    folder: PathBuf,
}

impl Backups {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Makes the folder and removes what a crash has left unfinished.
    pub(super) fn prepare(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(store::is_unfinished) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Where a backup of this name is to be.
    pub(super) fn target(&self, name: &str) -> Result<PathBuf, ApiError> {
        let reason = if name.is_empty() {
            "must not be empty"
        } else if name.len() > MAX_NAME_BYTES {
            "is too long"
        } else if name.contains(['/', '\\']) || name.chars().any(char::is_control) {
            "must be the name of a file in the folder of backups"
        } else if name.starts_with('.') {
            "must not begin with a dot"
        } else {
            return Ok(self.folder.join(name));
        };
        Err(ApiError::bad_request(format!("Invalid argument 'filename': {reason}")))
    }

    /// The backup of this name, which must be there. Links do not count: they may lead anywhere.
    pub(super) fn existing(&self, name: &str) -> Result<PathBuf, ApiError> {
        let path = self.target(name)?;
        if is_regular(&path) { Ok(path) } else { Err(ApiError::not_found(format!("Backup '{name}' not found"))) }
    }

    /// Names of the backups, sorted.
    pub(super) fn list(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| self.existing(name).is_ok())
            .take(MAX_LISTED)
            .collect();
        names.sort();
        Ok(names)
    }

    /// The newest automatic backup's time.
    pub(super) fn last_automatic(&self) -> io::Result<Option<SystemTime>> {
        let Some(newest) = self.automatic()?.pop() else { return Ok(None) };
        Ok(Some(fs::metadata(self.folder.join(newest))?.modified()?))
    }

    /// Removes the oldest automatic backups until `keep` are left.
    pub(super) fn rotate(&self, keep: usize) -> io::Result<()> {
        let names = self.automatic()?;
        let surplus = names.len().saturating_sub(keep);
        names[..surplus].iter().try_for_each(|name| fs::remove_file(self.folder.join(name)))
    }

    /// Names of automatic backups, the oldest first.
    fn automatic(&self) -> io::Result<Vec<String>> {
        Ok(self.list()?.into_iter().filter(|name| is_automatic(name)).collect())
    }
}

/// `sqldb-backup-20260131-235959.db`, in local time.
pub(super) fn default_name(now: &Zoned) -> String {
    name(ASKED_FOR, now)
}

/// `automatic-backup-20260131-235959.db`, in local time.
pub(super) fn automatic_name(now: &Zoned) -> String {
    name(AUTOMATIC, now)
}

fn name(beginning: &str, now: &Zoned) -> String {
    format!("{beginning}{}.db", now.strftime("%Y%m%d-%H%M%S"))
}

fn is_automatic(name: &str) -> bool {
    let stamp = name.strip_prefix(AUTOMATIC).and_then(|rest| rest.strip_suffix(".db"));
    stamp.and_then(|stamp| stamp.split_once('-')).is_some_and(|(day, time)| is_number(day, 8) && is_number(time, 6))
}

fn is_number(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_regular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> (tempfile::TempDir, Backups) {
        let folder = tempfile::tempdir().unwrap();
        names.iter().for_each(|name| fs::write(folder.path().join(name), "x").unwrap());
        let backups = Backups::new(folder.path().to_owned());
        (folder, backups)
    }

    #[test]
    fn names_stay_in_the_folder() {
        let (keep, backups) = folder(&["a.db"]);
        for bad in ["", ".", "..", "../a.db", "a/b.db", "/etc/passwd", "a\\b", "a\0b", "a\nb", ".hidden", &"x".repeat(201)] {
            let error = backups.target(bad).unwrap_err();
            assert!(error.kind == protocol::ErrorKind::BadRequest && error.message.contains("'filename'"), "{bad}: {}", error.message);
        }
        assert_eq!(backups.target("my backup ü.db").unwrap(), keep.path().join("my backup ü.db"));
        assert_eq!(backups.existing("none.db").unwrap_err().kind, protocol::ErrorKind::NotFound);
    }

    #[test]
    fn only_files_are_listed() {
        let (keep, backups) = folder(&["b.db", "a.db", ".a.db.1-0.part"]);
        fs::create_dir(keep.path().join("sub")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", keep.path().join("link.db")).unwrap();
        assert_eq!(backups.list().unwrap(), ["a.db", "b.db"]);
        assert!(backups.existing("link.db").is_err() && backups.existing("sub").is_err());
        backups.prepare().unwrap();
        assert!(!keep.path().join(".a.db.1-0.part").exists());
        assert_eq!(Backups::new(keep.path().join("none")).list().unwrap(), [""; 0]);
    }

    #[test]
    fn only_automatic_backups_make_room() {
        let days = ["automatic-backup-20260101-000000.db", "automatic-backup-20260103-000000.db", "automatic-backup-20260102-000000.db"];
        let others = ["automatic-backup-mine.db", "automatic-backup-2026010-0000000.db", "sqldb-backup-20250101-000000.db"];
        let (_keep, backups) = folder(&[&days[..], &others[..]].concat());
        backups.rotate(2).unwrap();
        let left = backups.list().unwrap();
        assert!(left.len() == 5 && !left.contains(&days[0].to_owned()), "{left:?}");
        backups.rotate(0).unwrap();
        let mut others = others.map(str::to_owned);
        others.sort();
        assert_eq!(backups.list().unwrap(), others);
    }

    #[test]
    fn default_names_have_the_time() {
        let now = jiff::civil::date(2026, 1, 31).at(23, 5, 9, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(default_name(&now), "sqldb-backup-20260131-230509.db");
        assert!(is_automatic(&automatic_name(&now)));
    }
}
