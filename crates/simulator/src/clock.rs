//! The machine's monotonic clock, in which `eventtime` is given.

use rustix::time::{ClockId, clock_gettime};

/// Seconds of CLOCK_MONOTONIC, comparable between processes of one machine.
pub(crate) fn monotonic() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
