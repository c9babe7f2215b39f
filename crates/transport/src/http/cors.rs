//! Headers that let pages of allowed origins read answers. wire/1-core.md section 6.7.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{Response, answer};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE, OPTIONS");
const HEADERS: HeaderValue =
    HeaderValue::from_static("Origin, Accept, Content-Type, X-Requested-With, X-CRSF-Token, Authorization, X-Access-Token, X-Api-Key");
const PRIVATE_ASKED: &str = "access-control-request-private-network";
const PRIVATE_ALLOWED: &str = "access-control-allow-private-network";

/// Answers a preflight: 204 for an allowed origin, else 405 for a known route and 404 for an unknown one.
pub(super) fn preflight(allowed: bool, known_route: bool, request: &HeaderMap) -> Response {
    if !allowed {
        let (status, text) =
            if known_route { (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed") } else { (StatusCode::NOT_FOUND, "Not Found") };
        return answer::status(status, text);
    }
    let mut response = answer::bare(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    if request.get(PRIVATE_ASKED).is_some_and(|value| value == "true") {
        headers.insert(PRIVATE_ALLOWED, HeaderValue::from_static("true"));
    }
    response
}

/// Lets the asking page read this answer.
pub(super) fn allow(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}
