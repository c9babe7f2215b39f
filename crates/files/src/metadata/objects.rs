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
}

/// Processes a file if it has object marks. Any failure leaves it as it was, and counts as nothing to do.
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
        Err(error) => {
            tracing::warn!(file = %path.relative, error, "objects were not processed");
            Processed::Nothing
        }
    }
}

fn rewrite(files: &Files, path: &RootPath, opened: &Opened, keep_going: &dyn Fn() -> bool) -> Result<Processed, String> {
    let text = |error: std::io::Error| save_failed(&error).message;
    let temp = files.spool.create().map_err(text)?;
    let mut out = BufWriter::with_capacity(64 * 1024, &temp.file);
    let outcome = gcode::objects::process(opened, &mut out, keep_going).map_err(|error: ObjectsError| error.to_string())?;
    if let Outcome::Untouched(_) = outcome {
        return Ok(Processed::Nothing);
    }
    out.flush().map_err(text)?;
    drop(out);
    temp.file.set_permissions(opened.permissions.clone()).map_err(text)?;
    temp.file.sync_all().map_err(text)?;
    let _changes = files.changes.blocking_lock();
    let now = files.library.resolve(&path.root.name, path.relative.clone(), Need::Write).map_err(|_| "the file is not to be changed")?;
    let same = std::fs::metadata(&now.real).is_ok_and(|metadata| Stamp::of(&metadata) == opened.stamp);
    if !same || files.library.holds_loaded(&now, files.print.loaded_file().as_deref()) {
        return Err("the file changed, or a print of it began".to_owned());
    }
    temp.persist(&now.real).map_err(text)?;
    files.own.left(now.place(), Seen::at(&now.real));
    Ok(Processed::Replaced)
}
