//! Where a redirect leads, as a pure function.
//!
//! ```text
//! answer ─► no redirect status, or no Location ─► done
//!        └► Location joined to the address ─► seen before: loop ; too many ; other scheme ; https → http ─► error
//!                                          └► followed; 303, and 301/302 after POST, become GET without a body;
//!                                             another host or port gets no credentials
//! ```

use http::Method;
use reqwest::Url;

use crate::address;

/// Why a redirect is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// An address that was asked already.
    #[error("redirects in a circle")]
    Loop,
    /// More than the request allows.
    #[error("more than {0} redirects")]
    TooMany(usize),
    /// No address of HTTP.
    #[error("a redirect to something that is no address of HTTP")]
    BadTarget,
    /// From HTTPS to HTTP.
    #[error("a redirect from HTTPS to HTTP")]
    Downgrade,
}

/// The request that a redirect asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its method.
    pub method: Method,
    /// Its address.
    pub url: Url,
    /// True when body and the headers that describe it are sent again.
    pub keeps_body: bool,
    /// True when credentials are sent again.
    pub keeps_credentials: bool,
}

/// What follows an answer with `status` and `location` to the last of the addresses in `asked`; `None` when it is final.
///
/// # Errors
/// When the redirect must not be followed.
pub fn next(asked: &[Url], method: &Method, status: u16, location: Option<&str>, limit: usize) -> Result<Option<Step>, RedirectError> {
    let (Some(location), Some(from), true) = (location, asked.last(), matches!(status, 301 | 302 | 303 | 307 | 308)) else {
        return Ok(None);
    };
    let url = address::join(from, location).map_err(|_| RedirectError::BadTarget)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(RedirectError::BadTarget);
    }
    if from.scheme() == "https" && url.scheme() == "http" {
        return Err(RedirectError::Downgrade);
    }
    if asked.contains(&url) {
        return Err(RedirectError::Loop);
    }
    if asked.len() > limit {
        return Err(RedirectError::TooMany(limit));
    }
    let becomes_get = *method != Method::HEAD && (status == 303 || (matches!(status, 301 | 302) && *method == Method::POST));
    Ok(Some(Step {
        method: if becomes_get { Method::GET } else { method.clone() },
        keeps_body: !becomes_get,
        keeps_credentials: from.origin() == url.origin(),
        url,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn urls(texts: &[&str]) -> Vec<Url> {
        texts.iter().map(|text| Url::parse(text).unwrap()).collect()
    }

    fn step(from: &str, method: &Method, status: u16, location: &str) -> Result<Option<Step>, RedirectError> {
        next(&urls(&[from]), method, status, Some(location), 5)
    }

    #[test]
    fn what_is_followed() {
        let followed = |from, method: Method, status, location| {
            let step = step(from, &method, status, location).unwrap().unwrap();
            (step.method.to_string(), step.url.to_string(), step.keeps_body, step.keeps_credentials)
        };
        let row = |method: &str, url: &str, body, credentials| (method.to_owned(), url.to_owned(), body, credentials);
        assert_eq!(followed("http://a/x/y", Method::GET, 302, "../z"), row("GET", "http://a/z", true, true));
        assert_eq!(followed("http://a/x", Method::POST, 301, "/y"), row("GET", "http://a/y", false, true));
        assert_eq!(followed("http://a/x", Method::POST, 308, "/y"), row("POST", "http://a/y", true, true));
        assert_eq!(followed("http://a/x", Method::PUT, 303, "http://b/"), row("GET", "http://b/", false, false));
        assert_eq!(followed("http://a/x", Method::GET, 307, "https://a/x"), row("GET", "https://a/x", true, false));
        assert_eq!(step("http://a/", &Method::GET, 200, "/y"), Ok(None));
        assert_eq!(next(&urls(&["http://a/"]), &Method::GET, 302, None, 5), Ok(None));
    }

    #[test]
    fn what_is_not_followed() {
        assert_eq!(step("http://a/x", &Method::GET, 302, "x"), Err(RedirectError::Loop));
        assert_eq!(step("https://a/", &Method::GET, 302, "http://a/"), Err(RedirectError::Downgrade));
        for target in ["file:///etc/passwd", "javascript:1", "http://[", "http://"] {
            assert_eq!(step("http://a/x", &Method::GET, 302, target), Err(RedirectError::BadTarget), "{target}");
        }
        assert_eq!(next(&urls(&["http://a/1", "http://a/2"]), &Method::GET, 302, Some("/1"), 5), Err(RedirectError::Loop));
        assert_eq!(next(&urls(&["http://a/1", "http://a/2"]), &Method::GET, 302, Some("/3"), 1), Err(RedirectError::TooMany(1)));
    }

    proptest! {
        #[test]
        fn any_chain_ends(locations in proptest::collection::vec("[a-c/:.]{0,12}", 0..20), limit in 0_usize..6) {
            let mut asked = urls(&["http://a/"]);
            for location in &locations {
                match next(&asked, &Method::GET, 302, Some(location), limit) {
                    Ok(Some(step)) => asked.push(step.url),
                    _ => break,
                }
            }
            prop_assert!(asked.len() <= limit + 1);
        }
    }
}
