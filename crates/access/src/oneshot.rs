//! Oneshot tokens: five seconds, one use, from the address that asked. wire/1-core.md section 6.5. Pure: the time is given.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use rpc::Identity;

/// Life of a oneshot token (document 1, *Limits*).
const LIFETIME: Duration = Duration::from_secs(5);

/// Tokens that are kept; the oldest gives way.
const MAX_TOKENS: usize = 1024;

/// The tokens that were not used yet.
#[derive(Debug, Default)]
pub(crate) struct Oneshots(HashMap<String, Oneshot>);

#[derive(Debug)]
struct Oneshot {
    identity: Identity,
    address: IpAddr,
    made: Instant,
}

impl Oneshots {
    /// Keeps a token that stands for `identity` when it comes from `address`.
    pub(crate) fn add(&mut self, token: String, identity: Identity, address: IpAddr, now: Instant) {
        if self.0.len() >= MAX_TOKENS {
            self.0.retain(|_, oneshot| now.duration_since(oneshot.made) < LIFETIME);
        }
        if self.0.len() >= MAX_TOKENS
            && let Some(oldest) = self.0.iter().min_by_key(|(_, oneshot)| oneshot.made).map(|(token, _)| token.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.insert(token, Oneshot { identity, address, made: now });
    }

    /// Uses a token up, whatever comes of it.
    pub(crate) fn take(&mut self, token: &str, address: IpAddr, now: Instant) -> Option<Identity> {
        let oneshot = self.0.remove(token)?;
        let fits = oneshot.address == address && now.duration_since(oneshot.made) < LIFETIME;
        fits.then_some(oneshot.identity)
    }

    /// Forgets the tokens of identities that are no more.
    pub(crate) fn forget(&mut self, is_lost: impl Fn(&Identity) -> bool) {
        self.0.retain(|_, oneshot| !is_lost(&oneshot.identity));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_works_once_in_time_and_from_its_address() {
        let (mut oneshots, now) = (Oneshots::default(), Instant::now());
        let [here, elsewhere]: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        for token in ["a", "b", "c", "d"] {
            oneshots.add(token.into(), Identity::Trusted, here, now);
        }
        assert_eq!(oneshots.take("a", here, now), Some(Identity::Trusted));
        assert_eq!(oneshots.take("a", here, now), None, "a second time");
        assert_eq!(oneshots.take("b", elsewhere, now), None);
        assert_eq!(oneshots.take("b", here, now), None, "used up by the wrong address");
        assert_eq!(oneshots.take("c", here, now + LIFETIME), None, "too late");
        oneshots.forget(|identity| *identity == Identity::Trusted);
        assert_eq!(oneshots.take("d", here, now), None);
        assert_eq!(oneshots.take("", here, now), None);
    }

    #[test]
    fn the_table_is_bounded() {
        let (mut oneshots, now) = (Oneshots::default(), Instant::now());
        let here = "10.0.0.1".parse().unwrap();
        for number in 0..MAX_TOKENS as u64 + 10 {
            oneshots.add(number.to_string(), Identity::Trusted, here, now + Duration::from_micros(number));
        }
        assert_eq!(oneshots.0.len(), MAX_TOKENS);
        assert!(oneshots.take("0", here, now).is_none() && oneshots.take("500", here, now).is_some());
    }
}
