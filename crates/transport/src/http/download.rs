//! Sending files: ranges, conditional requests, content disposition. wire/2-files-jobs.md section 1.4.

use std::fs::File;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rpc::transfer::Download;

use super::range::{Wanted, wanted};
use super::{Body, Response, answer};

/// Characters that stay as they are in `filename*`.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Ten years in seconds, for addresses that carry a version.
const FOR_EVER: &str = "max-age=315360000";

/// The answer that sends `download` as the request's headers ask.
pub(super) fn send(download: Download, method: &Method, headers: &HeaderMap, versioned: bool) -> Response {
    let Download { file, size, modified, name, content_type } = download;
    let mut response = Content { file, size, modified, coding: "" }.send(method, headers);
    let (status, headers) = (response.status(), response.headers_mut());
    if status != StatusCode::NOT_MODIFIED {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    if let Ok(disposition) = HeaderValue::from_str(&disposition(&name)) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    if versioned {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(FOR_EVER));
    }
    response
}

/// An open file that is sent, in whole or in part, or not at all when the client has it.
pub(super) struct Content {
    pub file: File,
    /// Bytes.
    pub size: u64,
    /// Time of the last change.
    pub modified: SystemTime,
    /// How it is packed, as in `Content-Encoding`; empty for not at all. Another coding is another thing to a cache.
    pub coding: &'static str,
}

impl Content {
    /// Status, body, and the headers that caches and ranges need; what it is, the caller says.
    pub(super) fn send(self, method: &Method, headers: &HeaderMap) -> Response {
        let etag = self.etag();
        if is_unchanged(headers, &etag, self.modified) {
            let mut response = answer::bare(StatusCode::NOT_MODIFIED);
            self.describe(&mut response, &etag);
            return response;
        }
        let range =
            headers.get(header::RANGE).and_then(|value| value.to_str().ok()).filter(|_| range_applies(headers, &etag, self.modified));
        let (status, first, length) = match wanted(range, self.size) {
            Wanted::All => (StatusCode::OK, 0, self.size),
            Wanted::Part { first, last } => (StatusCode::PARTIAL_CONTENT, first, last - first + 1),
            Wanted::Beyond => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0),
        };
        let mut response = answer::bare(status);
        self.describe(&mut response, &etag);
        let content_range = match status {
            StatusCode::PARTIAL_CONTENT => Some(format!("bytes {first}-{}/{}", first + length - 1, self.size)),
            StatusCode::RANGE_NOT_SATISFIABLE => Some(format!("bytes */{}", self.size)),
            _ => None,
        };
        if let Some(value) = content_range.and_then(|text| HeaderValue::from_str(&text).ok()) {
            response.headers_mut().insert(header::CONTENT_RANGE, value);
        }
        if method == Method::HEAD {
            response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        } else if length > 0 {
            *response.body_mut() = Body::file(self.file, first, length);
        }
        response
    }

    fn describe(&self, response: &mut Response, etag: &str) {
        let headers = response.headers_mut();
        for (name, value) in [(header::LAST_MODIFIED, httpdate::fmt_http_date(self.modified).as_str()), (header::ETAG, etag)] {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        }
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if !self.coding.is_empty() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(self.coding));
        }
    }

    fn etag(&self) -> String {
        let age = self.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let coding = if self.coding.is_empty() { String::new() } else { format!("-{}", self.coding) };
        format!("\"{:x}-{:x}{coding}\"", age.as_nanos(), self.size)
    }
}

/// `attachment` with the name as ASCII for old clients and as UTF-8 for the others.
fn disposition(name: &str) -> String {
    let ascii: String = name
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            ' '..='~' => c.to_string(),
            _ => "?".to_owned(),
        })
        .collect();
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{}", utf8_percent_encode(name, NAME))
}

fn is_unchanged(headers: &HeaderMap, etag: &str, modified: SystemTime) -> bool {
    if let Some(tags) = headers.get(header::IF_NONE_MATCH) {
        return tags.to_str().is_ok_and(|tags| {
            tags.split(',').any(|tag| matches!(tag.trim().trim_start_matches("W/"), "*") || tag.trim().trim_start_matches("W/") == etag)
        });
    }
    date(headers.get(header::IF_MODIFIED_SINCE)).is_some_and(|since| whole_seconds(modified) <= since)
}

/// A range counts only if the file is still the one that the client has a part of.
fn range_applies(headers: &HeaderMap, etag: &str, modified: SystemTime) -> bool {
    match headers.get(header::IF_RANGE) {
        None => true,
        Some(value) if value.as_bytes().starts_with(b"\"") => value.as_bytes() == etag.as_bytes(),
        value => date(value).is_some_and(|since| whole_seconds(modified) == since),
    }
}

fn date(value: Option<&HeaderValue>) -> Option<SystemTime> {
    httpdate::parse_http_date(value?.to_str().ok()?).ok()
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn download() -> Download {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        Download {
            file,
            size: 10,
            modified: UNIX_EPOCH + Duration::from_millis(1_700_000_000_500),
            name: "Würfel \"1\".gcode".into(),
            content_type: "text/plain",
        }
    }

    fn get(name: header::HeaderName, value: &str) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        send(download(), &Method::HEAD, &headers, false)
    }

    fn header(response: &Response, name: header::HeaderName) -> &str {
        response.headers().get(name).unwrap().to_str().unwrap()
    }

    #[test]
    fn names_survive_for_old_and_new_clients() {
        let response = send(download(), &Method::HEAD, &HeaderMap::new(), true);
        assert_eq!(
            header(&response, header::CONTENT_DISPOSITION),
            "attachment; filename=\"W?rfel \\\"1\\\".gcode\"; filename*=UTF-8''W%C3%BCrfel%20%221%22.gcode"
        );
        assert_eq!(header(&response, header::CONTENT_LENGTH), "10");
        assert_eq!(header(&response, header::CACHE_CONTROL), FOR_EVER);
    }

    #[test]
    fn ranges_are_answered_in_kind() {
        let part = get(header::RANGE, "bytes=2-4");
        assert_eq!(part.status(), 206);
        assert_eq!(header(&part, header::CONTENT_RANGE), "bytes 2-4/10");
        assert_eq!(header(&part, header::CONTENT_LENGTH), "3");
        let beyond = get(header::RANGE, "bytes=10-");
        assert_eq!(beyond.status(), 416);
        assert_eq!(header(&beyond, header::CONTENT_RANGE), "bytes */10");
    }

    #[test]
    fn conditional_requests() {
        let tag = get(header::RANGE, "").headers()[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!(get(header::IF_NONE_MATCH, &format!("\"x\", W/{tag}")).status(), 304);
        assert_eq!(get(header::IF_NONE_MATCH, "\"x\"").status(), 200);
        assert_eq!(get(header::IF_MODIFIED_SINCE, "Tue, 14 Nov 2023 22:13:20 GMT").status(), 304);
        assert_eq!(get(header::IF_MODIFIED_SINCE, "Tue, 14 Nov 2023 22:13:19 GMT").status(), 200);
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, "bytes=2-4".parse().unwrap());
        headers.insert(header::IF_RANGE, "\"other\"".parse().unwrap());
        assert_eq!(send(download(), &Method::HEAD, &headers, false).status(), 200);
    }
}
