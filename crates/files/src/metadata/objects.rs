//! Object processing of one file: a new file is written aside and takes the old one's place at once (wire/2-files-jobs.md section 4). Blocks.

use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

use gcode::objects::{ObjectsError, Outcome, Verdict};

use super::Stamp;
use super::scan::Opened;
use crate::library::{Need, RootPath};
use crate::service::Files;
use crate::upload::save_failed;
use crate::watch::Seen;

/// Longest time for one file: at the slowest speed ever seen, far more than a gigabyte.
pub(crate) const OBJECTS_TIME_LIMIT: Duration = Duration::from_secs(300);

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Processed {
    /// It was replaced.
    Replaced,
    /// There is nothing to do, now and until it changes.
    Nothing,
    /// A print runs: later.
    Later,
    /// It could not be done, for reasons that do not lie in the file.
    Failed,
}

/// Processes a file if it has object marks. Any failure leaves it as it was; one that lies in the file counts as nothing to do.
pub(super) fn process(files: &Files, path: &RootPath, opened: &Opened) -> Processed {
    let must_rest = || !files.settings.options.process_objects_while_printing && files.print.loaded_file().is_some();
    match gcode::objects::detect(opened) {
        Ok(Verdict::Marked(_)) if must_rest() => return Processed::Later,
        Ok(Verdict::Marked(_)) => {}
        _ => return Processed::Nothing,
    }
    let begin = Instant::now();
    let keep_going = || begin.elapsed() < OBJECTS_TIME_LIMIT && !must_rest() && !files.scans.is_stopped();
    match rewrite(files, path, opened, &keep_going) {
        Ok(processed) => processed,
        Err(_) if must_rest() => Processed::Later,
        Err(Fault { text, of_file }) => {
            tracing::warn!(file = %path.relative, error = text, "objects were not processed");
            if of_file { Processed::Nothing } else { Processed::Failed }
        }
    }
}

/// Why a file was not processed.
struct Fault {
    text: String,
    /// It would fail again.
    of_file: bool,
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self { text: save_failed(&error).message, of_file: false }
    }
}

impl From<ObjectsError> for Fault {
    fn from(error: ObjectsError) -> Self {
        let of_file = matches!(error, ObjectsError::TooManyObjects | ObjectsError::NameTooLong | ObjectsError::CountMismatch { .. });
        Self { text: error.to_string(), of_file }
    }
}

fn rewrite(files: &Files, path: &RootPath, opened: &Opened, keep_going: &dyn Fn() -> bool) -> Result<Processed, Fault> {
    let temp = files.spool.create()?;
    let mut out = BufWriter::with_capacity(64 * 1024, &temp.file);
    let outcome = gcode::objects::process(opened, &mut out, keep_going)?;
    if let Outcome::Untouched(_) = outcome {
        return Ok(Processed::Nothing);
    }
    out.flush()?;
    drop(out);
    temp.file.set_permissions(opened.permissions.clone())?;
    temp.file.sync_all()?;
    let temp = temp.near(&path.real)?;
    let _changes = files.changes.blocking_lock();
    let fault = |text: &str| Fault { text: text.to_owned(), of_file: false };
    let now = files.library.resolve(&path.root.name, path.relative.clone(), Need::Write);
    let now = now.map_err(|_| Fault { of_file: true, ..fault("the file is not to be changed") })?;
    let same = std::fs::metadata(&now.real).is_ok_and(|metadata| Stamp::of(&metadata) == opened.stamp);
    if !same || files.library.holds_loaded(&now, files.print.loaded_file().as_deref()) {
        return Err(fault("the file changed, or a print of it began"));
    }
    temp.persist(&now.real)?;
    files.own.left(now.place(), Seen::at(&now.real));
    Ok(Processed::Replaced)
}
