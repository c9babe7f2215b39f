//! Where passwords are hashed: on blocking threads, one at a time, so that logins never take the memory or the processor that a print needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use protocol::{ApiError, ErrorKind};
use tokio::sync::Semaphore;

/// Passwords that are hashed at the same time; each takes 19 MiB.
const AT_ONCE: usize = 1;

/// Passwords that may wait for being hashed; logins beyond that are refused at once.
const MAX_WAITING: usize = 16;

pub(crate) struct Hasher {
    slots: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Hasher {
    pub(crate) fn new() -> Self {
        Self { slots: Arc::new(Semaphore::new(AT_ONCE)), waiting: Arc::default() }
    }

    /// Runs slow `work` on a blocking thread when it is its turn.
    ///
    /// # Errors
    /// 429 when too many wait; 500 when the work panicked.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
        let waiting = Waiting(self.waiting.clone());
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            return Err(ApiError::new(ErrorKind::TooMany, "Too many logins at once; try again"));
        }
        let stopped = |_| ApiError::internal("The server stops");
        let slot = self.slots.clone().acquire_owned().await.map_err(stopped)?;
        // The slot goes along: who stops waiting does not make room for another hash at the same time.
        let running = tokio::task::spawn_blocking(move || {
            let result = work();
            drop((slot, waiting));
            result
        });
        running.await.map_err(|_| ApiError::internal("Internal error; the log has details"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test(flavor = "multi_thread")]
    async fn one_at_a_time_and_not_too_many_in_line() {
        let hasher = Arc::new(Hasher::new());
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let running: Vec<_> = (0..MAX_WAITING)
            .map(|_| {
                let (hasher, held) = (hasher.clone(), held.clone());
                tokio::spawn(async move { hasher.run(move || held.try_lock().unwrap().recv().unwrap()).await })
            })
            .collect();
        while hasher.waiting.load(Ordering::Relaxed) < MAX_WAITING {
            tokio::task::yield_now().await;
        }
        assert_eq!(hasher.run(|| ()).await.unwrap_err().kind, ErrorKind::TooMany);
        running.iter().for_each(|_| release.send(()).unwrap());
        for task in running {
            task.await.unwrap().unwrap();
        }
        assert!(hasher.run(|| true).await.unwrap());
    }
}
