//! `POST /server/files/upload` and routes like it: a multipart stream handed piece by piece to the file manager.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::body::Incoming;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::{ApiError, ErrorKind};
use rpc::Call;
use rpc::transfer::{FileTransfer, Upload, Uploaded};

use super::arguments::next_piece;
use super::{Response, answer};
use crate::limits::{BODY_TIMEOUT, MAX_FORM_FIELD, MAX_FORM_HEAD};

/// Characters that stay as they are in the `Location` header.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// Takes an upload in and answers 201.
pub(super) async fn receive(
    files: &dyn FileTransfer,
    call: Arc<Call>,
    headers: &HeaderMap,
    body: Incoming,
    address: &str,
) -> Result<Response, ApiError> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let mut upload = files.begin_upload(announced)?;
    feed(upload.as_mut(), headers, body).await?;
    let done = upload.finish(call).await?;
    Ok(created(done, address))
}

/// Where a file can be had: below the address of all roots.
pub(super) fn location(address: &str, path: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{address}/{}", utf8_percent_encode(path, SEGMENT))).ok()
}

fn created(done: Uploaded, address: &str) -> Response {
    let mut response = answer::json(StatusCode::CREATED, done.body);
    if let Some(location) = location(address, &done.path) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

async fn feed(upload: &mut dyn Upload, headers: &HeaderMap, body: Incoming) -> Result<(), ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| ApiError::bad_request("Upload needs a body of type multipart/form-data with a boundary"))?;
    let pieces = stream::unfold(body, |mut body| async move { Some((next_piece(&mut body, BODY_TIMEOUT).await.transpose()?, body)) });
    feed_pieces(upload, boundary, pieces).await
}

async fn feed_pieces(
    upload: &mut dyn Upload,
    boundary: String,
    pieces: impl Stream<Item = Result<Bytes, ApiError>> + Send,
) -> Result<(), ApiError> {
    // The parser gathers the head of a part whole, however long it is: so bytes are counted while it looks for one.
    let head = Arc::new(AtomicUsize::new(0));
    let counted = head.clone();
    let pieces = pieces.map(move |piece| piece.and_then(|piece| within_head(&counted, piece)).map_err(Broken));
    let mut form = multer::Multipart::new(Box::pin(pieces), boundary);
    loop {
        head.store(0, Ordering::Relaxed);
        let Some(mut field) = form.next_field().await.map_err(broken)? else { return Ok(()) };
        head.store(NOT_COUNTED, Ordering::Relaxed);
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
}

/// Stands for "inside of a part, whose content has limits of its own".
const NOT_COUNTED: usize = usize::MAX;

/// Lets a piece pass unless the head of a part is too long with it.
fn within_head(counted: &AtomicUsize, piece: Bytes) -> Result<Bytes, ApiError> {
    let before = counted.load(Ordering::Relaxed);
    if before == NOT_COUNTED {
        return Ok(piece);
    }
    counted.store(before + piece.len(), Ordering::Relaxed);
    if before > MAX_FORM_HEAD {
        return Err(ApiError::new(ErrorKind::TooLarge, format!("The head of a form part is larger than {MAX_FORM_HEAD} bytes")));
    }
    Ok(piece)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rpc::transfer::Boxed;

    use super::*;

    /// Takes everything and remembers how much.
    #[derive(Default)]
    struct Taken {
        files: usize,
        bytes: usize,
    }

    impl Upload for Taken {
        fn field(&mut self, _: &str, value: String) -> Result<(), ApiError> {
            self.bytes += value.len();
            Ok(())
        }

        fn start_file<'a>(&'a mut self, _: &'a str) -> Boxed<'a, Result<(), ApiError>> {
            self.files += 1;
            Box::pin(async { Ok(()) })
        }

        fn chunk(&mut self, data: Bytes) -> Boxed<'_, Result<(), ApiError>> {
            self.bytes += data.len();
            Box::pin(async { Ok(()) })
        }

        fn finish(self: Box<Self>, _: Arc<Call>) -> Boxed<'static, Result<Uploaded, ApiError>> {
            Box::pin(async { Err(ApiError::internal("not asked for")) })
        }
    }

    /// Feeds a body in pieces of this size.
    fn fed(body: &[u8], size: usize) -> (Result<(), ApiError>, Taken) {
        let mut taken = Taken::default();
        let pieces: Vec<_> = body.chunks(size.max(1)).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        (runtime.block_on(feed_pieces(&mut taken, "B".into(), stream::iter(pieces))), taken)
    }

    /// What forms, and their forgeries, are made of.
    fn fragment() -> impl Strategy<Value = Vec<u8>> {
        let text = |text: &'static str| Just(text.as_bytes().to_vec());
        prop_oneof![
            text("--B\r\n"),
            text("--B--\r\n"),
            text("--B"),
            text("\r\n"),
            text("\r\n\r\n"),
            text("Content-Disposition: form-data; name=\"file\"; filename=\"a.gcode\"\r\n\r\n"),
            text("Content-Disposition: form-data; name=\"root\"\r\n\r\n"),
            text("Content-Disposition: form-data;\r\n name=\"file\"\r\n\r\n"),
            text("Content-Disposition: form-data; name=file; name=\"path\"; filename*=UTF-8''%00\r\n\r\n"),
            text("Content-Type: multipart/mixed; boundary=B\r\n\r\n"),
            text("G28\r\n"),
            prop::collection::vec(any::<u8>(), 0..20),
        ]
    }

    proptest! {
        #[test]
        fn any_form_is_taken_or_refused_as_the_clients_fault(parts in prop::collection::vec(fragment(), 0..16), size in 1..40_usize) {
            let body = parts.concat();
            let (result, taken) = fed(&body, size);
            prop_assert!(taken.bytes <= body.len(), "nothing is made up");
            if let Err(error) = result {
                prop_assert!((400..500).contains(&error.kind.http_status()), "{}", error.message);
                prop_assert!(!error.message.is_empty());
            }
        }

        #[test]
        fn what_is_in_a_good_form_arrives_whole(content in prop::collection::vec(any::<u8>(), 0..400), size in 1..64_usize) {
            let head = b"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n";
            prop_assume!(!content.windows(5).any(|window| window == b"\r\n--B"));
            let body = [&head[..], &content, b"\r\n--B--\r\n"].concat();
            let (result, taken) = fed(&body, size);
            prop_assert!(result.is_ok());
            prop_assert_eq!((taken.files, taken.bytes), (1, content.len()));
        }
    }

    #[test]
    fn heads_are_bounded_and_contents_are_not() {
        let counted = AtomicUsize::new(0);
        let piece = Bytes::from(vec![0; 64 * 1024]);
        let refused_after = (0..100).take_while(|_| within_head(&counted, piece.clone()).is_ok()).count();
        assert!((4..8).contains(&refused_after), "{refused_after}");
        counted.store(NOT_COUNTED, Ordering::Relaxed);
        assert!((0..100).all(|_| within_head(&counted, piece.clone()).is_ok()));
    }
}
