//! The mount table, as far as it concerns the roots: a stick that is plugged in or out brings no events of its own.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::service::Files;

const TABLE: &str = "/proc/self/mountinfo";
/// Most bytes of the table that are read; containers can have hundreds of mounts, a printer has some dozen.
const MAX_TABLE_BYTES: u64 = 1024 * 1024;

/// What was mounted where, at the last look.
#[derive(Default)]
pub(super) struct Mounts {
    table: Option<File>,
    known: Vec<Mount>,
}

/// A line of the table: what identifies a mount, and where it is.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    id: String,
    device: String,
    at: PathBuf,
}

impl Mounts {
    /// Looks for the first time. Without the table nothing ever changes.
    pub(super) fn begin(files: &Files) -> Self {
        let mut mounts = Self { table: File::open(TABLE).ok(), known: Vec::new() };
        mounts.has_changed(files);
        mounts
    }

    /// The kernel raises its priority flag when something is mounted or unmounted.
    pub(super) fn source(&self) -> Option<&File> {
        self.table.as_ref()
    }

    /// True when something that concerns the roots was mounted or unmounted since the last look.
    pub(super) fn has_changed(&mut self, files: &Files) -> bool {
        let Some(table) = &mut self.table else { return false };
        let mut text = Vec::new();
        if table.rewind().and_then(|()| table.take(MAX_TABLE_BYTES).read_to_end(&mut text)).is_err() {
            return false;
        }
        let roots = files.library.roots();
        let places: Vec<&Path> = roots.iter().map(|root| root.path.as_path()).chain(files.library.link_targets()).collect();
        let now: Vec<_> = text.split(|byte| *byte == b'\n').filter_map(parse).filter(|mount| concerns(&mount.at, &places)).collect();
        let changed = now != self.known;
        self.known = now;
        changed
    }
}

fn concerns(mount: &Path, places: &[&Path]) -> bool {
    places.iter().any(|place| mount.starts_with(place) || place.starts_with(mount))
}

/// `id parent major:minor root mountpoint ...`
fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = String::from_utf8(fields.next()?.to_vec()).ok()?;
    let device = String::from_utf8(fields.nth(1)?.to_vec()).ok()?;
    Some(Mount { id, device, at: PathBuf::from(std::ffi::OsString::from_vec(unescaped(fields.nth(1)?))) })
}

/// Blanks and the like stand as `\040`.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let code = tail.get(..3).filter(|_| *first == b'\\').and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_table() {
        let mount = parse(br"36 35 98:0 /mnt1 /mnt/my\040stick rw,noatime master:1 - ext3 /dev/root rw").unwrap();
        assert_eq!(mount, Mount { id: "36".into(), device: "98:0".into(), at: "/mnt/my stick".into() });
        assert_eq!(parse(b""), None);
        assert_eq!(unescaped(br"a\"), br"a\");
    }

    #[test]
    fn only_what_concerns_the_roots() {
        let places = [Path::new("/data/gcodes"), Path::new("/media")];
        for mount in ["/", "/data", "/data/gcodes", "/data/gcodes/x", "/media/stick"] {
            assert!(concerns(Path::new(mount), &places), "{mount}");
        }
        assert!(!concerns(Path::new("/data/gcodes2"), &places) && !concerns(Path::new("/run/user/1000"), &places));
    }
}
