//! Why a request has no result, and how clients are told (wire/5-fwhost.md section 9.2; the texts are compared by clients).

use protocol::{ApiError, ErrorKind};

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no host to ask.
    NotConnected,
    /// The connection ended before the answer came.
    Disconnected,
    /// The connection ended before the request was sent.
    NotWritten,
    /// Too much is waiting already.
    Busy,
    /// No answer within the time allowed.
    TimedOut,
    /// The host's own error.
    Host(String),
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotConnected => Self::unavailable("Klippy Host not connected"),
            Failure::Disconnected => Self::unavailable("Klippy Disconnected"),
            Failure::NotWritten => Self::unavailable("Klippy Write Request Error"),
            Failure::Busy => Self::new(ErrorKind::TooMany, "Too many requests to the firmware host are waiting"),
            Failure::TimedOut => Self::internal("Klippy request timed out"),
            Failure::Host(text) => Self::bad_request(text),
        }
    }
}
