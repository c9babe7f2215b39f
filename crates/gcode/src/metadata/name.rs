//! Which names belong to sliced files, and what their thumbnails are called after.

/// Extensions of files that are parsed; case does not matter (section 3.1).
pub const EXTENSIONS: [&str; 5] = ["gcode", "g", "gco", "nc", "ufp"];

/// True for names of files that have metadata.
///
/// ```
/// assert!(gcode::metadata::is_accepted("Benchy.GCODE"));
/// assert!(!gcode::metadata::is_accepted("notes.txt"));
/// ```
pub fn is_accepted(file_name: &str) -> bool {
    extension(file_name).is_some_and(|found| EXTENSIONS.iter().any(|known| found.eq_ignore_ascii_case(known)))
}

/// True for packages that hold a sliced file instead of being one.
pub fn is_ufp(file_name: &str) -> bool {
    extension(file_name).is_some_and(|found| found.eq_ignore_ascii_case("ufp"))
}

/// The name without its last extension: `a.b.gcode` gives `a.b`. A leading dot is no extension.
pub fn stem(file_name: &str) -> &str {
    match file_name.rfind('.') {
        None | Some(0) => file_name,
        Some(dot) => &file_name[..dot],
    }
}

fn extension(file_name: &str) -> Option<&str> {
    let stem = stem(file_name);
    file_name[stem.len()..].strip_prefix('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_in_any_case() {
        for name in ["a.gcode", "a.G", "A.Gco", "x.y.NC", "p.UFP"] {
            assert!(is_accepted(name), "{name}");
        }
        for name in ["gcode", ".gcode", "a.gcode.txt", "a.", "", "a.gcodes"] {
            assert!(!is_accepted(name), "{name}");
        }
        assert!(is_ufp("a.Ufp") && !is_ufp("a.gcode"));
    }

    #[test]
    fn stems_lose_the_last_extension_only() {
        assert_eq!(stem("a.b.gcode"), "a.b");
        assert_eq!(stem("plain"), "plain");
        assert_eq!(stem(".hidden"), ".hidden");
        assert_eq!(stem("ü.g"), "ü");
    }
}
