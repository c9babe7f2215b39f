//! The Linux host below the server: what it is, what it does, which devices it has.
//!
//! ```text
//! /proc, /sys ─► statistics: parse (pure) ◄─ sampler (files kept open) ◄─ service: once a second ─► notification
//!            └─► system: one small reader per subject, each empty where the machine has nothing to tell
//! ```
//! Every path is read below a [`Roots`], so that tests use a tree of their own. Source: document 1 *Host machine*, wire/1-core.md sections
//! 4.5 to 4.7 and 8.8 to 8.11.

mod machine;
mod roots;
mod statistics;
mod system;

pub use machine::Machine;
pub use roots::Roots;
pub use statistics::parse;
