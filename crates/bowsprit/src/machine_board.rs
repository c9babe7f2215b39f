//! What the machine needs of people, as announcements of high priority.

use std::sync::Arc;

use integrations::Announcements;
use integrations::announcements::Notice;
use machine::{Alert, AlertBoard};
use rpc::transfer::Boxed;

/// Feed of these announcements.
const FEED: &str = "machine";

/// The board of announcements, as the machine uses it.
pub struct MachineBoard(pub Arc<Announcements>);

impl AlertBoard for MachineBoard {
    fn show(&self, alert: Option<Alert>) -> Boxed<'_, ()> {
        Box::pin(async move {
            let notice = alert.map(|Alert { title, description }| Notice {
                feed: FEED.to_owned(),
                title,
                description,
                url: String::new(),
                is_high: true,
            });
            if let Err(error) = self.0.replace(FEED, notice).await {
                tracing::warn!(%error, "what the machine needs cannot be announced");
            }
        })
    }
}
