//! Trusted clients that are given by name: their addresses are looked up beforehand, never while a request waits.
//!
//! The names are resolved, not the addresses of callers: whoever owns a block of addresses also writes the names that those resolve to
//! (docs/decisions/0007).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use runtime::StopToken;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::network::plain;

/// Time that one look-up may take.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Time after which names are looked up again.
const REFRESH: Duration = Duration::from_secs(300);

/// Least time between two look-ups when somebody comes whose address is not known: it may be a listed client with a new address.
const MISS_PAUSE: Duration = Duration::from_secs(10);

/// Time for which the last known addresses hold when a name cannot be looked up.
const MEMORY: Duration = Duration::from_secs(3600);

/// Addresses of one name that count.
const MAX_ADDRESSES: usize = 16;

/// Names that count; each costs a look-up every few minutes.
const MAX_NAMES: usize = 32;

/// Names and what they resolve to.
#[derive(Debug, Default)]
pub struct Names {
    names: Vec<String>,
    addresses: ArcSwap<Vec<IpAddr>>,
    missed: Notify,
}

impl Names {
    pub(crate) fn new(mut names: Vec<String>, warnings: &mut Vec<String>) -> Self {
        if names.len() > MAX_NAMES {
            warnings.push(format!("[authorization] trusted_clients: only the first {MAX_NAMES} of {} host names are used", names.len()));
            names.truncate(MAX_NAMES);
        }
        Self { names, ..Self::default() }
    }

    /// True when there is nothing to look up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// True when a name is known to resolve to this address.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let is_known = self.addresses.load().contains(&address);
        if !is_known {
            self.missed.notify_one();
        }
        is_known
    }

    /// Keeps the addresses true until the server stops.
    pub async fn keep_resolved(self: Arc<Self>, stop: StopToken) {
        let mut known: HashMap<&str, (Vec<IpAddr>, Instant)> = HashMap::new();
        while !stop.is_cancelled() {
            let began = Instant::now();
            for name in &self.names {
                tokio::select! {
                    addresses = look_up(name) => match addresses {
                        Some(addresses) => drop(known.insert(name, (addresses, Instant::now()))),
                        None => tracing::debug!(name, "a trusted client cannot be looked up"),
                    },
                    () = stop.cancelled() => return,
                }
            }
            known.retain(|_, (_, when)| when.elapsed() < MEMORY);
            self.addresses.store(Arc::new(known.values().flat_map(|(addresses, _)| addresses).copied().collect()));
            tokio::select! {
                () = sleep_until(began + REFRESH) => {}
                () = self.missed.notified() => tokio::select! {
                    () = sleep(MISS_PAUSE.saturating_sub(began.elapsed())) => {}
                    () = stop.cancelled() => return,
                },
                () = stop.cancelled() => return,
            }
        }
    }
}

async fn look_up(name: &str) -> Option<Vec<IpAddr>> {
    let found = timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((name, 0))).await.ok()?.ok()?;
    Some(found.map(|address| plain(address.ip())).take(MAX_ADDRESSES).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_become_addresses_in_the_background() {
        let mut warnings = Vec::new();
        let names = Arc::new(Names::new(vec!["localhost".into(), "no-such-host.invalid".into()], &mut warnings));
        assert!(!names.contains("127.0.0.1".parse().unwrap()), "before anything was looked up");
        let stop = StopToken::new();
        let keeping = tokio::spawn(names.clone().keep_resolved(stop.clone()));
        let until_known = async {
            while !names.contains("127.0.0.1".parse().unwrap()) {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(20), until_known).await.unwrap();
        assert!(!names.contains("10.0.0.1".parse().unwrap()));
        stop.cancel();
        keeping.await.unwrap();
    }

    #[test]
    fn names_are_bounded() {
        let mut warnings = Vec::new();
        let names = Names::new((0..100).map(|number| format!("host{number}.lan")).collect(), &mut warnings);
        assert_eq!((names.names.len(), warnings.len()), (MAX_NAMES, 1));
        assert!(Names::default().is_empty() && !Names::default().contains("10.0.0.1".parse().unwrap()));
    }
}
