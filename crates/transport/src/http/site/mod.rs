//! A front end from a folder: files, packed copies beside them, and the page itself for addresses that only its scripts know.
//!
//! Whatever lies in the folder is public, as with any web server. Hidden files are not served, nor what a link leads to outside of the folder.

mod names;

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rustix::fs::{Mode, OFlags};
use tokio::task::spawn_blocking;

use super::download::Content;
use super::encoding::accepts;
use super::{Response, answer};
pub(super) use names::is_interface;

/// The page of a folder.
const INDEX: &str = "index.html";

/// A year: what has a hash in its name never changes.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Asked for each time and answered with 304: after an update nobody sees half of the old front end.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");

/// Codings of packed copies with the ends of their names, the best one first.
const PACKED: [(&str, &str); 2] = [("br", "br"), ("gzip", "gz")];

/// A folder that is served.
#[derive(Debug, Clone)]
pub struct Site {
    root: PathBuf,
}

/// What a path leads to.
enum Found {
    File {
        content: Content,
        path: String,
    },
    /// A folder with a page, asked for without the slash that relative addresses in its page need.
    Folder,
}

impl Site {
    /// Serves the files below `root`. It is looked up for each request, so that it may be replaced as a whole or appear later.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The file that a path names.
    pub(super) async fn file(&self, path: &str, method: &Method, request: &HeaderMap) -> Option<Response> {
        let relative = names::relative(path)?;
        let accepted = PACKED.map(|(coding, _)| accepts(request, coding));
        let root = self.root.clone();
        let found = spawn_blocking(move || find(&root, &relative, accepted)).await.ok()??;
        Some(match found {
            Found::File { content, path } => send(content, &path, method, request),
            Found::Folder => answer::redirect(&format!("{}/", path.rsplit('/').next().unwrap_or(""))),
        })
    }

    /// The front end's page for an address that its scripts understand, if somebody opens one.
    pub(super) async fn page(&self, path: &str, method: &Method, request: &HeaderMap) -> Option<Response> {
        if names::is_navigation(path, request) { self.file("/", method, request).await } else { None }
    }
}

fn send(content: Content, path: &str, method: &Method, request: &HeaderMap) -> Response {
    let mut response = content.send(method, request);
    let status = response.status();
    let headers = response.headers_mut();
    if status != StatusCode::NOT_MODIFIED {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(names::media_type(path)));
    }
    headers.insert(header::CACHE_CONTROL, if names::is_hashed(path) { FOR_EVER } else { ASK_AGAIN });
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    // No policy for scripts and frames: front ends evaluate templates, load themes, show cameras of other machines and are shown in other pages.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Looks a path up and opens what is there, in the best coding that is accepted.
fn find(root: &Path, relative: &str, accepted: [bool; 2]) -> Option<Found> {
    let root = root.canonicalize().ok()?;
    let target = within(&root, relative)?;
    if target.is_dir() {
        let is_asked_as_folder = relative.is_empty() || relative.ends_with('/');
        let index = format!("{relative}{}{INDEX}", if is_asked_as_folder { "" } else { "/" });
        let page = within(&root, &index)?;
        return if is_asked_as_folder { open(&root, &index, &page, accepted) } else { Some(Found::Folder) };
    }
    open(&root, relative, &target, accepted)
}

/// The canonical form of a path below the canonical root; `None` when it is not there, leads outside or to something hidden.
fn within(root: &Path, relative: &str) -> Option<PathBuf> {
    let target = root.join(relative).canonicalize().ok()?;
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    let is_shown = !target.strip_prefix(root).ok()?.components().any(is_hidden);
    is_shown.then_some(target)
}

fn open(root: &Path, relative: &str, target: &Path, accepted: [bool; 2]) -> Option<Found> {
    let plain = content(target, "")?;
    let packed = PACKED.iter().zip(accepted).filter(|(_, is_accepted)| *is_accepted).find_map(|(&(coding, end), _)| {
        let packed = content(&within(root, &format!("{relative}.{end}"))?, coding)?;
        // One that was left behind by an update is not of this file.
        (packed.modified >= plain.modified).then_some(packed)
    });
    Some(Found::File { content: packed.unwrap_or(plain), path: relative.to_owned() })
}

fn content(path: &Path, coding: &'static str) -> Option<Content> {
    // Not blocking: a pipe would wait for its writer. Not through a link: the path is canonical, one would have been put there since.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let known = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(Content { file, size: known.len(), modified: known.modified().ok()?, coding })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};

    use http_body_util::BodyExt;

    use super::*;

    struct Bench {
        folder: tempfile::TempDir,
        site: Site,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("ui");
            for (path, text) in [
                ("index.html", "<html>"),
                ("assets/app-DiwrgTda.js", "script"),
                ("guide/index.html", "guide"),
                (".version", "v1"),
                ("config.json", "{}"),
            ] {
                fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
                fs::write(root.join(path), text).unwrap();
            }
            fs::write(folder.path().join("secret.txt"), "secret").unwrap();
            Self { site: Site::new(root), folder }
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.site.root.join(path), text).unwrap();
        }

        async fn ask(&self, path: &str, headers: &[(header::HeaderName, &str)]) -> Option<(Response, String)> {
            let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
            let mut response = self.site.file(path, &Method::GET, &headers).await?;
            let body = std::mem::replace(response.body_mut(), super::super::Body::empty()).collect().await.unwrap().to_bytes();
            Some((response, String::from_utf8_lossy(&body).into_owned()))
        }

        async fn text(&self, path: &str) -> Option<String> {
            self.ask(path, &[]).await.map(|(_, text)| text)
        }
    }

    #[tokio::test]
    async fn files_with_their_types_and_life_times() {
        let bench = Bench::new();
        for (path, text, media_type, cache) in [
            ("/", "<html>", "text/html; charset=utf-8", "no-cache"),
            ("/index.html", "<html>", "text/html; charset=utf-8", "no-cache"),
            ("/config.json", "{}", "application/json", "no-cache"),
            ("/assets/app-DiwrgTda.js", "script", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
            ("/guide/", "guide", "text/html; charset=utf-8", "no-cache"),
        ] {
            let (response, body) = bench.ask(path, &[]).await.unwrap();
            assert_eq!((response.status().as_u16(), body.as_str()), (200, text), "{path}");
            assert_eq!(response.headers()[header::CONTENT_TYPE], media_type, "{path}");
            assert_eq!(response.headers()[header::CACHE_CONTROL], cache, "{path}");
        }
        let (redirect, _) = bench.ask("/guide", &[]).await.unwrap();
        assert_eq!((redirect.status().as_u16(), redirect.headers()[header::LOCATION].to_str().unwrap()), (308, "guide/"));
    }

    #[tokio::test]
    async fn what_is_not_served() {
        let bench = Bench::new();
        let root = &bench.site.root;
        symlink(bench.folder.path().join("secret.txt"), root.join("link.txt")).unwrap();
        symlink(bench.folder.path(), root.join("up")).unwrap();
        symlink(root.join(".version"), root.join("version.txt")).unwrap();
        symlink(root.join("config.json"), root.join("same.json")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in [
            "/link.txt",
            "/up/secret.txt",
            "/version.txt",
            "/.version",
            "/none.js",
            "/assets/",
            "/assets",
            "/pipe",
            "/../secret.txt",
            "/index.html/",
            "/index.html/x",
        ] {
            assert_eq!(bench.text(path).await, None, "{path}");
        }
        assert_eq!(bench.text("/same.json").await.as_deref(), Some("{}"), "a link within the folder");
    }

    #[tokio::test]
    async fn packed_copies_for_those_who_take_them() {
        let bench = Bench::new();
        let path = "/assets/app-DiwrgTda.js";
        bench.write("assets/app-DiwrgTda.js.gz", "packed by gzip");
        bench.write("assets/app-DiwrgTda.js.br", "packed by brotli");
        for (accept, text, coding) in [
            ("gzip, br", "packed by brotli", Some("br")),
            ("gzip", "packed by gzip", Some("gzip")),
            ("br;q=0", "script", None),
            ("", "script", None),
        ] {
            let (response, body) = bench.ask(path, &[(header::ACCEPT_ENCODING, accept)]).await.unwrap();
            assert_eq!(body, text, "{accept}");
            assert_eq!(response.headers().get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap()), coding);
            assert_eq!(response.headers()[header::CONTENT_TYPE], "text/javascript; charset=utf-8");
            assert_eq!(response.headers()[header::VARY], "Accept-Encoding");
        }
        let old = File::options().write(true).open(bench.site.root.join("assets/app-DiwrgTda.js.br")).unwrap();
        old.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
        assert_eq!(
            bench.ask(path, &[(header::ACCEPT_ENCODING, "br, gzip")]).await.unwrap().1,
            "packed by gzip",
            "a stale copy does not count"
        );
    }

    #[tokio::test]
    async fn conditional_requests_know_the_coding() {
        let bench = Bench::new();
        bench.write("index.html.gz", "packed");
        let (first, _) = bench.ask("/", &[(header::ACCEPT_ENCODING, "gzip")]).await.unwrap();
        let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        let (again, body) = bench.ask("/", &[(header::ACCEPT_ENCODING, "gzip"), (header::IF_NONE_MATCH, &tag)]).await.unwrap();
        assert_eq!((again.status().as_u16(), body.as_str()), (304, ""));
        assert_eq!(bench.ask("/", &[(header::IF_NONE_MATCH, &tag)]).await.unwrap().0.status(), 200, "the plain form is another thing");
        let (part, body) = bench.ask("/", &[(header::RANGE, "bytes=1-4")]).await.unwrap();
        assert_eq!((part.status().as_u16(), body.as_str()), (206, "html"));
    }

    #[tokio::test]
    async fn a_folder_may_appear_later() {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::new(folder.path().join("ui"));
        assert!(site.file("/", &Method::GET, &HeaderMap::new()).await.is_none());
        fs::create_dir(folder.path().join("ui")).unwrap();
        fs::write(folder.path().join("ui/index.html"), "here").unwrap();
        assert!(site.file("/", &Method::GET, &HeaderMap::new()).await.is_some());
    }
}
