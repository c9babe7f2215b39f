//! Short looks at the disk share a thread: a page that starts asks for half a dozen folders at the same time, and waking a thread for each of
//! them costs more than reading them one after the other.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use protocol::ApiError;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::service::ended_abnormally;

/// Whoever waits so long for a shared thread gets another one: the look before may be at a disk that hangs.
const PATIENCE: Duration = Duration::from_millis(20);

type Look = Box<dyn FnOnce() + Send>;

#[derive(Clone, Default)]
pub(crate) struct Lane(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    looks: VecDeque<Look>,
    /// A thread is there, or on its way, that will come to what waits.
    is_served: bool,
    /// A thread is on its way: another one would have to wait for the same free place.
    is_coming: bool,
}

impl Lane {
    /// Carries out `look` on a thread that may wait.
    ///
    /// # Errors
    /// Those of `look`; 500 when it panicked.
    pub(crate) async fn look<T: Send + 'static>(&self, look: impl FnOnce() -> Result<T, ApiError> + Send + 'static) -> Result<T, ApiError> {
        let (tell, mut told) = oneshot::channel();
        let work = move || {
            // Nobody waits any more: the disk is spared.
            if !tell.is_closed() {
                // What panics tells nothing, and the thread goes on with the next one.
                let _ = catch_unwind(AssertUnwindSafe(|| tell.send(look())));
            }
        };
        if self.add(Box::new(work)) {
            self.serve();
        }
        loop {
            match timeout(PATIENCE, &mut told).await {
                Ok(outcome) => return outcome.unwrap_or_else(|error| Err(ended_abnormally(&error))),
                Err(_) if self.0.lock().looks.is_empty() => {}
                Err(_) => self.serve(),
            }
        }
    }

    /// True when a thread is needed.
    fn add(&self, look: Look) -> bool {
        let mut waiting = self.0.lock();
        waiting.looks.push_back(look);
        !std::mem::replace(&mut waiting.is_served, true)
    }

    /// Lets a thread come, unless one is on its way.
    fn serve(&self) {
        if std::mem::replace(&mut self.0.lock().is_coming, true) {
            return;
        }
        let lane = self.clone();
        drop(tokio::task::spawn_blocking(move || {
            lane.0.lock().is_coming = false;
            while let Some(look) = lane.next() {
                look();
            }
        }));
    }

    fn next(&self) -> Option<Look> {
        let mut waiting = self.0.lock();
        let next = waiting.looks.pop_front();
        waiting.is_served = next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread::ThreadId;

    fn thread() -> Result<ThreadId, ApiError> {
        Ok(std::thread::current().id())
    }

    #[tokio::test]
    async fn looks_at_the_same_time_share_a_thread() {
        let lane = Lane::default();
        let (release, hold) = mpsc::channel::<()>();
        let first = lane.look(move || {
            let _ = hold.recv_timeout(PATIENCE / 2);
            thread()
        });
        let (a, b, c) = tokio::join!(first, lane.look(thread), async {
            let c = lane.look(thread);
            drop(release);
            c.await
        });
        let (a, b, c) = (a.unwrap(), b.unwrap(), c.unwrap());
        assert!(a == b && b == c && a != std::thread::current().id());
        assert!(lane.look(thread).await.is_ok(), "and later ones are served, too");
    }

    #[test]
    fn without_free_threads_one_is_waited_for() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).enable_time().build().unwrap();
        runtime.block_on(async {
            let lane = Lane::default();
            let (release, hold) = mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || hold.recv().is_ok());
            let looks: Vec<_> = (0..5)
                .map(|_| {
                    tokio::spawn({
                        let lane = lane.clone();
                        async move { lane.look(thread).await }
                    })
                })
                .collect();
            tokio::time::sleep(PATIENCE * 5).await;
            assert!(lane.0.lock().is_coming, "one is asked for, and no more than one");
            drop(release);
            busy.await.unwrap();
            for look in looks {
                assert!(look.await.unwrap().is_ok());
            }
        });
    }

    #[tokio::test]
    async fn a_look_that_hangs_keeps_others_only_for_a_moment() {
        let lane = Lane::default();
        let (release, hold) = mpsc::channel::<()>();
        let hanging = tokio::spawn({
            let lane = lane.clone();
            async move { lane.look(move || Ok(hold.recv().is_ok())).await }
        });
        tokio::task::yield_now().await;
        for _ in 0..3 {
            let look = timeout(Duration::from_secs(30), lane.look(thread));
            assert!(look.await.unwrap().is_ok());
        }
        assert!(!hanging.is_finished());
        release.send(()).unwrap();
        assert!(hanging.await.unwrap().unwrap());
    }

    #[tokio::test]
    async fn a_look_that_panics_fails_alone() {
        let lane = Lane::default();
        let looks = (lane.look(|| -> Result<(), ApiError> { panic!("on purpose") }), lane.look(thread));
        let (broken, fine) = tokio::join!(looks.0, looks.1);
        assert_eq!(broken.unwrap_err().kind, protocol::ErrorKind::Internal);
        assert!(fine.is_ok());
    }
}
