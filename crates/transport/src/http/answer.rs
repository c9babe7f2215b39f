//! Building answers: result wrapping, error bodies, common headers.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use protocol::ApiError;
use protocol::error::http_error_body;

use super::{Body, Response};

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=UTF-8");

/// `{"result": …}` with status 200.
pub(super) fn result(data: &Bytes) -> Response {
    let mut body = Vec::with_capacity(data.len() + 11);
    body.extend_from_slice(b"{\"result\":");
    body.extend_from_slice(data);
    body.push(b'}');
    json(StatusCode::OK, body)
}

/// A JSON body as it is.
pub(super) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// The error body. Its text is the real one; the status line only has the standard phrase.
pub(super) fn error(error: &ApiError) -> Response {
    let status = StatusCode::from_u16(error.kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json(status, error.http_body())
}

/// An error of the transport itself.
pub(super) fn status(status: StatusCode, text: &str) -> Response {
    json(status, http_error_body(status.as_u16(), text))
}

/// A status without a body.
pub(super) fn bare(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Leads to another address, relative to the one that was asked for.
pub(super) fn redirect(to: &str) -> Response {
    let mut response = bare(StatusCode::PERMANENT_REDIRECT);
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

/// Leads to another address for this time only: whoever remembered it would find nobody there after a certificate is lost.
pub(super) fn elsewhere(to: &str) -> Response {
    let mut response = redirect(to);
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Text of the given type.
pub(super) fn text(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::Whole(Some(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
