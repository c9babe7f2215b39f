//! What to ask for, and within which limits.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use reqwest::Url;

use crate::{OutboundError, Validators, parse_url};

/// Time for a whole exchange, when the request does not say another.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of a body that are read, when the request does not say another number.
pub const DEFAULT_MAX_BODY: usize = 1024 * 1024;

/// Redirects that are followed, when the request does not say another number.
pub const MAX_REDIRECTS: usize = 5;

/// Where a request, and what it is redirected to, may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Wherever the address leads.
    #[default]
    Anywhere,
    /// Not to this server itself: a client that names an address must not make us call ourselves.
    NotOurselves,
}

/// A request under construction.
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) timeout: Duration,
    pub(crate) max_body: usize,
    pub(crate) max_redirects: usize,
    pub(crate) reach: Reach,
}

impl Request {
    /// A request with any method.
    ///
    /// # Errors
    /// [`OutboundError::BadUrl`] when `url` is no complete address of HTTP or HTTPS.
    pub fn new(method: Method, url: &str) -> Result<Self, OutboundError> {
        Ok(Self {
            method,
            url: parse(url)?,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: DEFAULT_TIMEOUT,
            max_body: DEFAULT_MAX_BODY,
            max_redirects: MAX_REDIRECTS,
            reach: Reach::default(),
        })
    }

    /// A GET request.
    ///
    /// # Errors
    /// As [`Request::new`].
    pub fn get(url: &str) -> Result<Self, OutboundError> {
        Self::new(Method::GET, url)
    }

    /// Sets a header.
    ///
    /// # Errors
    /// [`OutboundError::BadHeader`] when name or value cannot stand in a request.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, OutboundError> {
        let bad = || OutboundError::BadHeader(name.to_owned());
        let (name, value) = (HeaderName::try_from(name).map_err(|_| bad())?, HeaderValue::try_from(value).map_err(|_| bad())?);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Asks only for what differs from what these validators came with; the answer may be 304.
    #[must_use]
    pub fn unless_unchanged(mut self, known: &Validators) -> Self {
        for (name, value) in [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.last_modified)] {
            if let Some(value) = value.as_deref().and_then(|value| HeaderValue::try_from(value).ok()) {
                self.headers.insert(name, value);
            }
        }
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Time for the whole exchange, redirects and waiting for its turn included.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Bytes of the body; a longer one is an error.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// How many redirects are followed.
    #[must_use]
    pub fn max_redirects(mut self, redirects: usize) -> Self {
        self.max_redirects = redirects;
        self
    }

    /// Where it may lead.
    #[must_use]
    pub fn reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }
}

/// A complete address of HTTP or HTTPS.
fn parse(url: &str) -> Result<Url, OutboundError> {
    let parsed = parse_url(url).map_err(OutboundError::BadUrl)?;
    if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() {
        Ok(parsed)
    } else {
        Err(OutboundError::BadUrl(format!("found scheme `{}`", parsed.scheme())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_addresses_of_http_are_asked() {
        for bad in [
            "",
            "feed.xml",
            "/a/b",
            "ftp://x/",
            "file:///etc/passwd",
            "http://",
            "http://[::1",
            "http://\u{c4}B/",
            &format!("http://x/{}", "a".repeat(8192)),
        ] {
            assert!(matches!(Request::get(bad), Err(OutboundError::BadUrl(_))), "{bad}");
        }
        assert_eq!(Request::get("HTTP://Example.org:80/a b").unwrap().url.as_str(), "http://example.org/a%20b");
    }

    #[test]
    fn headers_cannot_carry_further_lines() {
        let request = Request::get("http://x/").unwrap();
        assert_eq!(request.clone().header("X-A", "a\r\nB: c").unwrap_err(), OutboundError::BadHeader("X-A".to_owned()));
        let known = Validators { etag: Some("\"1\"\n".to_owned()), last_modified: Some("yesterday".to_owned()) };
        let request = request.unless_unchanged(&known);
        assert_eq!(
            (request.headers.get(IF_NONE_MATCH), request.headers.get(IF_MODIFIED_SINCE).unwrap().as_bytes()),
            (None, &b"yesterday"[..])
        );
    }
}
