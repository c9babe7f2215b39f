//! Changes that other programs make: seen by inotify in a thread of its own, gathered, told like our own.
//!
//! ```text
//! kernel ─► tree (which folder?) ─► gather (what happened?, pure) ─► apply (ours? metadata, notification)
//! kernel ─► mounts (what was plugged in or out?) ─► everything is watched anew and looked at again
//! clock  ─► look (where nothing is told) ─────────► what differs is looked at again
//! ```
//! What a request has done is told by that request; `own` recognises it here. Source: wire/2-files-jobs.md section 2.

mod apply;
mod gather;
mod look;
mod mounts;
mod news;
mod own;
#[cfg(test)]
mod tests;
mod thread;
mod tree;

pub(crate) use gather::Place;
pub(crate) use news::News;
pub(crate) use own::{Own, Seen};
pub(crate) use thread::{Signal, start};
