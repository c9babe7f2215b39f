//! What a browser gets: a front end from a folder, the built-in page, or a word of welcome.

use std::path::{Path, PathBuf};

use config::{OptionSet, Reader};
use integrations::webcams::relay::Places;
use transport::http::{Page, Site};

/// Where streamers usually listen.
const STREAMERS: &[&str] = &["http://127.0.0.1:8080", "http://127.0.0.1:8081", "http://127.0.0.1:8082", "http://127.0.0.1:8083"];

/// Folders of the data folder with what is not for everybody.
const PRIVATE: &[&str] = &["config", "database", "backup", "certs", "comms", "logs"];

config::options! {
    /// What browsers get. Without a folder that is the built-in page.
    pub struct WebOptions: "web" {
        /// Folder of a built front end, such as Mainsail or Fluidd, or of any other static site; served at `/`, to everybody.
        root: Option<PathBuf> = None,
        /// Whether the built-in page is shown where no folder is served.
        builtin_page: bool = true,
        /// Addresses of the camera streamers behind `/webcam/`, `/webcam2/` and so on, one a line: where `stream_url: /webcam/?action=stream` leads.
        webcam_streamers: Vec<String> = STREAMERS,
        /// Address to which the server joins all other webcam addresses that are paths on this machine.
        webcam_base: String = "http://127.0.0.1",
    }
}

impl WebOptions {
    /// The options; a folder without a page gives a warning.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let options: Self = reader.read_or_default();
        if let Some(root) = &options.root
            && let Err(error) = std::fs::File::open(root.join("index.html"))
        {
            let instead = if options.builtin_page { "the built-in page" } else { "a text" };
            let page = root.join("index.html");
            reader.warn(Self::SECTION, "root", format!("{} cannot be read: {error}; {instead} is shown instead", page.display()));
        }
        let is_http = |address: &String| ["http://", "https://"].iter().any(|scheme| address.starts_with(scheme));
        for (option, is_sound) in
            [("webcam_streamers", options.webcam_streamers.iter().all(is_http)), ("webcam_base", is_http(&options.webcam_base))]
        {
            if !is_sound {
                reader.reject(Self::SECTION, option, "expected addresses that start with http:// or https://");
            }
        }
        options
    }

    /// Where paths of webcams lead.
    pub fn places(&self) -> Places {
        Places { streamers: self.webcam_streamers.clone(), base: self.webcam_base.clone() }
    }

    /// The front end of the configured folder; a sentence when serving it to everybody would give away what is kept here.
    ///
    /// # Errors
    /// When the folder holds the data folder, or lies in a part of it that is not for everybody.
    pub fn site(&self, data: &Path) -> Result<Option<Site>, String> {
        let Some(root) = &self.root else { return Ok(None) };
        let (real, data) = (root.canonicalize().unwrap_or_else(|_| root.clone()), data.canonicalize().unwrap_or_else(|_| data.to_owned()));
        let is_private = data.starts_with(&real) || PRIVATE.iter().any(|name| real.starts_with(data.join(name)));
        if is_private {
            return Err(format!("[web] root: {} is not served, for what the server keeps would be open to everybody", root.display()));
        }
        Ok(Some(Site::new(root.clone())))
    }

    /// The built-in page, or what stands in its place.
    pub fn page(&self, route_prefix: &str) -> Page {
        let page = crate::page::page();
        if self.builtin_page {
            return page;
        }
        let prefix = if route_prefix.is_empty() { String::new() } else { format!("/{route_prefix}") };
        page.with_welcome(format!("This is Bowsprit, an API server for 3D printers.\nIts interface is described at {prefix}/docs\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_keeps_is_not_served() {
        let data = tempfile::tempdir().unwrap();
        for folder in ["certs/inner", "config", "mainsail"] {
            std::fs::create_dir_all(data.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(data.path(), data.path().join("link")).unwrap();
        let site = |root: PathBuf| WebOptions { root: Some(root), ..WebOptions::default() }.site(data.path());
        for root in ["", "certs/inner", "config", "link", "mainsail/.."] {
            assert!(site(data.path().join(root)).is_err(), "{root}");
        }
        assert!(site(PathBuf::from("/")).is_err());
        assert!(site(data.path().join("mainsail")).unwrap().is_some());
        assert!(WebOptions::default().site(data.path()).unwrap().is_none());
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[web]\nbuiltin_page: yes\nroot: {data_path}\n";
        let read = || {
            let loaded = config::load_text("core.conf", text);
            let context = config::Context { data_path: folder.path().to_owned(), ..Default::default() };
            let mut reader = Reader::new(&loaded.document, &context);
            let options = WebOptions::read(&mut reader);
            assert_eq!(options.root.as_deref(), Some(folder.path()));
            reader.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let warnings = read();
        assert!(warnings.len() == 1 && warnings[0].starts_with("core.conf:3: [web] root: "), "{warnings:?}");
        std::fs::write(folder.path().join("index.html"), "").unwrap();
        assert!(read().is_empty());
    }
}
