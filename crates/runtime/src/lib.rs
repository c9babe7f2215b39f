//! Mechanisms that every component stands on and that know no component: the supervisor of tasks, the end of the
//! process, logging, other programs, the beat of what is done again and again, and the process's own clock and memory.
//!
//! None of them wakes up on its own: an idle server costs nothing here.

pub mod beat;
pub mod command;
pub mod log;
pub mod process;
mod secret;
pub mod shutdown;
pub mod supervisor;

pub use log::{LogHandle, LogOptions, LogThrottle, Verbosity};
pub use secret::Secret;
pub use shutdown::{Ending, Lifecycle};
pub use supervisor::{StopToken, Supervisor, TaskTracker};
