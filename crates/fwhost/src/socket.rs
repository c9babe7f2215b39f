//! The socket file: is it there, is it still the one that we are connected to, and when is the next attempt due.
//!
//! The file is looked at by a thread of its own: a hung file system stops only the looking, and nobody is woken for a file that stays as it is.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// What tells one socket file from the next at the same path. Inode numbers are reused at once, so the change time counts, too
/// (wire/5-fwhost.md section 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

/// How the file at the path differs from the one that we are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Another file: a new host listens there.
    Replaced,
    /// The same inode was changed: a new host whose socket got the old number, or only new permissions.
    Touched,
}

impl Identity {
    /// Of the file at `path`; none when there is no such file.
    pub(crate) async fn of(path: &Path) -> Option<Self> {
        tokio::fs::metadata(path).await.ok().as_ref().map(Self::from)
    }

    /// Compares with a later look. A missing file proves nothing: a host that restarts removes it before it binds anew.
    pub(crate) fn compare(self, later: Option<Self>) -> Option<Change> {
        match later {
            Some(later) if (later.device, later.inode) != (self.device, self.inode) => Some(Change::Replaced),
            Some(later) if later.changed != self.changed => Some(Change::Touched),
            _ => None,
        }
    }
}

impl From<&std::fs::Metadata> for Identity {
    fn from(data: &std::fs::Metadata) -> Self {
        Self { device: data.dev(), inode: data.ino(), changed: (data.ctime(), data.ctime_nsec()) }
    }
}

/// Looks without news after which the file is looked at less often.
const LOOKS_BEFORE_REST: u32 = 40;

/// How many times longer the pauses are then.
const REST: u32 = 4;

/// The same while there is a connection, whose end is noticed anyway: the file only tells of a host that left its connection open.
const LONG_REST: u32 = 16;

/// What the thread is told.
enum Told {
    /// News is to be expected.
    Hurry,
    /// There is a connection.
    Connected,
}

/// The thread that looks at the file; it ends with this.
pub(crate) struct Lookout {
    seen: watch::Receiver<Option<Identity>>,
    tell: mpsc::Sender<Told>,
}

impl Lookout {
    /// Looks at the file at `path` at once and then at this interval; less often when there was no news for a while.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(path: PathBuf, poll: Duration) -> io::Result<Self> {
        let (show, seen) = watch::channel(None);
        let (tell, told) = mpsc::channel();
        std::thread::Builder::new().name("host-socket".to_owned()).spawn(move || {
            let (mut looks, mut rest) = (0, REST);
            loop {
                let now = std::fs::metadata(&path).ok().as_ref().map(Identity::from);
                let is_news = show.send_if_modified(|seen| std::mem::replace(seen, now) != now);
                looks = if is_news { 0 } else { LOOKS_BEFORE_REST.min(looks + 1) };
                match told.recv_timeout(if looks < LOOKS_BEFORE_REST { poll } else { poll * rest }) {
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Ok(Told::Hurry) => (looks, rest) = (0, REST),
                    Ok(Told::Connected) => rest = LONG_REST,
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Self { seen, tell })
    }

    /// News is to be expected: a look at once, and short pauses for a while.
    pub(crate) fn hurry(&self) {
        // Without the thread there is nobody to tell.
        let _ = self.tell.send(Told::Hurry);
    }

    /// There is a connection: after a while without news, long pauses until the next [`Lookout::hurry`].
    pub(crate) fn connected(&self) {
        let _ = self.tell.send(Told::Connected);
    }

    /// What was seen last.
    pub(crate) fn latest(&mut self) -> Option<Identity> {
        *self.seen.borrow_and_update()
    }

    /// Ready when something else is seen than at the last call of [`Lookout::latest`].
    pub(crate) async fn changed(&mut self) {
        if self.seen.changed().await.is_err() {
            // The thread is gone, which only its own panic could do.
            std::future::pending::<()>().await;
        }
    }
}

/// Paces attempts to connect: ever longer pauses while the file stays the same, none when it changes.
#[derive(Debug)]
pub(crate) struct Pace {
    poll: Duration,
    longest: Duration,
    failures: u32,
    tried: Option<Identity>,
    next: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(poll: Duration, longest: Duration) -> Self {
        Self { poll, longest, failures: 0, tried: None, next: None }
    }

    /// True when an attempt is due. The caller makes it then.
    pub(crate) fn is_due(&mut self, file: Option<Identity>, now: Instant) -> bool {
        if file != self.tried {
            self.succeeded();
        }
        self.tried = file;
        file.is_some() && self.next.is_none_or(|next| next <= now)
    }

    /// When an attempt at the same file is due; none when nothing forbids one now.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// The attempt failed, or the connection was of no use.
    pub(crate) fn failed(&mut self, now: Instant) {
        let pause = self.poll * 2u32.saturating_pow(self.failures.min(16));
        self.failures += 1;
        self.next = Some(now + pause.min(self.longest));
    }

    /// The connection was good.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Identity = Identity { device: 1, inode: 5, changed: (10, 0) };
    const REUSED: Identity = Identity { changed: (11, 0), ..A };
    const B: Identity = Identity { inode: 6, ..A };

    #[test]
    fn comparing() {
        assert_eq!(A.compare(Some(A)), None);
        assert_eq!(A.compare(None), None);
        assert_eq!(A.compare(Some(REUSED)), Some(Change::Touched));
        assert_eq!(A.compare(Some(B)), Some(Change::Replaced));
    }

    #[test]
    fn pauses_grow_up_to_the_limit_and_end_when_the_file_changes() {
        let (poll, longest) = (Duration::from_millis(250), Duration::from_secs(2));
        let mut pace = Pace::new(poll, longest);
        let mut now = Instant::now();
        assert!(!pace.is_due(None, now));
        let mut pauses = Vec::new();
        for _ in 0..6 {
            assert!(pace.is_due(Some(A), now));
            pace.failed(now);
            let start = now;
            while !pace.is_due(Some(A), now) {
                now += poll;
            }
            pauses.push((now - start).as_millis());
        }
        assert_eq!(pauses, [250, 500, 1000, 2000, 2000, 2000]);
        pace.failed(now);
        assert!(!pace.is_due(Some(A), now));
        assert!(pace.is_due(Some(REUSED), now), "at once");
        pace.failed(now);
        assert!(pace.is_due(Some(REUSED), now + poll), "and from the shortest pause again");
        pace.failed(now);
        pace.succeeded();
        assert!(pace.is_due(Some(REUSED), now));
    }

    #[tokio::test]
    async fn a_file_is_seen_when_it_comes_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let mut lookout = Lookout::start(path.clone(), Duration::from_millis(1)).unwrap();
        // Long enough for the pauses to have grown.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(lookout.latest(), None);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        lookout.changed().await;
        assert!(lookout.latest().is_some());
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        lookout.hurry();
        lookout.changed().await;
        assert_eq!(lookout.latest(), None);
    }

    #[tokio::test]
    async fn whoever_hurries_does_not_wait_for_the_end_of_a_pause() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let mut lookout = Lookout::start(path.clone(), Duration::from_secs(3600)).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        lookout.hurry();
        while lookout.latest().is_none() {
            lookout.changed().await;
        }
    }

    #[tokio::test]
    async fn identity_of_a_real_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        assert_eq!(Identity::of(&path).await, None);
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let first = Identity::of(&path).await.unwrap();
        assert_eq!(first.compare(Identity::of(&path).await), None);
    }
}
