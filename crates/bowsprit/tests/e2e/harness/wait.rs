//! Waiting for conditions. The pauses here are between two looks at something outside; no test relies on their length.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Whatever a test waits for must happen within this time. Long, because only a test that fails waits for it, and a machine that does much else is slow.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Runs `future` within the deadline.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("not within {DEADLINE:?}: {what}"))
}

/// Looks until `look` gives something that `is_wanted`; shows the last thing seen when it does not.
pub(crate) async fn until<T: Debug, F: Future<Output = T>>(what: &str, look: impl FnMut() -> F, is_wanted: impl Fn(&T) -> bool) -> T {
    until_within(DEADLINE, what, look, is_wanted).await
}

/// [`until`] with another deadline.
pub(crate) async fn until_within<T: Debug, F: Future<Output = T>>(
    deadline: Duration,
    what: &str,
    mut look: impl FnMut() -> F,
    is_wanted: impl Fn(&T) -> bool,
) -> T {
    let start = Instant::now();
    loop {
        let seen = look().await;
        if is_wanted(&seen) {
            return seen;
        }
        assert!(start.elapsed() < deadline, "not within {deadline:?}: {what}; last seen: {seen:?}");
        sleep(LOOK).await;
    }
}
