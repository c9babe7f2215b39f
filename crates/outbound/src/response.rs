//! What came back.

use bytes::{Bytes, BytesMut};
use http::header::{ETAG, HeaderMap, HeaderName, LAST_MODIFIED};
use reqwest::Url;
use tokio::sync::OwnedSemaphorePermit;

use crate::OutboundError;

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

/// An answer whose body is still on its way. It counts as an exchange until it is dropped.
#[derive(Debug)]
pub struct Incoming {
    /// The address that answered, after redirects.
    pub url: Url,
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    answer: reqwest::Response,
    _turn: OwnedSemaphorePermit,
}

impl Incoming {
    pub(crate) fn new(answer: reqwest::Response, url: Url, turn: OwnedSemaphorePermit) -> Self {
        Self { url, status: answer.status().as_u16(), headers: answer.headers().clone(), answer, _turn: turn }
    }

    /// The next bytes of the body; `None` at its end. Waits as long as it takes.
    ///
    /// # Errors
    /// When the body breaks off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, OutboundError> {
        self.answer.chunk().await.map_err(|error| OutboundError::from_library(&error))
    }

    /// Reads the whole body.
    pub(crate) async fn whole(mut self, limit: usize) -> Result<Response, OutboundError> {
        let announced = self.answer.content_length().unwrap_or(0);
        if usize::try_from(announced).is_ok_and(|length| length > limit) {
            return Err(OutboundError::TooLarge(limit));
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > limit {
                return Err(OutboundError::TooLarge(limit));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Response { url: self.url, status: self.status, headers: self.headers, body: body.freeze() })
    }
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
