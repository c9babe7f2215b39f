//! Why an exchange failed.

use std::error::Error;
use std::time::Duration;

use crate::redirect::RedirectError;

/// Why there is no answer. Texts never hold the address: it may carry a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The address cannot be asked at all.
    #[error("expected an address that starts with http:// or https://: {0}")]
    BadUrl(String),
    /// A header that cannot be sent.
    #[error("expected a header of visible characters: {0}")]
    BadHeader(String),
    /// The address leads back to this server.
    #[error("the address leads back to this server")]
    Ourselves,
    /// No connection: name unknown, nobody listens, or the certificate is not trusted.
    #[error("no connection: {0}")]
    Connect(String),
    /// No complete answer in time.
    #[error("no complete answer within {0:?}")]
    Timeout(Duration),
    /// The body is larger than asked for.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// A redirect that is not followed.
    #[error("{0}")]
    Redirect(#[from] RedirectError),
    /// The answer is no HTTP, or it broke off.
    #[error("the answer could not be read: {0}")]
    Broken(String),
}

impl OutboundError {
    /// True when the same request may well succeed later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Timeout(_) | Self::Broken(_))
    }

    pub(crate) fn from_library(error: &reqwest::Error) -> Self {
        let cause = root_cause(error);
        if error.is_connect() || error.is_timeout() { Self::Connect(cause) } else { Self::Broken(cause) }
    }
}

/// The innermost text: the outer ones repeat the address.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
