//! Files that are part of the program: the built-in page, and the contract in which it shows the API.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use rpc::{Operations, contract};

use super::encoding::accepts;
use super::{Response, answer};

/// Scripts, styles and connections only from here, nothing written into the page, no frame around it on other pages.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'self'",
);

/// Shorter files do not become smaller in any way that counts.
const WORTH_COMPRESSING: usize = 512;

/// Routes of the contract; for whoever may look.
pub(super) const CONTRACT: [&str; 2] = ["/server/openapi.json", "/server/rpc.json"];

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Route under which it is served.
    pub path: &'static str,
    /// Media type.
    pub content_type: &'static str,
    /// Content.
    pub content: &'static [u8],
}

/// What is served under which route. Compressed copies are made when they are first asked for.
#[derive(Debug, Default)]
pub struct Page {
    files: HashMap<&'static str, Served>,
    contract: [OnceLock<Served>; 2],
}

#[derive(Debug)]
struct Served {
    content_type: &'static str,
    plain: Bytes,
    tag: u64,
    compressed: OnceLock<Bytes>,
}

impl Page {
    /// A page of these files; strangers may read them.
    #[must_use]
    pub fn new(assets: &[Asset]) -> Self {
        let served = |asset: &Asset| Served::new(asset.content_type, Bytes::from_static(asset.content));
        Self { files: assets.iter().map(|asset| (asset.path, served(asset))).collect(), contract: Default::default() }
    }

    /// The same without the page at `/`; a text stands there instead.
    #[must_use]
    pub fn with_welcome(mut self, text: String) -> Self {
        self.files.insert("/", Served::new("text/plain; charset=utf-8", text.into()));
        self
    }

    /// The file under this route, if there is one.
    pub(super) fn file(&self, path: &str, request: &HeaderMap) -> Option<Response> {
        Some(self.files.get(path)?.answer(request))
    }

    /// One of the [`CONTRACT`] documents. Writing it takes some time, but only once.
    pub(super) fn contract(&self, path: &str, operations: &Operations, request: &HeaderMap) -> Response {
        let [openapi, methods] = &self.contract;
        let json = |document: serde_json::Value| Served::new("application/json; charset=UTF-8", document.to_string().into());
        let served = if path == CONTRACT[0] {
            openapi.get_or_init(|| json(contract::openapi(operations)))
        } else {
            methods.get_or_init(|| json(contract::methods(operations)))
        };
        served.answer(request)
    }
}

impl Served {
    fn new(content_type: &'static str, plain: Bytes) -> Self {
        let mut hasher = DefaultHasher::new();
        plain.hash(&mut hasher);
        Self { content_type, plain, tag: hasher.finish(), compressed: OnceLock::new() }
    }

    fn answer(&self, request: &HeaderMap) -> Response {
        let is_compressed = accepts(request, "gzip") && self.plain.len() >= WORTH_COMPRESSING;
        let tag = format!("\"{:016x}{}\"", self.tag, if is_compressed { "-gz" } else { "" });
        let mut response = if is_known(request, &tag) {
            answer::bare(StatusCode::NOT_MODIFIED)
        } else {
            let body = if is_compressed { self.compressed.get_or_init(|| compress(&self.plain)) } else { &self.plain };
            answer::text(StatusCode::OK, self.content_type, body.clone())
        };
        let headers = response.headers_mut();
        if is_compressed && headers.contains_key(header::CONTENT_TYPE) {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(header::ETAG, tag);
        }
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        // Asked for each time, answered with 304: after an update nobody sees half of the old page.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        response
    }
}

fn is_known(request: &HeaderMap, tag: &str) -> bool {
    let known = request.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or("");
    known.split(',').any(|one| matches!(one.trim().trim_start_matches("W/"), "*") || one.trim().trim_start_matches("W/") == tag)
}

fn compress(plain: &Bytes) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 3), Compression::default());
    // Writing into memory does not fail.
    let _ = encoder.write_all(plain);
    encoder.finish().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http_body_util::BodyExt;

    use super::*;

    const TEXT: &[u8] = &[b'a'; 4000];

    fn ask(headers: &[(header::HeaderName, &str)]) -> Response {
        let page = Page::new(&[Asset { path: "/", content_type: "text/html; charset=utf-8", content: TEXT }]);
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        page.file("/", &headers).unwrap()
    }

    #[tokio::test]
    async fn compressed_for_those_who_understand_it() {
        for (accept, is_compressed) in
            [("gzip, deflate, br", true), ("br;q=1, GZIP;q=0.5", true), ("gzip;q=0", false), ("identity", false), ("", false)]
        {
            let response = ask(&[(header::ACCEPT_ENCODING, accept)]);
            assert_eq!(response.headers().contains_key(header::CONTENT_ENCODING), is_compressed, "{accept}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let mut text = Vec::new();
            if is_compressed {
                assert!(body.len() < 100);
                flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut text).unwrap();
            } else {
                text = body.to_vec();
            }
            assert_eq!(text, TEXT, "{accept}");
        }
    }

    #[test]
    fn what_the_client_has_is_not_sent_again() {
        let tag = ask(&[]).headers()[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!(ask(&[(header::IF_NONE_MATCH, &format!("\"x\", W/{tag}"))]).status(), 304);
        assert_eq!(ask(&[(header::IF_NONE_MATCH, "\"x\"")]).status(), 200);
        // The compressed form is another thing.
        assert_eq!(ask(&[(header::IF_NONE_MATCH, &tag), (header::ACCEPT_ENCODING, "gzip")]).status(), 200);
    }
}
