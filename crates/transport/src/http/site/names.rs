//! What the name of a file or the path of a request says, without looking at the disk.

use http::{HeaderMap, header};
use percent_encoding::percent_decode_str;

/// First segments of everything that is an interface; a page of a front end never lies below them.
const INTERFACES: &[&str] = &["server", "printer", "machine", "access", "api", "debug"];

/// Interfaces without anything below them.
const SOCKETS: &[&str] = &["websocket", "fwhostsocket", "klippysocket"];

/// Bytes of a hash in names as bundlers of today write them, in the folder `assets` only: other names may end in such a word, too.
const SHORT_HASH: usize = 8;

/// Hexadecimal digits from which on a part of a name is a hash wherever the file is.
const HEX_HASH: std::ops::RangeInclusive<usize> = 8..=64;

/// True for paths that belong to the API, whether or not there is an operation.
pub(in crate::http) fn is_interface(path: &str) -> bool {
    let path = path.trim_start_matches('/');
    match path.split_once('/') {
        Some((first, _)) => INTERFACES.contains(&first) || SOCKETS.contains(&first),
        // A page may be called `/machine`.
        None => SOCKETS.contains(&path),
    }
}

/// True for what a browser asks for when somebody opens an address: wants HTML, and names no file.
pub(super) fn is_navigation(path: &str, request: &HeaderMap) -> bool {
    let wants_html = request.get(header::ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|accept| accept.contains("text/html"));
    wants_html && !path.rsplit('/').next().unwrap_or("").contains('.')
}

/// The path below the root that a request names; `None` when it is none, leads upwards, or has a hidden part.
pub(super) fn relative(path: &str) -> Option<String> {
    let decoded = percent_decode_str(path.strip_prefix('/')?).decode_utf8().ok()?;
    let mut parts = decoded.split('/').peekable();
    while let Some(part) = parts.next() {
        // The last one is empty where a folder is meant.
        let is_folder_end = part.is_empty() && parts.peek().is_none();
        if !is_folder_end && (part.is_empty() || part.starts_with('.') || part.contains(['\0', '\\'])) {
            return None;
        }
    }
    Some(decoded.into_owned())
}

/// True when another content would have another name.
pub(super) fn is_hashed(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let Some((stem, _)) = name.rsplit_once('.') else { return false };
    let in_assets = folder.split('/').any(|part| part == "assets");
    // A short hash may hold a hyphen itself.
    let ends_short = || {
        let at = stem.len().checked_sub(SHORT_HASH + 1)?;
        let (before, hash) = (stem.as_bytes().get(at)?, stem.get(at + 1..)?);
        let is_hash = hash.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        // Words are written in small letters.
        let is_word = hash.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_".contains(&byte));
        Some(matches!(before, b'-' | b'.') && is_hash && !is_word)
    };
    let is_hex = |part: &str| {
        let has = |kind: fn(&u8) -> bool| part.as_bytes().iter().any(kind);
        HEX_HASH.contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_lowercase)
    };
    (in_assets && ends_short() == Some(true)) || name.split(['.', '-']).skip(1).any(is_hex)
}

/// The media type by the extension. Browsers take scripts and styles only under their right type.
pub(super) fn media_type(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or("");
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "js" | "mjs" | "cjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "txt" | "md" => "text/plain; charset=utf-8",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_and_interfaces_are_told_apart() {
        for interface in ["/server/info", "/printer/nothing/here", "/access/", "/api/version", "/websocket", "/klippysocket", "/machine/x"]
        {
            assert!(is_interface(interface), "{interface}");
        }
        for page in ["/", "/machine", "/settings/machine", "/servers/x", "/files", "/assets/a.js"] {
            assert!(!is_interface(page), "{page}");
        }
    }

    #[test]
    fn only_navigation_gets_the_page() {
        let browser = HeaderMap::from_iter([(header::ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8".parse().unwrap())]);
        let script = HeaderMap::from_iter([(header::ACCEPT, "*/*".parse().unwrap())]);
        assert!(is_navigation("/settings/machine", &browser) && is_navigation("/", &browser));
        assert!(!is_navigation("/assets/gone.js", &browser) && !is_navigation("/console", &script));
        assert!(!is_navigation("/console", &HeaderMap::new()));
    }

    #[test]
    fn paths_stay_below_the_root() {
        for (path, expected) in
            [("/", Some("")), ("/a/b.js", Some("a/b.js")), ("/f%C3%BCr%20mich.txt", Some("für mich.txt")), ("/docs/", Some("docs/"))]
        {
            assert_eq!(relative(path).as_deref(), expected, "{path}");
        }
        for refused in [
            "/../x",
            "/a/%2e%2e/b",
            "/.git/config",
            "/a/.env",
            "//etc/passwd",
            "/a//b",
            "/a/./b",
            "/%00",
            "/a%5c..%5cb",
            "/%ff",
            "x",
            "/%2fetc",
        ] {
            assert_eq!(relative(refused), None, "{refused}");
        }
    }

    #[test]
    fn names_with_a_hash() {
        for hashed in [
            "assets/index-DiwrgTda.js",
            "assets/index-D-Abc1_x.css",
            "js/app.1a2b3c4d.js",
            "fonts/roboto-latin-400.5d4aeb4e.woff2",
            "workbox-74f2ef77.js",
            "assets/index.8f3a91c2.css",
        ] {
            assert!(is_hashed(hashed), "{hashed}");
        }
        for plain in [
            "index.html",
            "config.json",
            "sw.js",
            "img/icons/icon-1024x1024.png",
            "img/icons/android-chrome-512x512.png",
            "assets/index-settings.js",
            "img/logo-Mainsail.svg",
            "manifest.webmanifest",
            "img/20240101.png",
            "assets/x.js",
        ] {
            assert!(!is_hashed(plain), "{plain}");
        }
    }

    proptest! {
        #[test]
        fn no_path_leaves_the_root(path in "/[a-z./%2eE0\\\\]{0,24}") {
            if let Some(relative) = relative(&path) {
                prop_assert!(!relative.starts_with('/'));
                prop_assert!(relative.split('/').all(|part| !part.starts_with('.')));
            }
        }

        #[test]
        fn any_name_is_survived(path in ".{0,40}") {
            let _ = (relative(&path), is_hashed(&path), media_type(&path), is_interface(&path));
        }
    }
}
