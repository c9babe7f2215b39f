//! The named roots, and what is reserved below them: data without rules about requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

/// Root of the gcode files.
pub const GCODES: &str = "gcodes";
/// Root of the configuration.
pub const CONFIG: &str = "config";
/// Root of the logs.
pub const LOGS: &str = "logs";

/// What callers may do with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Permissions {
    /// Nothing.
    #[serde(rename = "")]
    Nothing,
    /// Read.
    #[serde(rename = "r")]
    Read,
    /// Read and change.
    #[serde(rename = "rw")]
    ReadWrite,
}

impl Permissions {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Read => "r",
            Self::ReadWrite => "rw",
        }
    }
}

/// A named folder that clients see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its name.
    pub name: String,
    /// Its folder, links resolved.
    pub path: PathBuf,
    /// False for roots that clients may only read.
    pub writable: bool,
}

impl Root {
    /// What callers may do in it as far as it is not reserved.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        if self.writable { Permissions::ReadWrite } else { Permissions::Read }
    }
}

/// The roots in the order of their registration, which clients see.
#[derive(Debug, Default, Clone)]
pub(crate) struct Roots(Vec<Arc<Root>>);

impl Roots {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Root>> {
        self.0.iter().find(|root| root.name == name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Root>> {
        self.0.iter()
    }

    /// Adds a root, or gives a known one a new folder in its old place. True when a known one now points elsewhere.
    pub(crate) fn set(&mut self, root: Root) -> bool {
        match self.0.iter_mut().find(|known| known.name == root.name) {
            Some(known) => {
                let moved = known.path != root.path;
                *known = Arc::new(root);
                moved
            }
            None => {
                self.0.push(Arc::new(root));
                false
            }
        }
    }
}

/// A file or folder that lies in a root's reach and is not for clients (wire/2-files-jobs.md section 1.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// The name in the error text.
    pub name: String,
    /// The path; it and everything below it is reserved.
    pub path: PathBuf,
    /// True when clients may read it.
    pub readable: bool,
}

impl Reserved {
    /// True when `real` (links resolved) is it or lies below it.
    #[must_use]
    pub fn covers(&self, real: &Path) -> bool {
        real.starts_with(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(name: &str, path: &str) -> Root {
        Root { name: name.into(), path: path.into(), writable: false }
    }

    #[test]
    fn order_is_that_of_registration() {
        let mut roots = Roots::default();
        for (name, path) in [("config", "/c"), ("logs", "/l")] {
            assert!(!roots.set(root(name, path)));
        }
        assert!(!roots.set(root("config", "/c")), "nothing moved");
        assert!(roots.set(root("config", "/d")));
        assert_eq!(roots.iter().map(|root| root.name.as_str()).collect::<Vec<_>>(), ["config", "logs"]);
    }

    #[test]
    fn reserved_goes_by_components() {
        let reserved = Reserved { name: "x".into(), path: "/data/certs".into(), readable: false };
        assert!(reserved.covers(Path::new("/data/certs/key.pem")) && !reserved.covers(Path::new("/data/certs2/a")));
    }
}
