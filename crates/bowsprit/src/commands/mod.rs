//! One file per command.

pub mod check_config;
pub mod contract;
pub mod import;
pub mod metadata;
pub mod reference;
pub mod serve;
pub mod simulate;

use std::future::Future;
use std::io::Write;
use std::time::Duration;

/// Threads for work that waits, started when needed: more than all uploads and all templates that may wait for something at once, so that the disk is
/// there for others.
const BLOCKING_THREADS: usize = 160;

/// Time for disk work that is still under way at the end. What was acknowledged is on the disk by then; a disk that hangs shall not keep the process.
const LAST_WORK: Duration = Duration::from_secs(5);

/// Runs the work of a command. One thread, the main one, carries all tasks: the print comes first, it serves far more clients than a printer has,
/// and several would wake each other up. What takes time goes to threads of its own.
///
/// # Errors
/// When threads cannot be started.
pub fn run<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(BLOCKING_THREADS).thread_name("bowsprit").enable_all().build()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_WORK);
    Ok(outcome)
}

/// Writes a line to standard output; a closed pipe is no error.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Writes a line to standard error.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
