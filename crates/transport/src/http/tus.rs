//! `/server/files/uploads`: uploads that can be continued, by tus 1.0 (decision 0004). Headers in, headers out; the rules are in `files`.
//!
//! | request | answer |
//! |---|---|
//! | POST `…/uploads` (`Upload-Length`, `Upload-Metadata`, maybe data) | 201, `Location` |
//! | HEAD `…/uploads/ID` | 200, `Upload-Offset` |
//! | PATCH `…/uploads/ID` (`Upload-Offset`, data) | 204, `Upload-Offset` |
//! | GET `…/uploads/ID` | 200 with the answer of a complete upload, else 409 |
//! | DELETE `…/uploads/ID` | 204 |

use std::sync::Arc;

use data_encoding::BASE64;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use hyper::body::{Body as _, Incoming};
use protocol::{ApiError, ErrorKind};
use rpc::Call;
use rpc::transfer::{FileTransfer, NewUpload, UploadStatus, Uploaded};

use super::arguments::next_piece;
use super::upload::location;
use super::{Response, answer, cors};
use crate::limits::{BODY_TIMEOUT, MAX_UPLOAD_METADATA};

const ROUTE: &str = "/server/files/uploads";
const VERSION: HeaderValue = HeaderValue::from_static("1.0.0");
const EXTENSIONS: HeaderValue = HeaderValue::from_static("creation,creation-with-upload,expiration,termination");
const CONTENT_TYPE: &str = "application/offset+octet-stream";

const TUS_RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
const TUS_VERSION: HeaderName = HeaderName::from_static("tus-version");
const TUS_EXTENSION: HeaderName = HeaderName::from_static("tus-extension");
const TUS_MAX_SIZE: HeaderName = HeaderName::from_static("tus-max-size");
const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
const METHOD_OVERRIDE: HeaderName = HeaderName::from_static("x-http-method-override");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const REPRESENTATION: &str = "return=representation";

/// What pages of allowed origins may send here, besides what they may send everywhere.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE, OPTIONS");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Origin, Accept, Content-Type, X-Requested-With, X-CRSF-Token, Authorization, X-Access-Token, X-Api-Key, Prefer, Tus-Resumable, \
     Upload-Length, Upload-Metadata, Upload-Offset, X-HTTP-Method-Override",
);
/// What they may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Content-Location, Location, Preference-Applied, Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Expires, Upload-Length, \
     Upload-Metadata, Upload-Offset",
);

/// A request without its body.
pub(super) struct Asked<'r> {
    pub(super) method: &'r Method,
    pub(super) path: &'r str,
    pub(super) headers: &'r HeaderMap,
    pub(super) base_url: &'r str,
}

/// True for the address of all uploads and for those of single ones.
pub(super) fn is_ours(path: &str) -> bool {
    path.strip_prefix(ROUTE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Tells what is offered; also the preflight of pages.
pub(super) fn options(files: &dyn FileTransfer, allowed_origin: bool, request: &HeaderMap) -> Response {
    let mut response = if allowed_origin { cors::preflight(true, true, request) } else { answer::bare(StatusCode::NO_CONTENT) };
    let headers = response.headers_mut();
    if allowed_origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    }
    headers.insert(TUS_VERSION, VERSION);
    headers.insert(TUS_EXTENSION, EXTENSIONS);
    headers.insert(TUS_MAX_SIZE, files.max_upload_size().into());
    finished(response)
}

/// Answers a request of a caller who may upload.
pub(super) async fn serve(files: &dyn FileTransfer, call: Arc<Call>, asked: &Asked<'_>, body: Incoming) -> Response {
    let version = asked.headers.get(TUS_RESUMABLE);
    // Anything that is no tus client may only look.
    if version != Some(&VERSION) && (asked.method != Method::GET || version.is_some()) {
        let mut response = answer::status(StatusCode::PRECONDITION_FAILED, "Tus-Resumable: the version 1.0.0 was expected");
        response.headers_mut().insert(TUS_VERSION, VERSION);
        return finished(response);
    }
    finished(route(files, call, asked, body).await.unwrap_or_else(|error| answer::error(&error)))
}

async fn route(files: &dyn FileTransfer, call: Arc<Call>, asked: &Asked<'_>, body: Incoming) -> Result<Response, ApiError> {
    let id = asked.path.strip_prefix(ROUTE).and_then(|rest| rest.strip_prefix('/')).unwrap_or("").to_owned();
    // For clients behind proxies that know no PATCH.
    let named = asked.headers.get(METHOD_OVERRIDE).filter(|_| asked.method == Method::POST);
    let method = named.map_or(asked.method.as_str(), |name| name.to_str().unwrap_or(""));
    match (method, id.is_empty()) {
        ("POST", true) => create(files, call, asked, body).await,
        ("HEAD", false) => files.upload_status(id).await.map(|status| head(&status)),
        ("GET", false) => outcome(files.upload_status(id).await?, asked.base_url),
        ("PATCH", false) => {
            let Some(offset) = number(asked.headers, &UPLOAD_OFFSET)? else {
                return Err(ApiError::bad_request("Upload-Offset is missing"));
            };
            if !is_data(asked.headers) {
                return Ok(answer::status(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "Content-Type: application/offset+octet-stream was expected",
                ));
            }
            let status = append(files, call, id, offset, asked.headers, body).await?;
            Ok(progress(status, asked, StatusCode::NO_CONTENT))
        }
        ("DELETE", false) => files.cancel_upload(id).await.map(|()| answer::bare(StatusCode::NO_CONTENT)),
        _ => Err(ApiError::new(ErrorKind::NotAllowed, "Method Not Allowed")),
    }
}

async fn create(files: &dyn FileTransfer, call: Arc<Call>, asked: &Asked<'_>, body: Incoming) -> Result<Response, ApiError> {
    let length = number(asked.headers, &UPLOAD_LENGTH)?.ok_or_else(|| ApiError::bad_request("Upload-Length is missing"))?;
    let metadata = asked.headers.get(UPLOAD_METADATA).map_or(Ok(""), HeaderValue::to_str);
    let metadata = metadata.map_err(|_| ApiError::bad_request("Upload-Metadata holds characters that are not ASCII"))?;
    let brings_data = !body.is_end_stream();
    if brings_data && !is_data(asked.headers) {
        return Ok(answer::status(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type: application/offset+octet-stream was expected"));
    }
    let mut status = files.create_upload(NewUpload { length, fields: fields(metadata)?, metadata: metadata.to_owned() }).await?;
    let id = status.id.clone();
    if brings_data || length == 0 {
        status = append(files, call, status.id, 0, asked.headers, body).await?;
    }
    let mut response = progress(status, asked, StatusCode::CREATED);
    if let Ok(place) = HeaderValue::from_str(&format!("{}{ROUTE}/{id}", asked.base_url)) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

async fn append(
    files: &dyn FileTransfer,
    call: Arc<Call>,
    id: String,
    offset: u64,
    headers: &HeaderMap,
    mut body: Incoming,
) -> Result<UploadStatus, ApiError> {
    let announced = number(headers, &header::CONTENT_LENGTH)?;
    let mut appending = files.append(id, offset, announced).await?;
    let mut superseded = appending.superseded();
    loop {
        let piece = tokio::select! {
            piece = next_piece(&mut body, BODY_TIMEOUT) => piece?,
            () = &mut superseded => return Err(ApiError::new(ErrorKind::Conflict, "Another request goes on with this upload")),
        };
        match piece {
            Some(data) => appending.chunk(data).await?,
            None => return appending.finish(call).await,
        }
    }
}

fn head(status: &UploadStatus) -> Response {
    let mut response = answer::bare(StatusCode::OK);
    let headers = response.headers_mut();
    describe(headers, status);
    headers.insert(UPLOAD_LENGTH, status.length.into());
    if let Ok(metadata) = HeaderValue::from_str(&status.metadata) {
        headers.insert(UPLOAD_METADATA, metadata);
    }
    response
}

/// Where the file can be had.
fn place(base_url: &str, done: &Uploaded) -> Option<HeaderValue> {
    location(&format!("{base_url}/server/files"), &done.path)
}

/// The answer of a complete upload, for clients that missed it.
fn outcome(status: UploadStatus, base_url: &str) -> Result<Response, ApiError> {
    let UploadStatus { offset, length, uploaded, .. } = status;
    let Some(done) = uploaded else {
        let why = if offset < length {
            format!("{offset} of {length} bytes have arrived")
        } else {
            "its answer is not known any more".to_owned()
        };
        return Err(ApiError::new(ErrorKind::Conflict, format!("There is no answer to this upload: {why}")));
    };
    let place = place(base_url, &done);
    let mut response = answer::json(StatusCode::OK, done.body);
    if let Some(place) = place {
        response.headers_mut().insert(header::CONTENT_LOCATION, place);
    }
    Ok(response)
}

/// The answer to data. The protocol wants an empty one; a client that prefers the members of an ordinary upload gets them with the last byte.
fn progress(mut status: UploadStatus, asked: &Asked<'_>, empty: StatusCode) -> Response {
    let wants_body = asked.headers.get_all(PREFER).iter().any(|value| value.to_str().is_ok_and(|value| value.contains(REPRESENTATION)));
    let uploaded = status.uploaded.take();
    let place = uploaded.as_ref().and_then(|done| place(asked.base_url, done));
    let mut response = match uploaded {
        Some(done) if wants_body => answer::json(StatusCode::CREATED, done.body),
        _ => answer::bare(empty),
    };
    let headers = response.headers_mut();
    if headers.contains_key(header::CONTENT_TYPE) {
        headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static(REPRESENTATION));
    }
    if let Some(place) = place {
        headers.insert(header::CONTENT_LOCATION, place);
    }
    describe(headers, &status);
    response
}

fn describe(headers: &mut HeaderMap, status: &UploadStatus) {
    headers.insert(UPLOAD_OFFSET, status.offset.into());
    if let Ok(expires) = HeaderValue::from_str(&httpdate::fmt_http_date(status.expires)) {
        headers.insert(UPLOAD_EXPIRES, expires);
    }
}

/// What every answer has.
fn finished(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(TUS_RESUMABLE, VERSION);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    response
}

fn is_data(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| value == CONTENT_TYPE)
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok());
    number.map(Some).ok_or_else(|| ApiError::bad_request(format!("{name} is not a whole number of bytes")))
}

/// `Upload-Metadata`: names with Base64 values, separated by commas; a name may stand alone.
fn fields(metadata: &str) -> Result<Vec<(String, String)>, ApiError> {
    if metadata.len() > MAX_UPLOAD_METADATA {
        return Err(ApiError::bad_request(format!("Upload-Metadata is longer than {MAX_UPLOAD_METADATA} bytes")));
    }
    let pairs = metadata.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let read = |pair: &str| {
        let (name, value) = pair.split_once(' ').unwrap_or((pair, ""));
        let value = BASE64.decode(value.trim().as_bytes()).ok().and_then(|value| String::from_utf8(value).ok());
        let value = value.ok_or_else(|| ApiError::bad_request(format!("Upload-Metadata: {name:.32} is not text in Base64")))?;
        Ok((name.to_owned(), value))
    };
    pairs.map(read).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn metadata_is_pairs_of_names_and_base64() {
        let pairs = fields("filename YSBiLmdjb2Rl, print dHJ1ZQ==,flag,empty ").unwrap();
        let expected = [("filename", "a b.gcode"), ("print", "true"), ("flag", ""), ("empty", "")];
        assert_eq!(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>(), expected);
        assert!(fields("").unwrap().is_empty() && fields(" , ,").unwrap().is_empty());
        for bad in ["filename YQ", "filename a b", "filename !!!!", "filename /w=="] {
            assert!(fields(bad).unwrap_err().message.contains("filename"), "{bad}");
        }
        assert!(fields(&"a,".repeat(MAX_UPLOAD_METADATA)).is_err());
    }

    #[test]
    fn numbers_are_digits_and_nothing_else() {
        let read = |text: &'static str| {
            let headers = HeaderMap::from_iter([(UPLOAD_OFFSET, HeaderValue::from_static(text))]);
            number(&headers, &UPLOAD_OFFSET).ok().flatten()
        };
        assert_eq!([read("0"), read("18446744073709551615")], [Some(0), Some(u64::MAX)]);
        assert!(["", "-1", "+1", "1.0", "0x1", " 1", "18446744073709551616"].into_iter().all(|text| read(text).is_none()));
        assert_eq!(number(&HeaderMap::new(), &UPLOAD_OFFSET).unwrap(), None);
    }

    #[test]
    fn addresses() {
        assert!(is_ours(ROUTE) && is_ours("/server/files/uploads/abc") && is_ours("/server/files/uploads/"));
        assert!(!is_ours("/server/files/upload") && !is_ours("/server/files/uploadsx"));
    }

    proptest! {
        #[test]
        fn any_metadata_is_read_or_refused(text in "\\PC*") {
            let _ = fields(&text);
        }

        #[test]
        fn what_was_encoded_is_read(name in "[a-z]{1,8}", value in "\\PC{0,40}") {
            let text = format!("{name} {}", BASE64.encode(value.as_bytes()));
            prop_assert_eq!(fields(&text).unwrap(), vec![(name, value)]);
        }
    }
}
