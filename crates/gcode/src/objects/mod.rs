//! Object markers: turns the object comments of slicers into the firmware's object-exclusion commands.
//!
//! Two passes over the file with fixed buffers: the survey finds the objects and their outlines, the rewrite copies the file and
//! inserts definitions, starts and ends. The result is byte for byte that of `preprocess_cancellation` v0.2.0 (wire document 2,
//! section 4), except where noted:
//!
//! * the marks alone decide, so files of slicers we cannot name are processed too;
//! * `M486` without a count (`M486 T`) is understood; names then come from `M486 A`;
//! * an object mark among the leading comments counts as the end of them, so that no start line is lost;
//! * undecodable bytes pass through unchanged, and so do lines longer than the read window, which never count as marks or moves;
//! * a name of which nothing is left after cleaning becomes `object_` and the object's number;
//! * the end of an object that was never begun inserts nothing.
//!
//! For PrusaSlicer and its relatives, Slic3r, Cura and `M486` this is proven on recorded files; IdeaMaker follows the description.
//! Line ends become LF. Memory stays under 8 MB whatever the file: two buffers of 256 KiB, and names up to the limits below.
//!
//! A [`Verdict`] depends on nothing but the file's bytes: keep it until the file changes.

mod known;
mod lines;
mod marks;
mod moves;
mod rewrite;
mod survey;

use std::io::{self, Write};

use crate::Source;
use lines::Lines;
pub use marks::Family;
use rewrite::Rewriter;
use survey::Survey;

/// Name of this step in a file's `file_processors`.
pub const PROCESSOR: &str = "preprocess_cancellation";

/// Begin of the line that marks a processed file; the version follows.
pub const PROCESSED_MARK: &str = "; Pre-Processed for Cancel-Object support by preprocess_cancellation ";

/// How much of the file [`detect`] looks at: the metadata head (wire document 2, section 3.2).
const HEAD_BYTES: u64 = 1024 * 1024;

/// Most objects of one file. A printer bed holds a few hundred; more is damage or malice.
pub const MAX_OBJECTS: usize = 2048;

/// Longest object name or key in bytes; the firmware reads a definition as one command line.
pub const MAX_NAME_BYTES: usize = 512;

/// What a file's head says about object processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The head has object marks of this family: [`process`] has something to do.
    Marked(Family),
    /// Processed before; belongs into `file_processors` as [`PROCESSOR`].
    Processed,
    /// The slicer wrote the firmware's definitions itself.
    Defined,
    /// No object marks.
    NoObjects,
}

/// What [`process`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The output is complete and replaces the file.
    Written {
        /// Whose marks were turned into commands.
        family: Family,
        /// How many objects were defined.
        objects: usize,
        /// Size of the output in bytes.
        bytes: u64,
    },
    /// Nothing was written; the file stays as it is.
    Untouched(Verdict),
}

/// Why a file could not be processed; it stays as it was, whatever the output received so far.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// The file could not be read.
    #[error("cannot read the file: {0}")]
    Read(#[source] io::Error),
    /// The output could not be written.
    #[error("cannot write the processed file: {0}")]
    Write(#[source] io::Error),
    /// The caller wanted it to stop.
    #[error("object processing was cancelled")]
    Cancelled,
    /// The file changed between the two passes.
    #[error("the file changed while it was processed")]
    Changed,
    /// More than [`MAX_OBJECTS`].
    #[error("the file has more than {MAX_OBJECTS} objects")]
    TooManyObjects,
    /// An object's name has more than [`MAX_NAME_BYTES`].
    #[error("the name of an object is longer than {MAX_NAME_BYTES} bytes")]
    NameTooLong,
    /// The slicer announced another number of objects than there are: the file is not whole.
    #[error("the file announces {declared} objects and has {found}")]
    CountMismatch {
        /// Number announced.
        declared: usize,
        /// Number of objects found.
        found: usize,
    },
}

/// Looks at the first MiB of a file.
///
/// # Errors
/// [`ObjectsError::Read`].
pub fn detect<S: Source + ?Sized>(source: &S) -> Result<Verdict, ObjectsError> {
    let mut lines = Lines::new(source, &|| true);
    let mut verdict = Verdict::NoObjects;
    while lines.position() < HEAD_BYTES
        && let Some(line) = lines.next()?
    {
        let Some(text) = line.whole() else { continue };
        if text.starts_with(PROCESSED_MARK.as_bytes()) {
            return Ok(Verdict::Processed);
        }
        if text.starts_with(b"EXCLUDE_OBJECT_DEFINE NAME=") || text.starts_with(b"DEFINE_OBJECT NAME=") {
            verdict = Verdict::Defined;
        } else if let Some(family) = Family::triggered_by(text) {
            verdict = match verdict {
                Verdict::NoObjects => Verdict::Marked(family),
                Verdict::Marked(_) if family == Family::M486 => Verdict::Marked(family),
                decided => decided,
            };
        }
    }
    Ok(verdict)
}

/// Writes the processed form of a file to `out`, if there is one.
///
/// `keep_going` is asked before each read of the file, every 256 KiB.
///
/// # Errors
/// See [`ObjectsError`]; what `out` has received by then is worthless.
pub fn process<S: Source + ?Sized>(source: &S, out: &mut dyn Write, keep_going: &dyn Fn() -> bool) -> Result<Outcome, ObjectsError> {
    let family = match detect(source)? {
        Verdict::Marked(family) => family,
        other => return Ok(Outcome::Untouched(other)),
    };
    let mut survey = Survey::new(family);
    let mut lines = Lines::new(source, keep_going);
    while let Some(line) = lines.next()? {
        let Some(text) = line.whole() else { continue };
        // The mark may lie beyond the head that `detect` reads.
        if text.starts_with(PROCESSED_MARK.as_bytes()) {
            return Ok(Outcome::Untouched(Verdict::Processed));
        }
        survey.line(text)?;
    }
    let surveyed = lines.position();
    let found = survey.finish()?;
    if found.visible() == 0 {
        return Ok(Outcome::Untouched(Verdict::NoObjects));
    }

    let mut rewriter = Rewriter::new(&found, out);
    let mut lines = Lines::new(source, keep_going);
    while let Some(line) = lines.next()? {
        rewriter.line(line)?;
    }
    if lines.position() != surveyed {
        return Err(ObjectsError::Changed);
    }
    let bytes = rewriter.finish()?;
    Ok(Outcome::Written { family, objects: found.visible(), bytes })
}
