//! Collecting the arguments of an operation from a request: query string first, then the body, which wins.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use protocol::{ApiError, ErrorKind};
use rpc::Arguments;
use rpc::registry::QueryStyle;

use crate::limits::{BODY_TIMEOUT, MAX_FORM_FIELD};

/// A body as the operation's arguments need it.
pub(super) enum Form {
    /// None, or of a kind that carries no arguments.
    Nothing,
    /// A JSON object.
    Json(String),
    /// URL-encoded pairs.
    Pairs(Bytes),
    /// Text parts of a multipart form.
    Parts(Vec<(String, String)>),
}

/// Reads a whole body of at most `limit` bytes.
pub(super) async fn read_body(headers: &HeaderMap, mut body: Incoming, limit: usize) -> Result<Bytes, ApiError> {
    let too_large = || ApiError::new(ErrorKind::TooLarge, format!("Request body too large: at most {limit} bytes are accepted"));
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut whole = Vec::with_capacity(announced.unwrap_or(0).min(64 * 1024));
    while let Some(piece) = next_piece(&mut body, BODY_TIMEOUT).await? {
        if whole.len() + piece.len() > limit {
            return Err(too_large());
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.into())
}

/// The next data of a body, within a time.
pub(super) async fn next_piece(body: &mut Incoming, limit: Duration) -> Result<Option<Bytes>, ApiError> {
    loop {
        let frame = tokio::time::timeout(limit, body.frame())
            .await
            .map_err(|_| ApiError::new(ErrorKind::Timeout, "The request body did not arrive in time"))?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => return Err(ApiError::bad_request(format!("The request body broke off: {error}"))),
            // Trailers carry nothing for us.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Understands a body by its content type, or, when that is missing or the one that tools send by default, by its looks.
pub(super) async fn understand(headers: &HeaderMap, body: Bytes) -> Result<Form, ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("").trim().to_ascii_lowercase();
    let looks_like_json = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if body.iter().all(u8::is_ascii_whitespace) {
        Ok(Form::Nothing)
    } else if content_type.starts_with("application/json") || (content_type.is_empty() && looks_like_json) {
        json_text(body).map(Form::Json)
    } else if content_type.starts_with("application/x-www-form-urlencoded") {
        // A form never begins with a brace, but JSON sent by a tool that labels everything a form does.
        if looks_like_json { json_text(body).map(Form::Json) } else { Ok(Form::Pairs(body)) }
    } else if content_type.starts_with("multipart/form-data") {
        parts(headers, body).await.map(Form::Parts)
    } else {
        Ok(Form::Nothing)
    }
}

fn json_text(body: Bytes) -> Result<String, ApiError> {
    String::from_utf8(body.into()).map_err(|_| ApiError::argument("Unable to read the request body: expected UTF-8 JSON"))
}

async fn parts(headers: &HeaderMap, body: Bytes) -> Result<Vec<(String, String)>, ApiError> {
    let broken = |error: multer::Error| ApiError::argument(format!("Unable to read the form: {error}"));
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let boundary = multer::parse_boundary(content_type).map_err(broken)?;
    let limits = multer::Constraints::new().size_limit(multer::SizeLimit::new().per_field(MAX_FORM_FIELD));
    let stream = futures_util::stream::once(std::future::ready(Ok::<_, std::convert::Infallible>(body)));
    let mut form = multer::Multipart::with_constraints(stream, boundary, limits);
    let mut parts = Vec::new();
    while let Some(field) = form.next_field().await.map_err(broken)? {
        if let Some(name) = field.name().map(str::to_owned) {
            parts.push((name, field.text().await.map_err(broken)?));
        }
    }
    Ok(parts)
}

/// The merged arguments.
pub(super) fn merge<'a>(style: QueryStyle, query: &'a str, form: &'a Form) -> Result<Arguments<'a>, ApiError> {
    let mut arguments = Arguments::none();
    let add_pairs = |arguments: &mut Arguments<'a>, pairs: &'a [u8]| match style {
        QueryStyle::Arguments => arguments.add_pairs(pairs),
        QueryStyle::PrinterObjects => arguments.add_printer_objects(pairs),
    };
    add_pairs(&mut arguments, query.as_bytes())?;
    match form {
        Form::Nothing => {}
        Form::Json(text) => arguments.add_json_object(text)?,
        Form::Pairs(pairs) => add_pairs(&mut arguments, pairs)?,
        Form::Parts(parts) => {
            for (name, value) in parts {
                arguments.add_pair(Cow::Borrowed(name), Cow::Borrowed(value))?;
            }
        }
    }
    Ok(arguments)
}

/// The last value of `name` in a query string.
pub(crate) fn query_value(query: &str, name: &str) -> Option<String> {
    if !query.contains(name) {
        return None;
    }
    form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name).last().map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn merged(content_type: &str, query: &str, body: &str) -> Result<String, ApiError> {
        let mut headers = HeaderMap::new();
        if !content_type.is_empty() {
            headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        }
        let form = understand(&headers, Bytes::copy_from_slice(body.as_bytes())).await?;
        merge(QueryStyle::Arguments, query, &form).map(|arguments| arguments.to_json_object().get().to_owned())
    }

    #[tokio::test]
    async fn every_kind_of_body_that_clients_send() {
        for (content_type, body) in [
            ("application/json", r#"{"a":"2"}"#),
            ("application/json; charset=utf-8", " {\"a\":\"2\"}"),
            ("", r#"{"a":"2"}"#),
            ("application/x-www-form-urlencoded", "a=2"),
            ("application/x-www-form-urlencoded", r#"{"a":"2"}"#),
            ("multipart/form-data; boundary=X", "--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n2\r\n--X--\r\n"),
        ] {
            assert_eq!(merged(content_type, "a=1&b=3", body).await.unwrap(), r#"{"a":"2","b":"3"}"#, "{content_type} {body}");
        }
        assert_eq!(merged("application/json", "a=1", "").await.unwrap(), r#"{"a":"1"}"#);
        assert_eq!(merged("text/plain", "a=1", "hello").await.unwrap(), r#"{"a":"1"}"#);
    }

    #[tokio::test]
    async fn broken_bodies_are_told() {
        for (content_type, body) in [
            ("application/json", "{"),
            ("application/json", "[1]"),
            ("application/json", "nonsense"),
            ("multipart/form-data", "--X"),
            ("multipart/form-data; boundary=X", "--X\r\nnothing"),
        ] {
            assert!(merged(content_type, "", body).await.is_err(), "{content_type} {body}");
        }
    }
}
