//! Metadata of whole files: our own small ones, the shared real ones when present, and hostile ones.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod compare;
mod hostile;
mod own_files;
mod properties;
mod real_files;
