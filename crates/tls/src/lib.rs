//! TLS of clients that come to us: which certificate we show, where it comes from, and connections that are secured with it.
//!
//! ```text
//! Source ── files of the owner ──┐
//!        └─ made by ourselves ───┴─► Identity (chain, key, fingerprint) ─► Acceptor ─► Stream
//!                 ▲  renewed before it ends, key stays        ▲ read anew when a file changes
//! ```

mod acceptor;
mod identity;
mod self_made;
mod stream;

pub use acceptor::{Acceptor, HANDSHAKE_TIMEOUT, LOOK_INTERVAL};
pub use identity::TlsError;
pub use self_made::{LIFE_TIME, RENEW_BEFORE, SelfMade};
pub use stream::Stream;

use std::path::PathBuf;

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// Files that the owner keeps, in PEM.
    Files {
        /// The certificate, and those between it and a known authority.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
    /// One of our own making.
    SelfMade(SelfMade),
}
