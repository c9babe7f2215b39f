//! Securing connections with the certificate as it is now.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::identity::{Identity, TlsError};
use crate::{Source, Stream};

/// A client must have agreed on keys within this time.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two looks whether the files have changed.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Pause between two looks whether a certificate of ours is about to end.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(3600);

/// The clock was set when it is so far from where the time that passed would have brought it. Within an hour it is never trimmed by as much.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// When and how large the two files are.
type Stamp = [Option<(SystemTime, u64)>; 2];

/// Secures connections. The certificate may change while it does.
pub struct Acceptor {
    source: Source,
    config: ArcSwap<ServerConfig>,
    state: Mutex<State>,
}

struct State {
    stamp: Stamp,
    fingerprint: String,
}

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acceptor").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Acceptor {
    /// Reads the certificate; makes it first if it is to be of our own making.
    ///
    /// # Errors
    /// When it cannot be read or made; the text names the file.
    pub fn new(source: Source) -> Result<Self, TlsError> {
        source.prepare()?;
        let stamp = source.stamp();
        let (certificate, key) = source.files();
        let Identity { config, fingerprint } = Identity::read(&certificate, &key)?;
        Ok(Self { source, config: ArcSwap::new(config), state: Mutex::new(State { stamp, fingerprint }) })
    }

    /// SHA-256 of the certificate, as browsers show it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.state.lock().fingerprint.clone()
    }

    /// Secures a connection.
    ///
    /// # Errors
    /// When the peer speaks no TLS, nothing that we speak, or too slowly.
    pub async fn accept(&self, tcp: TcpStream) -> io::Result<Stream> {
        let securing = tokio_rustls::TlsAcceptor::from(self.config.load_full()).accept(tcp);
        match timeout(HANDSHAKE_TIMEOUT, securing).await {
            Ok(secured) => secured.map(Stream::new),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Follows changes of the files, and renews a certificate of our own making, until `stop`. Connections that are open keep what they have.
    pub async fn keep(self: Arc<Self>, stop: CancellationToken) {
        let (mut judged, mut clock) = (Instant::now(), Timestamp::now());
        loop {
            tokio::select! {
                () = sleep(LOOK_INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            let renews = is_due(judged.elapsed(), Timestamp::now().duration_since(clock));
            if renews {
                (judged, clock) = (Instant::now(), Timestamp::now());
            }
            let this = self.clone();
            if spawn_blocking(move || this.look(renews)).await.is_err() {
                tracing::error!("a look at the certificate broke off");
            }
        }
    }

    fn look(&self, renews: bool) {
        if renews && let Err(error) = self.source.prepare() {
            tracing::warn!(%error, "the certificate cannot be renewed");
        }
        let stamp = self.source.stamp();
        if self.state.lock().stamp == stamp {
            return;
        }
        let (certificate, key) = self.source.files();
        match Identity::read(&certificate, &key) {
            Ok(Identity { config, fingerprint }) => {
                tracing::info!(file = %certificate.display(), fingerprint, "the certificate was read anew");
                self.config.store(config);
                *self.state.lock() = State { stamp, fingerprint };
            }
            Err(error) => {
                // Often only one of both files is there yet; the next change is another chance.
                tracing::warn!(%error, "the changed certificate cannot be used; the former one stays in use");
                self.state.lock().stamp = stamp;
            }
        }
    }
}

/// Whether a certificate of ours is to be judged again, when so much time has passed since the last look and the clock went on so much.
/// Boards without a clock of their own begin in the past, and learn the date some time after the start.
fn is_due(elapsed: Duration, clock: SignedDuration) -> bool {
    let passed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
    elapsed >= RENEWAL_INTERVAL || clock.saturating_sub(passed).unsigned_abs() > CLOCK_TOLERANCE
}

impl Source {
    fn files(&self) -> (PathBuf, PathBuf) {
        match self {
            Self::Files { certificate, key } => (certificate.clone(), key.clone()),
            Self::SelfMade(made) => (made.certificate(), made.key()),
        }
    }

    fn prepare(&self) -> Result<(), TlsError> {
        match self {
            Self::Files { .. } => Ok(()),
            Self::SelfMade(made) => made.prepare(Timestamp::now()),
        }
    }

    fn stamp(&self) -> Stamp {
        let (certificate, key) = self.files();
        [certificate, key].map(|path| {
            let known = path.metadata().ok()?;
            Some((known.modified().ok()?, known.len()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SelfMade;

    fn made(folder: &std::path::Path, host: &str) -> SelfMade {
        let made = SelfMade { folder: folder.to_owned(), host: host.into(), names: Vec::new() };
        made.prepare(Timestamp::now()).unwrap();
        made
    }

    #[test]
    fn changed_files_are_read_anew_and_faulty_ones_change_nothing() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (first, second) = (made(one.path(), "a"), made(two.path(), "b"));
        let acceptor = Acceptor::new(Source::Files { certificate: first.certificate(), key: first.key() }).unwrap();
        let before = acceptor.fingerprint();
        assert_eq!(before.len(), 32 * 3 - 1);
        std::fs::copy(second.certificate(), first.certificate()).unwrap();
        acceptor.look(false);
        assert_eq!(acceptor.fingerprint(), before, "the key is still that of the former certificate");
        std::fs::copy(second.key(), first.key()).unwrap();
        acceptor.look(false);
        assert_ne!(acceptor.fingerprint(), before);
        std::fs::write(first.certificate(), "nothing").unwrap();
        let now = acceptor.fingerprint();
        acceptor.look(false);
        assert_eq!(acceptor.fingerprint(), now);
    }

    #[test]
    fn a_clock_that_is_set_is_a_reason_to_look() {
        let is_due = |elapsed: u64, clock: i64| is_due(Duration::from_secs(elapsed), SignedDuration::from_secs(clock));
        assert!(!is_due(5, 5) && !is_due(3599, 3599) && is_due(3600, 3600));
        assert!(is_due(5, 56 * 365 * 86400), "the date was learnt");
        assert!(is_due(5, -3600), "it ran ahead");
        assert!(!is_due(1800, 1801) && !is_due(1800, 1799), "it is trimmed");
        assert!(is_due(5, i64::MIN) && is_due(5, i64::MAX));
    }

    #[test]
    fn faults_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let good = made(folder.path(), "a");
        let other = tempfile::tempdir().unwrap();
        let stranger = made(other.path(), "b");
        let text = folder.path().join("text.pem");
        std::fs::write(&text, "hello").unwrap();
        for (certificate, key, expected) in [
            (folder.path().join("none"), good.key(), "none: No such file"),
            (text.clone(), good.key(), "text.pem: expected a certificate"),
            (good.certificate(), text.clone(), "text.pem: expected a private key"),
            (good.certificate(), good.certificate(), "self-made.cert: expected a private key"),
            (good.certificate(), stranger.key(), "self-made.key cannot be used"),
            (folder.path().to_owned(), good.key(), "expected a file"),
        ] {
            let error = Acceptor::new(Source::Files { certificate, key }).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
