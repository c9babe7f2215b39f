//! The task that reads feeds and ends dismissals.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use outbound::{Request, Validators};
use runtime::StopToken;
use store::StoreError;
use tokio::time::{Instant, sleep_until};

use super::rss::{self, Item, MAX_FEED};
use super::service::{Announcements, FileState, now};

/// Time for a feed.
const FEED_TIMEOUT: Duration = Duration::from_secs(8);

/// Longest sleep while a dismissal is to lapse: clocks of boards jump when they find the time.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Sleep when there is nothing to wait for.
const IDLE_SLEEP: Duration = Duration::from_secs(24 * 3600);

/// What a look at a feed gave.
enum Look {
    /// The same as before.
    Unchanged,
    /// What it holds now.
    Items(Vec<Item>, Version),
}

/// Which state of a feed was read.
enum Version {
    /// What its server says of it.
    Remote(Validators),
    /// The state of its local file.
    Local(FileState),
}

impl Announcements {
    /// Reads feeds when they are due and ends dismissals when they lapse, until the stop.
    pub async fn run(&self, stop: StopToken) {
        self.make_folder().await;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.work() => {}
            }
            let next = self.next();
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.notified() => {}
                () = sleep_until(next) => {}
            }
        }
    }

    async fn work(&self) {
        if let Err(error) = self.wake().await {
            tracing::error!(%error, "the end of a dismissal cannot be kept");
        }
        let due = self.schedule.lock().due(self.feeds_to_read(), Instant::now());
        self.look_at(due).await;
    }

    fn next(&self) -> Instant {
        let start = Instant::now();
        let feeds = self.schedule.lock().next(&self.feeds_to_read(), start).unwrap_or(start + IDLE_SLEEP);
        let wake = self.next_wake().map(|wake| start + Duration::from_secs_f64((wake - now()).clamp(0.0, LONGEST_SLEEP.as_secs_f64())));
        wake.map_or(feeds, |wake| wake.min(feeds))
    }

    /// The feeds, unless reading them is switched off.
    fn feeds_to_read(&self) -> Vec<String> {
        let options = &self.settings.options;
        if options.dev_mode || options.enable_remote_feeds { self.feeds() } else { Vec::new() }
    }

    /// Reads these feeds at the same time; true when entries came or went. Feeds that cannot be read change nothing.
    pub(super) async fn look_at(&self, feeds: Vec<String>) -> bool {
        let allowed = self.feeds_to_read();
        let feeds: Vec<_> = feeds.into_iter().filter(|feed| allowed.contains(feed)).collect();
        join_all(feeds.iter().map(|feed| self.look(feed))).await.contains(&true)
    }

    async fn look(&self, feed: &str) -> bool {
        let looked = if self.settings.options.dev_mode { self.read_file(feed).await } else { self.fetch(feed).await };
        let taken = match looked {
            Ok(Look::Unchanged) => Ok(false),
            Ok(Look::Items(items, version)) => self.take_version(feed, &items, version).await.map_err(|error| error.to_string()),
            Err(reason) => Err(reason),
        };
        let is_news = self.schedule.lock().note(feed, taken.is_ok(), Instant::now());
        match &taken {
            Err(reason) if is_news => tracing::info!(feed, reason, "announcements cannot be read; tried again in growing pauses"),
            Ok(_) if is_news => tracing::info!(feed, "announcements can be read again"),
            _ => {}
        }
        taken.unwrap_or(false)
    }

    async fn take_version(&self, feed: &str, items: &[Item], version: Version) -> Result<bool, StoreError> {
        match version {
            Version::Remote(validators) => self.take(feed, items, validators).await,
            Version::Local(state) => {
                let has_changed = self.take(feed, items, Validators::default()).await?;
                // Only now: a file that could not be read, or whose entries could not be kept, is looked at again, and nobody is told that
                // it is the same as before while its entries are still on their way.
                self.seen_files.lock().insert(feed.to_owned(), state);
                Ok(has_changed)
            }
        }
    }

    async fn fetch(&self, feed: &str) -> Result<Look, String> {
        let url = format!("{}/{feed}.xml", self.settings.options.feeds_url.trim_end_matches('/'));
        let request = Request::get(&url)
            .and_then(|request| request.header("Accept", "application/xml"))
            .map_err(|error| error.to_string())?
            .unless_unchanged(&self.validators(feed))
            .timeout(FEED_TIMEOUT)
            .max_body(MAX_FEED);
        let answer = self.client.send(request).await.map_err(|error| error.to_string())?;
        match answer.status {
            304 => Ok(Look::Unchanged),
            200 => Ok(Look::Items(parse(answer.body.to_vec()).await?, Version::Remote(answer.validators()))),
            status => Err(format!("the answer has status {status}")),
        }
    }

    /// Reads the local file when it is another than the one that was read last. A feed without a file has no entries to give.
    async fn read_file(&self, feed: &str) -> Result<Look, String> {
        let path = self.settings.folder.join(format!("{feed}.xml"));
        let known = self.seen_files.lock().get(feed).copied();
        let read = tokio::task::spawn_blocking(move || read_if_changed(&path, known)).await.map_err(|error| error.to_string())?;
        let Some((bytes, state)) = read.map_err(|error| error.to_string())? else { return Ok(Look::Unchanged) };
        Ok(Look::Items(parse(bytes).await?, Version::Local(state)))
    }

    /// Makes the folder of local feeds in developer mode.
    async fn make_folder(&self) {
        let folder = self.settings.folder.clone();
        if self.settings.options.dev_mode
            && let Ok(Err(error)) = tokio::task::spawn_blocking(move || std::fs::create_dir_all(folder)).await
        {
            tracing::warn!(%error, folder = %self.settings.folder.display(), "the folder of local feeds cannot be made");
        }
    }
}

/// A megabyte takes some milliseconds: not on a thread that answers clients.
async fn parse(bytes: Vec<u8>) -> Result<Vec<Item>, String> {
    let parsed = tokio::task::spawn_blocking(move || rss::parse(&bytes)).await.map_err(|error| error.to_string())?;
    parsed.map_err(|error| error.to_string())
}

fn read_if_changed(path: &Path, known: Option<FileState>) -> std::io::Result<Option<(Vec<u8>, FileState)>> {
    use std::io::Read;
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let metadata = file.metadata()?;
    let state = (metadata.modified()?, metadata.len());
    if known == Some(state) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(MAX_FEED as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some((bytes, state)))
}
