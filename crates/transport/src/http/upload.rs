//! `POST /server/files/upload`: a multipart stream handed piece by piece to the file manager.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::body::Incoming;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::{ApiError, ErrorKind};
use rpc::Call;
use rpc::transfer::{FileTransfer, Upload, Uploaded};

use super::arguments::next_piece;
use super::{Response, answer};
use crate::limits::{BODY_TIMEOUT, MAX_FORM_FIELD};

/// Characters that stay as they are in the `Location` header.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// Takes an upload in and answers 201.
pub(super) async fn receive(
    files: &dyn FileTransfer,
    call: Arc<Call>,
    headers: &HeaderMap,
    body: Incoming,
    base_url: &str,
) -> Result<Response, ApiError> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let mut upload = files.begin_upload(announced)?;
    feed(upload.as_mut(), headers, body).await?;
    let done = upload.finish(call).await?;
    Ok(created(done, base_url))
}

fn created(done: Uploaded, base_url: &str) -> Response {
    let mut response = answer::json(StatusCode::CREATED, done.body);
    let location = format!("{base_url}/server/files/{}", utf8_percent_encode(&done.path, SEGMENT));
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

async fn feed(upload: &mut dyn Upload, headers: &HeaderMap, body: Incoming) -> Result<(), ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| ApiError::bad_request("Upload needs a body of type multipart/form-data with a boundary"))?;
    let pieces = stream::unfold(body, |mut body| async move {
        let piece = next_piece(&mut body, BODY_TIMEOUT).await.transpose()?;
        Some((piece.map_err(Broken), body))
    });
    let mut form = multer::Multipart::new(Box::pin(pieces), boundary);
    while let Some(mut field) = form.next_field().await.map_err(broken)? {
        let name = field.name().unwrap_or("").to_owned();
        // Only the part named `file` is the file: clients send other parts with file names, too.
        if name != "file" {
            upload.field(&name, field_text(&mut field).await?)?;
            continue;
        }
        upload.start_file(field.file_name().unwrap_or("")).await?;
        while let Some(data) = field.chunk().await.map_err(broken)? {
            upload.chunk(data).await?;
        }
    }
    Ok(())
}

async fn field_text(field: &mut multer::Field<'_>) -> Result<String, ApiError> {
    let mut text = Vec::new();
    while let Some(data) = field.chunk().await.map_err(broken)? {
        if (text.len() + data.len()) as u64 > MAX_FORM_FIELD {
            return Err(ApiError::new(ErrorKind::TooLarge, format!("A form field is larger than {MAX_FORM_FIELD} bytes")));
        }
        text.extend_from_slice(&data);
    }
    Ok(Bytes::from(text)).map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// Carries our own error through the multipart parser.
#[derive(Debug)]
struct Broken(ApiError);

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Broken {}

#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn broken(error: multer::Error) -> ApiError {
    if let multer::Error::StreamReadFailed(inner) = &error
        && let Some(Broken(ours)) = inner.downcast_ref()
    {
        return ours.clone();
    }
    ApiError::bad_request(format!("File Upload Parsing Failed: {error}"))
}
