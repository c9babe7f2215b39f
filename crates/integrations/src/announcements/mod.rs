//! Announcements: news of the programs on this machine, from feeds and from our own components.
//!
//! ```text
//! feed, local file ─► rss ─► board ─► store ─► clients
//!     component ────────────┘  ▲
//!     dismissal, its end ──────┘
//! ```
//!
//! Nothing else needs the network: a feed that cannot be read is tried again later, in growing pauses, and is logged once.
//! Source: document 2 *Announcements*, wire/2-files-jobs.md section 8.

mod api;
mod board;
mod feed;
mod options;
pub mod rss;
mod schedule;
mod service;
#[cfg(test)]
mod tests;
mod worker;

pub use board::{MAX_ENTRIES, Notice};
pub use options::AnnouncementOptions;
pub use service::{Announcements, Settings};
