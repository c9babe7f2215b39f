//! What a file is, by its name: gcode or not, which content type, public or not. Pure.

use rpc::Access;

use crate::root::CONFIG;

/// Extensions of gcode files (document 2, wire/2-files-jobs.md section 1.3).
const GCODE_EXTENSIONS: &[&str] = &["gcode", "g", "gco", "ufp", "nc"];
/// Pictures that pages embed without being able to send headers (wire/2-files-jobs.md section 1.4).
const PUBLIC_EXTENSIONS: &[&str] = &["png", "jpg"];
/// What browsers are told when nothing better is known.
const UNKNOWN_TYPE: &str = "application/octet-stream";

const CONTENT_TYPES: &[(&str, &str)] = &[
    ("gcode", "text/plain"),
    ("g", "text/plain"),
    ("gco", "text/plain"),
    ("nc", "text/plain"),
    ("log", "text/plain"),
    ("cfg", "text/plain"),
    ("conf", "text/plain"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
    ("json", "application/json"),
    ("xml", "text/xml"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("bmp", "image/bmp"),
    ("ico", "image/vnd.microsoft.icon"),
    ("svg", "image/svg+xml"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("mkv", "video/x-matroska"),
    ("avi", "video/x-msvideo"),
    ("mov", "video/quicktime"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("tar", "application/x-tar"),
    ("wasm", "application/wasm"),
];

/// The extension of a file name as it stands; a name that only begins with a dot has none.
fn extension(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit('/').next()?.rsplit_once('.')?;
    (!stem.is_empty()).then_some(extension)
}

fn has_extension(name: &str, wanted: &[&str]) -> bool {
    extension(name).is_some_and(|extension| wanted.iter().any(|wanted| extension.eq_ignore_ascii_case(wanted)))
}

/// True when the name is that of a gcode file, in any case of its extension.
#[must_use]
pub fn is_gcode(name: &str) -> bool {
    has_extension(name, GCODE_EXTENSIONS)
}

/// True when the name is that of a UFP container.
#[must_use]
pub fn is_ufp(name: &str) -> bool {
    has_extension(name, &["ufp"])
}

/// Who may read what lies at `ROOT/PATH`. Pages embed pictures without credentials; configurations hold passwords of other services.
#[must_use]
pub fn reading(path: &str) -> Access {
    if has_extension(path, PUBLIC_EXTENSIONS) {
        return Access::Open;
    }
    let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    match (parts.next(), parts.next()) {
        (Some(CONFIG), Some(".theme")) => Access::View,
        (Some(CONFIG), _) => Access::Control,
        _ => Access::View,
    }
}

/// The content type that downloads carry.
#[must_use]
pub fn content_type(name: &str) -> &'static str {
    let Some(extension) = extension(name) else { return UNKNOWN_TYPE };
    CONTENT_TYPES.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known)).map_or(UNKNOWN_TYPE, |(_, content_type)| content_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_extension_in_any_case() {
        assert!(is_gcode("a/Part.GCODE") && is_gcode("x.nc") && is_ufp("x.Ufp"));
        assert!(!is_gcode("x.gcode.bak") && !is_gcode(".gcode") && !is_gcode("gcode") && !is_gcode("a.gcode/readme"));
        assert_eq!(content_type("printer.CFG"), "text/plain");
        assert_eq!(content_type("klippy.log.gz"), "application/gzip");
        assert_eq!(content_type("README"), "application/octet-stream");
    }

    #[test]
    fn pictures_are_for_all_and_configurations_are_not_for_viewers() {
        for (path, access) in [
            ("gcodes/.thumbs/x.PNG", Access::Open),
            ("gcodes/x.png.gcode", Access::View),
            ("gcodes/config/x.cfg", Access::View),
            ("./config//printer.cfg", Access::Control),
            ("config/printer.cfg", Access::Control),
            ("config/.theme/default.json", Access::View),
        ] {
            assert_eq!(reading(path), access, "{path}");
        }
    }
}
