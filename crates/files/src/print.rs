//! What the file manager must know about the print job: which file is loaded, and how to start one.

use std::sync::Arc;

use protocol::ApiError;
use rpc::Call;
use rpc::transfer::Boxed;

/// The print job, as far as files are concerned.
pub trait PrintControl: Send + Sync {
    /// The loaded file relative to `gcodes`: only while the firmware host is ready and printing or paused (wire/2-files-jobs.md section 1.8).
    /// May be called on a blocking thread and must not wait.
    fn loaded_file(&self) -> Option<String>;

    /// True when a print could be started now: the firmware host is ready and no job prints or is paused.
    fn can_start(&self) -> bool;

    /// Starts printing a file (relative to `gcodes`) on behalf of a caller; ready when the firmware host has accepted it.
    fn start(&self, filename: String, call: Arc<Call>) -> Boxed<'static, Result<(), ApiError>>;

    /// Puts a file (relative to `gcodes`) into the job queue on behalf of a caller.
    fn queue(&self, filename: String, call: Arc<Call>) -> Boxed<'static, Result<(), ApiError>>;
}

/// No printer: nothing is loaded, nothing can be started.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPrinter;

impl PrintControl for NoPrinter {
    fn loaded_file(&self) -> Option<String> {
        None
    }

    fn can_start(&self) -> bool {
        false
    }

    fn start(&self, _: String, _: Arc<Call>) -> Boxed<'static, Result<(), ApiError>> {
        Box::pin(async { Err(ApiError::unavailable("No printer")) })
    }

    fn queue(&self, _: String, _: Arc<Call>) -> Boxed<'static, Result<(), ApiError>> {
        Box::pin(async { Err(ApiError::unavailable("No job queue")) })
    }
}
