//! Announcements as clients see them. Source: document 2 *Announcement Entry*, wire/2-files-jobs.md section 8.

use schemars::JsonSchema;
use serde::Serialize;

/// One announcement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Announcement {
    /// Unique id; often with slashes.
    pub entry_id: String,
    /// Where there is more to read.
    pub url: String,
    /// Title.
    pub title: String,
    /// A few sentences; at most 512 characters when it comes from a feed.
    pub description: String,
    /// `normal` or `high`.
    pub priority: String,
    /// Unix seconds.
    pub date: f64,
    /// True when somebody dismissed it.
    pub dismissed: bool,
    /// Unix seconds of the dismissal.
    pub date_dismissed: Option<f64>,
    /// Seconds until the dismissal lapses; null when it does not.
    pub dismiss_wake: Option<f64>,
    /// `external` (from a feed; `moonlight` for clients that read that) or `internal`.
    pub source: String,
    /// The feed that it came with, or the component that made it.
    pub feed: String,
}

/// Payload of `notify_announcement_update`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AnnouncementEntries {
    /// All entries, newest first.
    pub entries: Vec<Announcement>,
}

/// Payload of the notifications about one entry.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AnnouncementId {
    /// Its id.
    pub entry_id: String,
}
