//! One file per command.

pub mod check_config;
pub mod contract;
pub mod import;
pub mod metadata;
pub mod reference;
pub mod serve;
pub mod simulate;

use std::io::Write;

/// Threads for disk work, started when needed: more than all uploads that may be under way at once.
const BLOCKING_THREADS: usize = 64;

/// The runtime of every command. One thread, the main one, carries all tasks: the print comes first, it serves far more clients than a printer has,
/// and several would wake each other up. What takes time goes to threads of its own.
///
/// # Errors
/// When threads cannot be started.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().max_blocking_threads(BLOCKING_THREADS).thread_name("bowsprit").enable_all().build()
}

/// Writes a line to standard output; a closed pipe is no error.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Writes a line to standard error.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
