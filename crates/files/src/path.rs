//! Paths as callers write them: split, normalised, bounded. Pure; nothing here looks at a disk.
//!
//! Source: wire/2-files-jobs.md section 1.2.

use std::fmt;
use std::path::{Path, PathBuf};

/// Longest path that a caller may name, in bytes: what the operating system takes.
pub const MAX_PATH_BYTES: usize = 4096;
/// Longest name of one file or folder, in bytes: what usual file systems take.
pub const MAX_NAME_BYTES: usize = 255;
/// Deepest nesting that a caller may name.
pub const MAX_COMPONENTS: usize = 128;
/// Names that begin so belong to us: never listed, never reached by a request.
pub const OWN_PREFIX: &str = ".bowsprit-";

/// What is wrong with a path's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// It holds a NUL character, which no file name can.
    #[error("a path cannot contain a NUL character")]
    Nul,
    /// It, or a part of it, is longer than allowed.
    #[error("the path or one of its names is too long")]
    TooLong,
    /// It climbs out of where it starts.
    #[error("the path leaves its root")]
    Outside,
    /// A name for a new file has a control character.
    #[error("a new name cannot contain control characters")]
    ControlCharacter,
}

/// A path below a root: names joined by `/`, none of them empty, `.` or `..`. Empty for the root itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RelPath(String);

impl RelPath {
    /// Normalises a path relative to a root; outer and doubled slashes do not count.
    ///
    /// # Errors
    /// [`PathFault`], `Outside` when it climbs above its start at any point.
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        let parts = Parts::parse(text)?;
        Ok(Self(parts.names.join("/")))
    }

    /// The text, without slashes at its ends.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for the root itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The names from the root down.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// The last name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The folder that holds it; the root for the root itself.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0.rsplit_once('/').map(|(parent, _)| parent.to_owned()).unwrap_or_default())
    }

    /// It and the folders that hold it, outermost first; the root is not among them.
    pub fn lineage(&self) -> impl Iterator<Item = Self> {
        let ends = self.0.match_indices('/').map(|(end, _)| end).chain((!self.is_root()).then_some(self.0.len()));
        ends.filter_map(|end| self.0.get(..end)).map(|path| Self(path.to_owned()))
    }

    /// Where it would be below `base`, links not resolved.
    #[must_use]
    pub fn below(&self, base: &Path) -> PathBuf {
        let mut path = base.to_owned();
        path.extend(self.names());
        path
    }

    /// Refuses names that may exist but that we do not make: a line break in a name would end a gcode command that carries it.
    ///
    /// # Errors
    /// [`PathFault::ControlCharacter`].
    pub fn check_new(&self) -> Result<(), PathFault> {
        if self.0.chars().any(char::is_control) { Err(PathFault::ControlCharacter) } else { Ok(()) }
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path as requests write it: root name, then the path below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath {
    /// Name of the root; not checked to exist.
    pub root: String,
    /// The path below it.
    pub relative: RelPath,
    /// The text climbed out of its first name and came back (`gcodes/../config`). Operations allow it, downloads do not.
    pub changed_root: bool,
}

impl RequestPath {
    /// Normalises, then takes the root off.
    ///
    /// # Errors
    /// [`PathFault`].
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        let parts = Parts::parse(text)?;
        let mut names = parts.names.into_iter();
        let root = names.next().unwrap_or_default().to_owned();
        let relative = RelPath(names.collect::<Vec<_>>().join("/"));
        Ok(Self { root, relative, changed_root: parts.left_first })
    }
}

struct Parts<'t> {
    names: Vec<&'t str>,
    left_first: bool,
}

impl<'t> Parts<'t> {
    fn parse(text: &'t str) -> Result<Self, PathFault> {
        if text.len() > MAX_PATH_BYTES {
            return Err(PathFault::TooLong);
        }
        if text.contains('\0') {
            return Err(PathFault::Nul);
        }
        let mut parts = Self { names: Vec::new(), left_first: false };
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    parts.names.pop().ok_or(PathFault::Outside)?;
                    parts.left_first |= parts.names.is_empty();
                }
                name if name.len() > MAX_NAME_BYTES || parts.names.len() == MAX_COMPONENTS => return Err(PathFault::TooLong),
                name => parts.names.push(name),
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn relative(text: &str) -> Result<String, PathFault> {
        RelPath::parse(text).map(|path| path.as_str().to_owned())
    }

    #[test]
    fn normalises() {
        assert_eq!(relative("//a//./b/../c/"), Ok("a/c".into()));
        assert_eq!(relative(""), Ok(String::new()));
        assert_eq!(relative("a/..b/...").unwrap(), "a/..b/...");
        assert_eq!(relative("%2e%2e/x").unwrap(), "%2e%2e/x", "decoding is the transport's; once decoded it is not decoded again");
        assert_eq!(relative("..\\..\\x").unwrap(), "..\\..\\x", "a backslash is part of a name");
    }

    #[test]
    fn the_lineage_begins_at_the_top() {
        let lineage = |text: &str| RelPath::parse(text).unwrap().lineage().map(|path| path.to_string()).collect::<Vec<_>>();
        assert_eq!(lineage("a/ü/c"), ["a", "a/ü", "a/ü/c"]);
        assert_eq!((lineage("a"), lineage("")), (vec!["a".to_owned()], vec![]));
    }

    #[test]
    fn refuses_what_leaves_or_cannot_exist() {
        for text in ["..", "a/../..", "/../etc/passwd", "a/../../a/b", "./../x"] {
            assert_eq!(relative(text), Err(PathFault::Outside), "{text}");
        }
        assert_eq!(relative("a\0b"), Err(PathFault::Nul));
        assert_eq!(relative(&"x".repeat(MAX_NAME_BYTES + 1)), Err(PathFault::TooLong));
        assert_eq!(relative(&"a/".repeat(MAX_COMPONENTS + 1)), Err(PathFault::TooLong));
        assert_eq!(relative(&"/".repeat(MAX_PATH_BYTES + 1)), Err(PathFault::TooLong));
    }

    #[test]
    fn takes_the_root_off_after_normalising() {
        let parsed = RequestPath::parse("/gcodes//a/b.gcode/").unwrap();
        assert_eq!((parsed.root.as_str(), parsed.relative.as_str(), parsed.changed_root), ("gcodes", "a/b.gcode", false));
        let parsed = RequestPath::parse("gcodes/../config/x").unwrap();
        assert_eq!((parsed.root.as_str(), parsed.relative.as_str(), parsed.changed_root), ("config", "x", true));
        assert_eq!(RequestPath::parse("").unwrap().root, "");
        assert_eq!(RequestPath::parse("gcodes/../../etc"), Err(PathFault::Outside));
    }

    #[test]
    fn parents_and_names() {
        let path = RelPath::parse("a/b/c").unwrap();
        assert_eq!((path.parent().as_str(), path.name()), ("a/b", "c"));
        assert_eq!(RelPath::parse("c").unwrap().parent(), RelPath::default());
        assert!(RelPath::parse("a\nb").unwrap().check_new().is_err());
    }

    proptest! {
        #[test]
        fn a_parsed_path_never_leaves(text in "([a-z.%\\\\ é]{0,4}/?){0,12}") {
            if let Ok(path) = RelPath::parse(&text) {
                let full = path.below(Path::new("/root"));
                prop_assert!(full.starts_with("/root"));
                prop_assert!(full.components().all(|part| !matches!(part, std::path::Component::ParentDir | std::path::Component::CurDir)));
                prop_assert_eq!(RelPath::parse(path.as_str()).unwrap(), path, "parsing again changes nothing");
            }
        }

        #[test]
        fn agrees_with_a_stack_of_names(names in proptest::collection::vec(prop_oneof![Just(".."), Just("."), Just(""), Just("a"), Just("b.c")], 0..12)) {
            let mut stack = Some(Vec::new());
            for name in &names {
                match *name {
                    "" | "." => {}
                    ".." => stack = stack.and_then(|mut stack: Vec<&str>| stack.pop().map(|_| stack)),
                    name => stack = stack.map(|mut stack| { stack.push(name); stack }),
                }
            }
            prop_assert_eq!(relative(&names.join("/")).ok(), stack.map(|stack| stack.join("/")));
        }
    }
}
