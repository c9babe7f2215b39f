//! The test of a webcam: where its addresses lead, and whether a picture comes.

use std::net::IpAddr;
use std::time::Duration;

use outbound::{Client, Reach, Request, own};
use protocol::webcam::Webcam;
use schemars::JsonSchema;
use serde::Serialize;

use super::address::{self, Address, Listening};
use super::relay::Places;

/// Time for the picture, and for a name to be found.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(1);

/// Largest picture in bytes.
const MAX_SNAPSHOT: usize = 16 * 1024 * 1024;

/// What the test found.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WebcamTest {
    /// Name of the webcam.
    name: String,
    /// True when a picture came.
    snapshot_reachable: bool,
    /// Where snapshots come from, seen from this machine; empty when there are none.
    snapshot_url: String,
    /// Where the stream comes from, seen from this machine.
    stream_url: String,
}

/// Resolves both addresses and fetches a snapshot. Paths lead where they lead for the relay.
pub(super) async fn test(client: &Client, places: &Places, webcam: &Webcam) -> WebcamTest {
    let [snapshot, stream] = [&webcam.snapshot_url, &webcam.stream_url].map(|address| resolve(places.complete(address)));
    let (snapshot_url, stream_url) = tokio::join!(snapshot, stream);
    let snapshot_reachable = is_reachable(client, &snapshot_url).await;
    WebcamTest { name: webcam.name.clone(), snapshot_reachable, snapshot_url, stream_url }
}

async fn is_reachable(client: &Client, url: &str) -> bool {
    let Ok(request) = Request::get(url) else { return false };
    // A snapshot of ourselves would be one of whatever else we answer, or make us call ourselves.
    let request = request.timeout(SNAPSHOT_TIMEOUT).max_body(MAX_SNAPSHOT).reach(Reach::NotOurselves);
    match client.send(request).await {
        Ok(answer) => answer.is_success(),
        Err(error) => {
            tracing::debug!(%error, "a snapshot does not come");
            false
        }
    }
}

/// A complete address, at loopback when it is this machine's.
async fn resolve(complete: String) -> String {
    let Some(address) = Address::parse(&complete) else { return complete };
    let Some(port) = address.port else { return complete };
    let Some(host) = first_address(&address.host, port).await else { return complete };
    if host.is_loopback() {
        return complete;
    }
    let listening = tokio::task::spawn_blocking(move || if own::is_own(host) { listening_on(port) } else { Listening::Otherwise }).await;
    address.at_loopback(listening.unwrap_or(Listening::Otherwise)).unwrap_or(complete)
}

async fn first_address(host: &str, port: u16) -> Option<IpAddr> {
    if let Ok(address) = host.parse() {
        return Some(address);
    }
    let found = tokio::time::timeout(SNAPSHOT_TIMEOUT, tokio::net::lookup_host((host, port))).await.ok()?.ok()?.next()?;
    Some(found.ip())
}

fn listening_on(port: u16) -> Listening {
    let table = |name: &str| std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    address::listening(&table("tcp"), &table("tcp6"), port)
}
