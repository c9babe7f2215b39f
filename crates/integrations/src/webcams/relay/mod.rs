//! Pictures of cameras, passed on: one connection to a camera for all who watch it.
//!
//! ```text
//! camera ─► Frames ─► newest picture ─┬─► viewer      each takes the newest when it is ready for one
//!                                     ├─► viewer
//!                                     └─► viewer      the last one that leaves closes the connection to the camera
//! ```

mod frames;
mod places;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::unfold;
use outbound::{Client, Reach, Request};
use parking_lot::Mutex;
use protocol::{ApiError, ErrorKind};
use rpc::pictures::{Picture, Pictures};
use tokio::sync::{Mutex as Turn, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use frames::{MAX_PART_HEAD, MAX_PICTURE};
pub use places::Places;
pub use stream::{GIVE_UP, LINGER, SILENCE};

use stream::Seen;

/// Cameras whose streams are passed on at one time.
pub const MAX_STREAMS: usize = 16;

/// Viewers of one camera at one time.
pub const MAX_VIEWERS: usize = 64;

/// A viewer who has no picture after this time is told so.
pub const FIRST_PICTURE: Duration = Duration::from_secs(10);

/// Time for a single picture.
pub const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(5);

/// A single picture serves all who ask within this time.
pub const SNAPSHOT_FRESH: Duration = Duration::from_millis(300);

/// Addresses whose single pictures are remembered while they are fresh or fetched.
const MAX_REMEMBERED: usize = 32;

/// Single pictures that are fetched at one time.
const MAX_FETCHED: usize = 4;

/// The single picture of an address, or why there was none; who holds the turn fetches it for all who wait.
type Kept = Arc<Turn<Option<(Instant, Result<Arc<Picture>, ApiError>)>>>;

/// Passes pictures on.
pub(super) struct Relay {
    /// Streams have a number of exchanges of their own, for they do not end.
    streaming: Client,
    fetching: Client,
    pub(super) places: Places,
    streams: stream::Streams,
    snapshots: Mutex<HashMap<String, Kept>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Relay {
    /// `client` is asked for both kinds.
    pub(super) fn new(client: &Client, places: Places, tasks: TaskTracker, stop: CancellationToken) -> Self {
        // One more, so that a camera that is about to be left does not keep the next one waiting.
        let (streaming, fetching) = (client.lane(MAX_STREAMS + 1), client.lane(MAX_FETCHED));
        Self { streaming, fetching, places, streams: stream::Streams::default(), snapshots: Mutex::default(), tasks, stop }
    }

    /// Joins the viewers of an address.
    pub(super) async fn watch(self: Arc<Self>, address: String) -> Result<Pictures, ApiError> {
        let mut viewer = self.join(&address)?;
        let first = viewer.wait_for(|seen| seen.picture.is_some() || seen.fault.is_some());
        match timeout(FIRST_PICTURE, first).await {
            Ok(Ok(seen)) if seen.picture.is_some() => {}
            Ok(Ok(seen)) => return Err(unavailable(seen.fault.as_deref().unwrap_or("it has ended"))),
            Ok(Err(_)) => return Err(unavailable("it has ended")),
            Err(_) => return Err(unavailable("no picture came in time")),
        }
        viewer.mark_changed();
        Ok(Box::pin(unfold((viewer, None), |(mut viewer, mut shown): (watch::Receiver<Seen>, Option<Arc<Picture>>)| async move {
            loop {
                viewer.changed().await.ok()?;
                // A fault shows nothing new; the camera is asked again.
                let Some(picture) = viewer.borrow_and_update().picture.clone() else { continue };
                if shown.as_ref().is_none_or(|shown| !Arc::ptr_eq(shown, &picture)) {
                    shown = Some(picture.clone());
                    return Some((picture, (viewer, shown)));
                }
            }
        })))
    }

    fn join(&self, address: &str) -> Result<watch::Receiver<Seen>, ApiError> {
        let url = self.resolve(address)?;
        let mut streams = self.streams.lock();
        if let Some(sender) = streams.get(&url) {
            if sender.receiver_count() >= MAX_VIEWERS {
                return Err(ApiError::new(ErrorKind::TooMany, format!("This webcam has {MAX_VIEWERS} viewers already")));
            }
            return Ok(sender.subscribe());
        }
        if streams.len() >= MAX_STREAMS {
            return Err(ApiError::new(ErrorKind::TooMany, format!("{MAX_STREAMS} webcams are watched already")));
        }
        let (sender, receiver) = watch::channel(Seen::default());
        let sender = Arc::new(sender);
        streams.insert(url.clone(), sender.clone());
        self.tasks.spawn(stream::follow(self.streaming.clone(), self.streams.clone(), url, sender, self.stop.clone()));
        Ok(receiver)
    }

    /// One picture from an address of single pictures.
    pub(super) async fn snapshot(self: Arc<Self>, address: String) -> Result<Arc<Picture>, ApiError> {
        let url = self.resolve(&address)?;
        let kept = self.kept(&url)?;
        let Ok(mut kept) = timeout(SNAPSHOT_TIMEOUT, kept.lock()).await else { return Err(unavailable("others wait for it, too")) };
        if let Some((taken, result)) = &*kept
            && taken.elapsed() < SNAPSHOT_FRESH
        {
            return result.clone();
        }
        let result = self.fetch(&url).await;
        *kept = Some((Instant::now(), result.clone()));
        result
    }

    async fn fetch(&self, url: &str) -> Result<Arc<Picture>, ApiError> {
        let request = Request::get(url).map_err(|error| unavailable(&error.to_string()))?;
        let request = request.timeout(SNAPSHOT_TIMEOUT).max_body(MAX_PICTURE).reach(Reach::NotOurselves);
        let answer = self.fetching.send(request).await.map_err(|error| unavailable(&error.to_string()))?;
        if !answer.is_success() {
            return Err(unavailable(&format!("it answers with status {}", answer.status)));
        }
        let media_type = answer.header(&outbound::header::CONTENT_TYPE).and_then(frames::picture_type);
        let media_type = media_type.ok_or_else(|| unavailable("what it answers is no picture"))?;
        Ok(Arc::new(Picture { media_type, data: answer.body }))
    }

    /// The newest picture of a stream, for cameras that have nothing else.
    pub(super) async fn snapshot_of_stream(self: Arc<Self>, address: String) -> Result<Arc<Picture>, ApiError> {
        let mut pictures = self.watch(address).await?;
        futures_util::StreamExt::next(&mut pictures).await.ok_or_else(|| unavailable("it has ended"))
    }

    fn kept(&self, url: &str) -> Result<Kept, ApiError> {
        let is_fresh = |kept: &Kept| match kept.try_lock() {
            Ok(kept) => kept.as_ref().is_some_and(|(taken, _)| taken.elapsed() < SNAPSHOT_FRESH),
            // Somebody fetches it right now.
            Err(_) => true,
        };
        let mut snapshots = self.snapshots.lock();
        snapshots.retain(|known, kept| known == url || is_fresh(kept));
        if snapshots.len() >= MAX_REMEMBERED && !snapshots.contains_key(url) {
            return Err(ApiError::new(ErrorKind::TooMany, format!("{MAX_REMEMBERED} webcams are asked for pictures already")));
        }
        Ok(snapshots.entry(url.to_owned()).or_default().clone())
    }

    fn resolve(&self, address: &str) -> Result<String, ApiError> {
        self.places.fetched(address).ok_or_else(|| unavailable("it is not reached by HTTP"))
    }
}

fn unavailable(reason: &str) -> ApiError {
    ApiError::unavailable(format!("The webcam gives no pictures: {reason}"))
}
