//! Operations of document 2 *Announcements*.

use std::sync::Arc;

use protocol::announcement::Announcement;
use protocol::{ApiError, Form};
use rpc::{Access, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::feed;
use super::service::Announcements;

#[derive(Deserialize, JsonSchema)]
struct ListParams {
    /// Whether dismissed entries are listed, too.
    #[serde(default = "yes")]
    include_dismissed: bool,
}

fn yes() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
struct AnnouncementList {
    /// Newest first.
    entries: Vec<Announcement>,
    /// Feeds that are checked.
    feeds: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct UpdateParams {
    /// Feeds to read; all when absent.
    #[serde(default)]
    subscriptions: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct Updated {
    entries: Vec<Announcement>,
    /// True when entries came or went.
    modified: bool,
}

#[derive(Deserialize, JsonSchema)]
struct DismissParams {
    entry_id: String,
    /// Seconds after which the dismissal lapses; null for never.
    #[serde(default)]
    wake_time: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Dismissed {
    entry_id: String,
}

#[derive(Serialize, JsonSchema)]
struct FeedList {
    feeds: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct FeedParams {
    /// Name of the feed, in any case.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct FeedChange {
    feed: String,
    action: FeedAction,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FeedAction {
    Added,
    Skipped,
    Removed,
}

impl Announcements {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.announcements.list")
            .get("/server/announcements/list")
            .access(Access::View)
            .doc("All announcements, newest first.")
            .answer(self, |board, call, params: ListParams| {
                let entries = board.entries(call.form, params.include_dismissed);
                Ok(AnnouncementList { entries, feeds: board.feed_names(call.form) })
            });
        registry
            .op("server.announcements.update")
            .post("/server/announcements/update")
            .access(Access::Control)
            .doc("Reads feeds now.")
            .handle(self, |board, call, params: UpdateParams| async move { board.update(call.form, params).await });
        registry
            .op("server.announcements.dismiss")
            .post("/server/announcements/dismiss")
            .access(Access::Control)
            .doc("Dismisses an announcement, for some time or for ever.")
            .handle(self, |board, _, params: DismissParams| async move {
                board.dismiss(&params.entry_id, params.wake_time).await?;
                Ok(Dismissed { entry_id: params.entry_id })
            });
        registry
            .op("server.announcements.feeds")
            .get("/server/announcements/feeds")
            .access(Access::View)
            .doc("Feeds that are checked.")
            .answer(self, |board, call, (): ()| Ok(FeedList { feeds: board.feed_names(call.form) }));
        registry
            .op("server.announcements.post_feed")
            .post("/server/announcements/feed")
            .access(Access::Control)
            .doc("Subscribes to a feed and reads it.")
            .handle(self, |board, call, params: FeedParams| async move { board.add_feed(call.form, &params.name).await });
        registry
            .op("server.announcements.delete_feed")
            .delete("/server/announcements/feed")
            .access(Access::Control)
            .doc("Ends a subscription and removes what came with it.")
            .handle(self, |board, call, params: FeedParams| async move {
                let feed = feed::parse(&params.name)?;
                board.unsubscribe(&feed).await?;
                Ok(FeedChange { feed: feed::shown(&feed, call.form), action: FeedAction::Removed })
            });
    }

    fn feed_names(&self, form: Form) -> Vec<String> {
        self.feeds().iter().map(|feed| feed::shown(feed, form)).collect()
    }

    async fn update(&self, form: Form, params: UpdateParams) -> Result<Updated, ApiError> {
        let known = self.feeds();
        let wanted = match params.subscriptions {
            None => known,
            Some(names) => {
                let find = |name: &String| {
                    let feed = feed::parse(name).ok().filter(|feed| known.contains(feed));
                    feed.ok_or_else(|| ApiError::bad_request(format!("No subscription for {name}")))
                };
                names.iter().map(find).collect::<Result<_, _>>()?
            }
        };
        let modified = self.look_at(wanted).await;
        Ok(Updated { entries: self.entries(form, true), modified })
    }

    async fn add_feed(&self, form: Form, name: &str) -> Result<FeedChange, ApiError> {
        let feed = feed::parse(name)?;
        let is_new = self.subscribe(&feed).await?;
        if is_new {
            self.look_at(vec![feed.clone()]).await;
            self.changed.notify_one();
        }
        let action = if is_new { FeedAction::Added } else { FeedAction::Skipped };
        Ok(FeedChange { feed: feed::shown(&feed, form), action })
    }
}
