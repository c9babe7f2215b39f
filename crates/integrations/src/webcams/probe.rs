//! The test of a webcam: where its addresses lead, and whether a picture comes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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
    /// The complete address of snapshots, for the caller; empty when there are none.
    snapshot_url: String,
    /// The complete address of the stream, for the caller.
    stream_url: String,
}

/// Completes both addresses for a caller at `peer`, and fetches a snapshot. We fetch it from where it is for this machine, as the relay does;
/// nobody else could open an address at loopback.
pub(super) async fn test(client: &Client, places: &Places, webcam: &Webcam, peer: Option<IpAddr>) -> WebcamTest {
    let machine = machine_for(peer);
    let [snapshot_url, stream_url] = [&webcam.snapshot_url, &webcam.stream_url].map(|address| places.complete_for_others(address, machine));
    let snapshot_reachable = is_reachable(client, &resolve(places.complete(&webcam.snapshot_url)).await).await;
    WebcamTest { name: webcam.name.clone(), snapshot_reachable, snapshot_url, stream_url }
}

/// The address of this machine that the caller sees; its first one for callers on this machine, also for a proxy.
fn machine_for(peer: Option<IpAddr>) -> IpAddr {
    let distant = peer.map(|peer| peer.to_canonical()).filter(|peer| !peer.is_loopback());
    let seen = distant.and_then(|peer| own::address_towards(SocketAddr::new(peer, 80)));
    let first = || own::addresses().into_iter().min_by_key(IpAddr::is_ipv6);
    seen.or_else(first).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
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
