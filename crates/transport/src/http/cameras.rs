//! Pictures of cameras: single ones, and streams as browsers show them in an `<img>`.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use protocol::ApiError;
use rpc::Access;
use rpc::pictures::{Camera, Cameras, Picture};

use super::arguments::query_value;
use super::{Body, Response, answer};

/// Route of streams.
const STREAM: &str = "/server/webcams/stream";

/// Route of single pictures.
const SNAPSHOT: &str = "/server/webcams/snapshot";

/// Both routes; they are no operations.
pub(super) const ROUTES: [&str; 2] = [STREAM, SNAPSHOT];

/// Pages that streamers have, and whether their pictures move.
const PAGES: [(&str, bool); 7] = [
    ("stream", true),
    ("stream.mjpg", true),
    ("stream.mjpeg", true),
    ("video", true),
    ("snapshot", false),
    ("snapshot.jpg", false),
    ("image.jpg", false),
];

/// Separates the pictures of a stream.
const BOUNDARY: &str = "picture";

/// What a request asks of a camera.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    camera: Camera,
    is_moving: bool,
}

impl Wanted {
    /// Which right it needs.
    pub(super) const ACCESS: Access = Access::View;

    /// Reads a request; `None` when it is none for a camera. Besides our routes these are the addresses that a proxy before a streamer
    /// usually has: `/webcam/?action=stream`, `/webcam2/snapshot`.
    pub(super) fn of(path: &str, query: &str) -> Option<Self> {
        if ROUTES.contains(&path) {
            let camera = Camera::Listed { uid: query_value(query, "uid"), name: query_value(query, "name") };
            return Some(Self { camera, is_moving: path == STREAM });
        }
        let (number, page) = path.strip_prefix("/webcam")?.split_once('/')?;
        if !matches!(number.as_bytes(), [] | [b'1'..=b'9']) {
            return None;
        }
        // Written anew from what is known: a caller chooses among pages of a streamer and can ask it for nothing else, and what a client adds
        // against caches makes no other camera.
        let (asked, is_moving) = match (page, query_value(query, "action").as_deref()) {
            ("", Some("stream")) => ("?action=stream", true),
            ("", Some("snapshot")) => ("?action=snapshot", false),
            (_, Some(_)) => return None,
            (page, None) => PAGES.iter().copied().find(|(known, _)| *known == page)?,
        };
        Some(Self { camera: Camera::At(format!("/webcam{number}/{asked}")), is_moving })
    }

    /// Asks the camera.
    pub(super) async fn ask(self, cameras: &dyn Cameras) -> Result<Response, ApiError> {
        let mut response = if self.is_moving {
            stream(cameras.watch(self.camera).await?)
        } else {
            let picture = cameras.snapshot(self.camera).await?;
            single(&picture)
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Ok(response)
    }
}

fn single(picture: &Picture) -> Response {
    let mut response = answer::bare(StatusCode::OK);
    if let Ok(media_type) = HeaderValue::from_str(&picture.media_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    }
    *response.body_mut() = picture.data.clone().into();
    response
}

fn stream(pictures: rpc::pictures::Pictures) -> Response {
    let mut response = answer::bare(StatusCode::OK);
    if let Ok(content_type) = HeaderValue::from_str(&format!("multipart/x-mixed-replace; boundary={BOUNDARY}")) {
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    }
    *response.body_mut() = Body::Pictures(Parts { pictures, waiting: vec![format!("--{BOUNDARY}\r\n").into()] });
    response
}

/// Pictures on their way out, as parts of a body. The next one is only taken when the last one is written.
pub struct Parts {
    pictures: rpc::pictures::Pictures,
    /// Pieces of the picture that is being sent, the next one last.
    waiting: Vec<Bytes>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Parts {
    pub(super) fn poll_piece(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<Bytes>> {
        if let Some(piece) = self.waiting.pop() {
            return std::task::Poll::Ready(Some(piece));
        }
        self.pictures.as_mut().poll_next(cx).map(|picture| {
            self.waiting = pieces(&picture?);
            self.waiting.pop()
        })
    }
}

/// Head, picture and delimiter, the last one first. The delimiter follows at once: browsers show a picture when they see that it has ended.
fn pieces(picture: &Arc<Picture>) -> Vec<Bytes> {
    let head = format!("Content-Type: {}\r\nContent-Length: {}\r\n\r\n", picture.media_type, picture.data.len());
    vec![format!("\r\n--{BOUNDARY}\r\n").into(), picture.data.clone(), head.into()]
}

#[cfg(test)]
mod tests {
    use futures_util::stream::iter;
    use http_body_util::BodyExt;

    use super::*;

    #[test]
    fn requests_for_cameras() {
        let at = |address: &str| Camera::At(address.to_owned());
        let listed = |uid: Option<&str>, name: Option<&str>| Camera::Listed { uid: uid.map(Into::into), name: name.map(Into::into) };
        for (path, query, expected) in [
            ("/server/webcams/stream", "uid=a-1", Some((listed(Some("a-1"), None), true))),
            ("/server/webcams/snapshot", "name=bed%20side", Some((listed(None, Some("bed side")), false))),
            ("/webcam/", "action=stream", Some((at("/webcam/?action=stream"), true))),
            ("/webcam2/", "action=snapshot&token=ABC&t=1", Some((at("/webcam2/?action=snapshot"), false))),
            ("/webcam/", "action=command&id=1&action=snapshot", Some((at("/webcam/?action=snapshot"), false))),
            ("/webcam9/../any/path", "action=snapshot", None),
            ("/webcam/any/path", "action=stream", None),
            ("/webcam/%2e%2e/x", "action=stream", None),
            ("/webcam0/", "action=stream", None),
            ("/webcam12/", "action=stream", None),
            ("/webcam/", "action=command", None),
            ("/webcam/stream", "", Some((at("/webcam/stream"), true))),
            ("/webcam", "action=stream", None),
            ("/webcam/", "", None),
            ("/webcam/../secret", "", None),
            ("/webcams/stream", "", None),
            ("/webcam/index.html", "", None),
        ] {
            let wanted = Wanted::of(path, query).map(|wanted| (wanted.camera, wanted.is_moving));
            assert_eq!(wanted, expected, "{path}?{query}");
        }
    }

    #[tokio::test]
    async fn a_stream_is_a_body_of_parts() {
        let picture = |data: &'static str| Arc::new(Picture { media_type: "image/jpeg".into(), data: data.into() });
        let response = stream(Box::pin(iter([picture("one"), picture("two")])));
        assert_eq!(response.headers()[header::CONTENT_TYPE], "multipart/x-mixed-replace; boundary=picture");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let part = |data| format!("Content-Type: image/jpeg\r\nContent-Length: 3\r\n\r\n{data}\r\n--picture\r\n");
        assert_eq!(String::from_utf8_lossy(&body), format!("--picture\r\n{}{}", part("one"), part("two")));
    }
}
