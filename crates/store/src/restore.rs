//! How a copy takes the place of the database: it is prepared beside it, and moves in at the next opening.
//!
//! The prepared file is the decision. Each step after it can be repeated, so a crash anywhere leaves either the old
//! database or the whole copy, never a mixture: the old WAL is gone before the copy gets the database's name.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::backup::{self, Contents};
use crate::files::{create_new, remove_if_there, rename_durably, sync_folder_of, with_suffix};
use crate::{Schema, StoreError, damage};

/// Ending of a copy that is being prepared.
const UNFINISHED: &str = ".restore-part";
/// Ending of a copy that replaces the database because somebody asked for it.
const ASKED_FOR: &str = ".restore";
/// Ending of a copy that replaces a damaged database, which is kept aside.
const FALLBACK: &str = ".fallback";

/// Files looked at, the newest ones first, when a good backup is needed.
const MAX_CANDIDATES: usize = 50;

/// Copies `source` beside the database and checks the copy completely. Nothing is decided yet.
pub(crate) fn prepare(database: &Path, source: &Path, schemas: &[Schema]) -> Result<Contents, StoreError> {
    let part = with_suffix(database, UNFINISHED);
    remove_if_there(&part)?;
    let outcome = copy(source, &part).map_err(StoreError::from).and_then(|()| backup::verify(&part, schemas));
    if outcome.is_err() {
        let _ = remove_if_there(&part);
    }
    outcome
}

/// Decides for the prepared copy.
pub(crate) fn decide(database: &Path) -> Result<(), StoreError> {
    Ok(rename_durably(&with_suffix(database, UNFINISHED), &with_suffix(database, ASKED_FOR))?)
}

/// Decides for the newest good backup in `folder` and returns its path; `None` when there is none.
pub(crate) fn choose_fallback(database: &Path, folder: &Path, schemas: &[Schema]) -> Result<Option<PathBuf>, StoreError> {
    for candidate in candidates(folder) {
        match prepare(database, &candidate, schemas) {
            Ok(_) => {
                rename_durably(&with_suffix(database, UNFINISHED), &with_suffix(database, FALLBACK))?;
                return Ok(Some(candidate));
            }
            Err(StoreError::Full) => return Err(StoreError::Full),
            Err(error) => tracing::debug!(file = %candidate.display(), %error, "no good backup"),
        }
    }
    Ok(None)
}

/// Carries out what was decided, if anything. `stamp` names files set aside. Returns sentences for the owner.
pub(crate) fn carry_out(database: &Path, schemas: &[Schema], stamp: &str) -> Result<Vec<String>, StoreError> {
    let unfinished = with_suffix(database, UNFINISHED);
    if unfinished.is_file() {
        fs::remove_file(unfinished)?;
    }
    let mut warnings = Vec::new();
    for (ending, is_asked_for) in [(ASKED_FOR, true), (FALLBACK, false)] {
        let copy = with_suffix(database, ending);
        if !copy.is_file() {
            continue;
        }
        if let Err(error) = backup::verify(&copy, schemas) {
            let kept = damage::set_aside(&copy, stamp)?;
            warnings.push(format!("A prepared copy of the database was not used: {error}. It was kept as {}", kept.display()));
        } else if is_asked_for {
            replace(database, &copy)?;
        } else {
            warnings.push(replace_damaged(database, &copy, stamp)?);
        }
    }
    Ok(warnings)
}

fn replace(database: &Path, copy: &Path) -> Result<(), StoreError> {
    for ending in ["-wal", "-shm"] {
        remove_if_there(&with_suffix(database, ending))?;
    }
    sync_folder_of(database)?;
    Ok(rename_durably(copy, database)?)
}

fn replace_damaged(database: &Path, copy: &Path, stamp: &str) -> Result<String, StoreError> {
    let made = fs::metadata(copy).and_then(|about| about.modified()).ok().map_or_else(|| "an unknown time".to_owned(), shown);
    let kept = if database.exists() { Some(damage::set_aside(database, stamp)?) } else { None };
    replace(database, copy)?;
    let kept = kept.map(|kept| format!(" was kept as {} and", kept.display())).unwrap_or_default();
    Ok(format!("The damaged database{kept} was replaced by its backup of {made}: what was stored later is missing"))
}

fn shown(time: SystemTime) -> String {
    jiff::Zoned::try_from(time).map_or_else(|_| "an unknown time".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// A copy on the disk that keeps the time of its source.
fn copy(source: &Path, target: &Path) -> io::Result<()> {
    let mut from = File::open(source)?;
    let mut to = create_new(target)?;
    io::copy(&mut from, &mut to)?;
    if let Ok(time) = from.metadata()?.modified() {
        to.set_modified(time)?;
    }
    to.sync_all()
}

/// Regular files in the folder, the newest first.
fn candidates(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort_by(|a, b| b.cmp(a));
    files.truncate(MAX_CANDIDATES);
    files.into_iter().map(|(_, path)| path).collect()
}
