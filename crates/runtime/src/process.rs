//! What the process knows about itself: when it started, the monotonic clock, its memory.

use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

static START: LazyLock<Start> = LazyLock::new(|| Start { instant: Instant::now(), wall: SystemTime::now() });

/// When the process started, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    instant: Instant,
    wall: SystemTime,
}

impl Start {
    /// Time since the start; jumps of the wall clock do not change it.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.instant.elapsed()
    }

    /// Start in seconds since 1970, as the wall clock stood then. Boards without a battery clock start in the past.
    #[must_use]
    pub fn epoch_seconds(&self) -> f64 {
        self.wall.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

/// The start of the process, which is the first call of this function: `main` calls it first.
#[must_use]
pub fn start() -> Start {
    *START
}

/// Seconds on `CLOCK_MONOTONIC`: the `eventtime` of answers and notifications. Counts from the boot of the machine.
#[must_use]
pub fn monotonic_seconds() -> f64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Memory of this process in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Address space in use.
    pub virtual_bytes: u64,
    /// Pages in memory, shared ones included.
    pub resident_bytes: u64,
}

/// Reads the memory of this process from `/proc/self/statm`; `None` where there is no such file.
#[must_use]
pub fn memory() -> Option<Memory> {
    parse_statm(&fs::read_to_string("/proc/self/statm").ok()?, rustix::param::page_size() as u64)
}

/// Parses `/proc/self/statm`: sizes in pages, of which the first is the address space and the second what is resident.
fn parse_statm(text: &str, page_bytes: u64) -> Option<Memory> {
    let mut bytes = text.split_ascii_whitespace().map(|pages| pages.parse::<u64>().ok()?.checked_mul(page_bytes));
    Some(Memory { virtual_bytes: bytes.next()??, resident_bytes: bytes.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statm_counts_pages() {
        let memory = Memory { virtual_bytes: 2000 * 4096, resident_bytes: 150 * 4096 };
        assert_eq!(parse_statm("2000 150 120 40 0 600 0\n", 4096), Some(memory));
        for broken in ["", "2000", "2000 x", "-1 2", "18446744073709551615 1"] {
            assert_eq!(parse_statm(broken, 4096), None, "{broken:?}");
        }
    }

    #[test]
    fn own_memory_is_plausible() {
        let memory = memory().unwrap();
        assert!(memory.resident_bytes > 100_000 && memory.resident_bytes <= memory.virtual_bytes, "{memory:?}");
    }

    #[test]
    fn clocks_go_forward() {
        let (first, second) = (monotonic_seconds(), monotonic_seconds());
        assert!(first > 0.0 && second >= first);
        let begun = start();
        assert!(begun.epoch_seconds() > 1.6e9);
        assert_eq!(start().instant, begun.instant);
        assert!(start().uptime() >= Duration::ZERO);
    }
}
