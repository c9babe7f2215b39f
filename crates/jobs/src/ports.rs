//! What jobs need of components on the same floor. The binary brings the two together.

use protocol::ApiError;
use rpc::transfer::Boxed;

/// A file as it was when something was written down about it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileStamp {
    /// Path relative to `gcodes`.
    pub filename: String,
    /// Bytes; not compared when none.
    pub size: Option<u64>,
    /// Unix seconds; not compared when none.
    pub modified: Option<f64>,
}

/// What a look at files found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looked {
    /// For each file, whether it is there and unchanged.
    pub unchanged: Vec<bool>,
    /// As long as [`JobFiles::is_current`] says so of this, another look would find the same; none when nobody knows.
    pub mark: Option<u64>,
}

/// The gcode files.
pub trait JobFiles: Send + Sync {
    /// Looks at files.
    fn unchanged(&self, files: Vec<FileStamp>) -> Boxed<'static, Looked>;

    /// True when nothing can have changed since a look had this mark.
    fn is_current(&self, mark: u64) -> bool;

    /// The metadata of a file as a JSON object without what the history itself adds; none when there is none.
    fn metadata(&self, filename: String) -> Boxed<'static, Option<String>>;

    /// Takes down at the file that it was printed.
    fn printed(&self, filename: String, start_time: f64, job_id: String) -> Boxed<'static, ()>;
}

/// Starts prints.
pub trait PrintStarter: Send + Sync {
    /// Asks the printer whether a print could start now: it is ready, and no job prints or is paused.
    fn is_free(&self) -> Boxed<'static, bool>;

    /// Starts a print of a file (relative to `gcodes`) for a user; ready when the firmware host has accepted it.
    fn start(&self, filename: String, user: Option<String>) -> Boxed<'static, Result<(), ApiError>>;
}

/// No files: nothing exists.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl JobFiles for NoFiles {
    fn unchanged(&self, files: Vec<FileStamp>) -> Boxed<'static, Looked> {
        Box::pin(async move { Looked { unchanged: vec![false; files.len()], mark: None } })
    }

    fn is_current(&self, _: u64) -> bool {
        false
    }

    fn metadata(&self, _: String) -> Boxed<'static, Option<String>> {
        Box::pin(async { None })
    }

    fn printed(&self, _: String, _: f64, _: String) -> Boxed<'static, ()> {
        Box::pin(async {})
    }
}
