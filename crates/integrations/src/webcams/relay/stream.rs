//! The one connection to a camera, from the first viewer until the last one has left.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use outbound::{Client, Reach, Request, Retry, header};
use parking_lot::Mutex;
use rpc::pictures::Picture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::frames::{self, Frames};

/// Time for a camera to begin its stream.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// A camera from which nothing comes for this time is asked anew; some send a picture only every few seconds.
pub const SILENCE: Duration = Duration::from_secs(15);

/// Viewers whose camera gives no picture for this time are sent away, so that front ends notice.
pub const GIVE_UP: Duration = Duration::from_secs(30);

/// The connection outlives its last viewer by this time: pages are reloaded, and views changed.
pub const LINGER: Duration = Duration::from_secs(2);

/// Pauses between attempts.
const RETRY: Retry = Retry { first: Duration::from_millis(500), longest: Duration::from_secs(5), attempts: None };

/// What viewers see.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The newest picture.
    pub(super) picture: Option<Arc<Picture>>,
    /// What is wrong since then, in words.
    pub(super) fault: Option<String>,
}

/// Streams under way, by complete address.
pub(super) type Streams = Arc<Mutex<HashMap<String, Arc<watch::Sender<Seen>>>>>;

/// Follows a camera while somebody watches, then forgets it.
pub(super) async fn follow(client: Client, streams: Streams, url: String, sender: Arc<watch::Sender<Seen>>, stop: CancellationToken) {
    tokio::select! {
        () = pump(&client, &url, &sender) => {}
        () = all_left(&streams, &url, &sender) => return,
        () = stop.cancelled() => {}
    }
    streams.lock().remove(&url);
}

/// Ready when nobody watches any more; nobody can join from then on.
async fn all_left(streams: &Streams, url: &str, sender: &watch::Sender<Seen>) {
    loop {
        sender.closed().await;
        sleep(LINGER).await;
        let mut streams = streams.lock();
        if sender.receiver_count() == 0 {
            streams.remove(url);
            return;
        }
    }
}

/// Shows pictures until there are none for too long.
async fn pump(client: &Client, url: &str, sender: &watch::Sender<Seen>) {
    let mut newest = Instant::now();
    let mut failures = 0;
    loop {
        let before = newest;
        let fault = read(client, url, sender, &mut newest).await;
        tracing::debug!(fault, "a webcam's stream has ended");
        failures = if newest == before { failures + 1 } else { 1 };
        sender.send_replace(Seen { picture: None, fault: Some(fault) });
        if newest.elapsed() >= GIVE_UP {
            return;
        }
        sleep(RETRY.pause_after(failures).unwrap_or(RETRY.longest)).await;
    }
}

/// Reads one stream to its end; gives the reason of the end.
async fn read(client: &Client, url: &str, sender: &watch::Sender<Seen>, newest: &mut Instant) -> String {
    let request = match Request::get(url) {
        Ok(request) => request.timeout(OPEN_TIMEOUT).reach(Reach::NotOurselves),
        Err(error) => return error.to_string(),
    };
    let mut answer = match client.open(request).await {
        Ok(answer) => answer,
        Err(error) => return error.to_string(),
    };
    if !(200..300).contains(&answer.status) {
        return format!("it answers with status {}", answer.status);
    }
    let content_type = answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let Some(boundary) = frames::boundary(content_type) else {
        return "what it answers is no stream of pictures (multipart/x-mixed-replace)".to_owned();
    };
    let mut frames = Frames::new(&boundary);
    loop {
        // A camera that only trickles must not hold its viewers for ever.
        let until = (Instant::now() + SILENCE).min(*newest + GIVE_UP);
        match timeout_at(until, answer.chunk()).await {
            Err(_) => return "nothing comes any more".to_owned(),
            Ok(Err(error)) => return error.to_string(),
            Ok(Ok(None)) => return "it has ended".to_owned(),
            Ok(Ok(Some(bytes))) => frames.push(&bytes),
        }
        loop {
            match frames.next() {
                Ok(None) => break,
                Err(malformed) => return malformed.to_string(),
                Ok(Some(picture)) => {
                    *newest = Instant::now();
                    sender.send_replace(Seen { picture: Some(Arc::new(picture)), fault: None });
                }
            }
        }
    }
}
