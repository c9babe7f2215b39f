//! The built-in page, as it lies in `web/`.

use transport::http::{Asset, Page};

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! asset {
    ($path:literal, $content_type:expr, $file:literal) => {
        Asset { path: $path, content_type: $content_type, content: include_bytes!(concat!("../../../web/", $file)) }
    };
}

/// Everything that a browser gets.
const ASSETS: &[Asset] = &[
    asset!("/", HTML, "index.html"),
    asset!("/docs", HTML, "docs.html"),
    asset!("/page/chart.js", SCRIPT, "page/chart.js"),
    asset!("/page/connection.js", SCRIPT, "page/connection.js"),
    asset!("/page/console.js", SCRIPT, "page/console.js"),
    asset!("/page/dashboard.js", SCRIPT, "page/dashboard.js"),
    asset!("/page/docs.css", STYLE, "page/docs.css"),
    asset!("/page/docs.js", SCRIPT, "page/docs.js"),
    asset!("/page/dom.js", SCRIPT, "page/dom.js"),
    asset!("/page/files.js", SCRIPT, "page/files.js"),
    asset!("/page/format.js", SCRIPT, "page/format.js"),
    asset!("/page/heat.js", SCRIPT, "page/heat.js"),
    asset!("/page/history.js", SCRIPT, "page/history.js"),
    asset!("/page/icon.svg", IMAGE, "page/icon.svg"),
    asset!("/page/main.js", SCRIPT, "page/main.js"),
    asset!("/page/printer.js", SCRIPT, "page/printer.js"),
    asset!("/page/queue.js", SCRIPT, "page/queue.js"),
    asset!("/page/schema.js", SCRIPT, "page/schema.js"),
    asset!("/page/session.js", SCRIPT, "page/session.js"),
    asset!("/page/style.css", STYLE, "page/style.css"),
    asset!("/page/theme.js", SCRIPT, "page/theme.js"),
    asset!("/page/upload.js", SCRIPT, "page/upload.js"),
];

/// The page.
pub fn page() -> Page {
    Page::new(ASSETS)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Bytes of all files together that the page may have.
    const MOST: usize = 150_000;

    #[test]
    fn every_file_is_served_and_the_page_stays_small() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/page");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| format!("/page/{}", entry.unwrap().file_name().to_str().unwrap()));
        for file in files {
            assert!(super::ASSETS.iter().any(|asset| asset.path == file), "{file} is not served");
        }
        let all: usize = super::ASSETS.iter().map(|asset| asset.content.len()).sum();
        assert!(all <= MOST, "{all} bytes");
    }
}
