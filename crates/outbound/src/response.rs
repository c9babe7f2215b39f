//! What came back.

use bytes::Bytes;
use http::header::{ETAG, HeaderMap, HeaderName, LAST_MODIFIED};
use reqwest::Url;

/// Longest validator that is kept, in bytes.
const MAX_VALIDATOR: usize = 512;

/// A complete answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// The address that answered, after redirects.
    pub url: Url,
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

/// What a later request can be made conditional with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag, with its quotes.
    pub etag: Option<String>,
    /// The time of the last change, as it came.
    pub last_modified: Option<String>,
}

impl Response {
    /// True for 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// A header as text.
    #[must_use]
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The validators of this answer; overlong ones are left out.
    #[must_use]
    pub fn validators(&self) -> Validators {
        let text = |name| self.header(&name).filter(|value| value.len() <= MAX_VALIDATOR).map(str::to_owned);
        Validators { etag: text(ETAG), last_modified: text(LAST_MODIFIED) }
    }
}
