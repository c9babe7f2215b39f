//! Failed logins per address: a few are free, then each one doubles the wait. Pure: the time is given.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Failed logins of an address that are free unless the configuration says otherwise.
pub(crate) const FREE_ATTEMPTS: u32 = 5;

/// First wait after the free attempts; it doubles with each further failure.
const FIRST_WAIT: Duration = Duration::from_secs(10);

/// Longest wait: a person who comes back with the right password gets in again the same evening.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Time after the last failure in which an address is remembered.
const MEMORY: Duration = Duration::from_secs(60 * 60);

/// Addresses that are remembered; the one that failed longest ago gives way.
const MAX_ADDRESSES: usize = 4096;

/// Addresses that failed to log in.
#[derive(Debug)]
pub(crate) struct Lockout {
    free: u32,
    failures: HashMap<IpAddr, Failures>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Lockout {
    pub(crate) fn new(free: u32) -> Self {
        Self { free, failures: HashMap::new() }
    }

    /// Begins an attempt. It counts as failed until [`Lockout::succeeded`]: attempts that are made all at once are no way around.
    ///
    /// # Errors
    /// The time to wait; such an attempt is not counted.
    pub(crate) fn begin(&mut self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let address = network(address);
        let before = self.failures.get(&address).filter(|failures| now.duration_since(failures.last) < MEMORY).copied();
        let count = before.map_or(0, |failures| failures.count);
        if let (Some(wait), Some(before)) = (self.wait(count), before) {
            let left = wait.saturating_sub(now.duration_since(before.last));
            if !left.is_zero() {
                return Err(left);
            }
        }
        if self.failures.len() >= MAX_ADDRESSES && !self.failures.contains_key(&address) {
            self.make_room(now);
        }
        self.failures.insert(address, Failures { count: count.saturating_add(1), last: now });
        Ok(())
    }

    /// Forgets the failures of an address.
    pub(crate) fn succeeded(&mut self, address: IpAddr) {
        self.failures.remove(&network(address));
    }

    /// The wait after so many failures.
    fn wait(&self, count: u32) -> Option<Duration> {
        let beyond = count.checked_sub(self.free)?;
        Some(FIRST_WAIT.saturating_mul(1 << beyond.min(16)).min(LONGEST_WAIT))
    }

    fn make_room(&mut self, now: Instant) {
        self.failures.retain(|_, failures| now.duration_since(failures.last) < MEMORY);
        if self.failures.len() >= MAX_ADDRESSES
            && let Some(oldest) = self.failures.iter().min_by_key(|(_, failures)| failures.last).map(|(address, _)| *address)
        {
            self.failures.remove(&oldest);
        }
    }
}

/// Whoever has one IPv6 address usually has a whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn waits_begin_after_the_free_attempts_and_double() {
        let (mut lockout, start) = (Lockout::new(2), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(lockout.begin(ip("10.0.0.1"), start).is_ok() && lockout.begin(ip("10.0.0.1"), start).is_ok());
        assert_eq!(lockout.begin(ip("10.0.0.1"), at(1)), Err(Duration::from_secs(9)));
        assert!(lockout.begin(ip("10.0.0.2"), at(1)).is_ok(), "another address");
        assert!(lockout.begin(ip("10.0.0.1"), at(10)).is_ok());
        assert_eq!(lockout.begin(ip("10.0.0.1"), at(10)), Err(Duration::from_secs(20)));
        lockout.succeeded(ip("10.0.0.1"));
        assert!(lockout.begin(ip("10.0.0.1"), at(10)).is_ok());
    }

    #[test]
    fn waits_and_memory_end() {
        let (mut lockout, start) = (Lockout::new(0), Instant::now());
        let mut now = start;
        for _ in 0..40 {
            assert!(lockout.begin(ip("10.0.0.1"), now).is_ok());
            now += LONGEST_WAIT;
        }
        assert_eq!(lockout.begin(ip("10.0.0.1"), now - Duration::from_secs(1)), Err(Duration::from_secs(1)));
        now += MEMORY;
        assert!(lockout.begin(ip("10.0.0.1"), now).is_ok());
        assert_eq!(lockout.begin(ip("10.0.0.1"), now), Err(FIRST_WAIT * 2), "as after the first failure");
    }

    #[test]
    fn neighbours_in_ipv6_count_as_one_and_the_table_is_bounded() {
        let (mut lockout, now) = (Lockout::new(1), Instant::now());
        assert!(lockout.begin(ip("2001:db8::1"), now).is_ok());
        assert!(lockout.begin(ip("2001:db8::ffff:2"), now).is_err());
        assert!(lockout.begin(ip("2001:db8:0:1::1"), now).is_ok());
        for host in 0..u32::try_from(MAX_ADDRESSES * 2).unwrap() {
            assert!(lockout.begin(IpAddr::from(std::net::Ipv4Addr::from_bits(host)), now).is_ok());
        }
        assert_eq!(lockout.failures.len(), MAX_ADDRESSES);
    }
}
