//! The form of an upload and the place that it names. Pure. Source: wire/2-files-jobs.md section 1.3.

use protocol::ApiError;

use crate::path::{PathFault, RelPath};
use crate::root::GCODES;

/// Longest text part, in bytes; paths are shorter.
pub(crate) const MAX_FIELD_BYTES: usize = 4096;

/// The text parts of an upload, in whatever order they came. Unknown parts are ignored; of repeated ones the last counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UploadForm {
    pub(crate) root: String,
    pub(crate) path: String,
    /// SHA-256 in hex, as given.
    pub(crate) checksum: Option<String>,
    pub(crate) print: bool,
}

/// Where an upload goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Folder that is made when it is missing (part `path`).
    pub(crate) folder: RelPath,
    /// The file.
    pub(crate) file: RelPath,
}

impl Default for UploadForm {
    fn default() -> Self {
        Self { root: GCODES.to_owned(), path: String::new(), checksum: None, print: false }
    }
}

impl UploadForm {
    /// Takes a text part in.
    ///
    /// # Errors
    /// 400 when it is too long.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        if value.len() > MAX_FIELD_BYTES {
            return Err(ApiError::bad_request(format!("Upload form: part {name:.32} is longer than {MAX_FIELD_BYTES} bytes")));
        }
        let trimmed = value.trim();
        match name {
            "root" => self.root = trimmed.to_lowercase(),
            "path" => self.path = trimmed.to_owned(),
            "checksum" => self.checksum = Some(trimmed.to_owned()).filter(|given| !given.is_empty()),
            "print" => self.print = value == "true",
            _ => {}
        }
        Ok(())
    }

    /// The place for a file of this name.
    ///
    /// # Errors
    /// When the names cannot be a path below a root.
    pub(crate) fn target(&self, file_name: &str) -> Result<Target, PathFault> {
        let folder = RelPath::parse(&self.path)?;
        // The file's own subfolders may not climb into what `path` names, so the two are parsed apart.
        let inner = RelPath::parse(file_name)?;
        let file = RelPath::parse(&format!("{folder}/{inner}"))?;
        file.check_new()?;
        Ok(Target { folder, file })
    }
}

/// The name in the file part, without what browsers and slicers put around it; `None` when there is no name.
pub(crate) fn file_name(given: &str) -> Option<String> {
    let name = given.trim().trim_matches('/');
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(parts: &[(&str, &str)]) -> UploadForm {
        let mut form = UploadForm::default();
        for (name, value) in parts {
            form.set(name, value).unwrap();
        }
        form
    }

    #[test]
    fn parts_in_any_order_last_one_counts() {
        let form =
            form(&[("print", "true"), ("root", "Config"), ("plateindex", "1"), ("path", " /a/b "), ("root", "CONFIG"), ("checksum", "")]);
        assert_eq!(form, UploadForm { root: "config".into(), path: "/a/b".into(), checksum: None, print: true });
    }

    #[test]
    fn print_is_the_exact_word() {
        for value in ["True", "1", " true", "yes", ""] {
            assert!(!form(&[("print", value)]).print, "{value:?}");
        }
        assert!(form(&[("root", &"x".repeat(MAX_FIELD_BYTES))]).root.len() == MAX_FIELD_BYTES);
        assert!(UploadForm::default().set("x", &"x".repeat(MAX_FIELD_BYTES + 1)).is_err());
    }

    #[test]
    fn targets() {
        let target = form(&[("path", "/a//b/")]).target("c/d.gcode").unwrap();
        assert_eq!((target.folder.as_str(), target.file.as_str()), ("a/b", "a/b/c/d.gcode"));
        for (path, name) in [("..", "x"), ("a", "../x"), ("a/../..", "x"), ("", "../../x")] {
            assert_eq!(form(&[("path", path)]).target(name), Err(PathFault::Outside), "{path} {name}");
        }
        assert_eq!(form(&[]).target("a\nb.gcode"), Err(PathFault::ControlCharacter));
    }

    #[test]
    fn names_are_trimmed() {
        assert_eq!(file_name(" /sub/a b.gcode ").as_deref(), Some("sub/a b.gcode"));
        assert_eq!((file_name(""), file_name(" / ")), (None, None));
    }
}
