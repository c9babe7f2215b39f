//! The distribution of the operating system.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Roots;

/// Files in `/etc` that look like those of a distribution and say something else.
const OTHERS: &[&str] =
    &["debian_version", "lsb-release", "oem-release", "os-release", "system-release", "initrd-release", "upstream-release"];

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub(crate) struct Distribution {
    name: String,
    id: String,
    version: String,
    version_parts: VersionParts,
    like: String,
    codename: String,
    /// What the file of the distribution itself says, where there is one: `name`, `version_id`, `codename`, `id`.
    release_info: BTreeMap<&'static str, String>,
    kernel_version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
struct VersionParts {
    major: String,
    minor: String,
    build_number: String,
}

pub(super) fn read(roots: &Roots) -> Distribution {
    let text = roots.text("/etc/os-release").or_else(|| roots.text("/usr/lib/os-release")).unwrap_or_default();
    let release = assignments(&text);
    let value = |name: &str| release.get(name).cloned().unwrap_or_default();
    let version = value("VERSION_ID");
    let mut parts = version.splitn(3, '.').map(str::to_owned);
    let mut part = || parts.next().unwrap_or_default();
    let version_parts = VersionParts { major: part(), minor: part(), build_number: part() };
    let codename = release.get("VERSION_CODENAME").cloned().or_else(|| in_parentheses(&value("VERSION"))).unwrap_or_default();
    Distribution {
        name: release.get("PRETTY_NAME").cloned().unwrap_or_else(|| value("NAME")),
        id: value("ID"),
        version,
        version_parts,
        like: value("ID_LIKE"),
        codename,
        release_info: own_release(roots).unwrap_or_default(),
        kernel_version: roots.text("/proc/sys/kernel/osrelease").unwrap_or_default(),
    }
}

/// `NAME="value"` lines, as os-release(5) describes them.
fn assignments(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.trim().split_once('=')).filter(|(name, _)| !name.starts_with('#'));
    pairs.map(|(name, value)| (name.to_owned(), unquoted(value))).collect()
}

fn unquoted(value: &str) -> String {
    let inner = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let mut out = String::new();
    let mut characters = inner.unwrap_or(value).chars();
    while let Some(character) = characters.next() {
        out.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    out
}

fn in_parentheses(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('(')?;
    Some(rest.split_once(')')?.0.trim().to_owned())
}

/// The first of `/etc/*-release` and `/etc/*_version` that a distribution wrote about itself: `Name release 1.2 (codename)`.
fn own_release(roots: &Roots) -> Option<BTreeMap<&'static str, String>> {
    roots.names("/etc").iter().filter(|name| !OTHERS.contains(&name.as_str())).find_map(|name| {
        let id = ["-release", "_release", "-version", "_version"].iter().find_map(|ending| name.strip_suffix(ending))?;
        let text = roots.text(&format!("/etc/{name}"))?;
        let mut info = release_line(text.lines().next()?)?;
        info.insert("id", id.to_lowercase());
        Some(info)
    })
}

fn release_line(line: &str) -> Option<BTreeMap<&'static str, String>> {
    let mut info = BTreeMap::new();
    if let Some(codename) = in_parentheses(line) {
        info.insert("codename", codename);
    }
    let mut words: Vec<&str> = line.split('(').next()?.split_whitespace().collect();
    if let Some(version) = words.pop_if(|word| word.starts_with(|first: char| first.is_ascii_digit())) {
        info.insert("version_id", version.to_owned());
    }
    words.pop_if(|word| *word == "release");
    (!words.is_empty()).then(|| info.insert("name", words.join(" ")))?;
    Some(info).filter(|info| !info["name"].is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;
    use proptest::prelude::*;

    const DEBIAN: &str = "PRETTY_NAME=\"Raspbian GNU/Linux 11 (bullseye)\"\nNAME=\"Raspbian GNU/Linux\"\nVERSION_ID=\"11.2\"\n\
                          VERSION=\"11 (bullseye)\"\nID=raspbian\nID_LIKE='debian'\n# X=1\n";

    #[test]
    fn a_distribution_names_itself() {
        let found = read(
            &tree(&[
                ("/etc/os-release", DEBIAN),
                ("/etc/debian_version", "11.2\n"),
                ("/etc/mainsailos-release", "MainsailOS release 1.0.1 (bullseye)\n"),
                ("/proc/sys/kernel/osrelease", "6.1.21-v8+\n"),
            ])
            .1,
        );
        assert_eq!(
            (found.name.as_str(), found.id.as_str(), found.like.as_str()),
            ("Raspbian GNU/Linux 11 (bullseye)", "raspbian", "debian")
        );
        assert_eq!((found.codename.as_str(), found.kernel_version.as_str()), ("bullseye", "6.1.21-v8+"));
        assert_eq!((found.version_parts.major.as_str(), found.version_parts.minor.as_str()), ("11", "2"));
        let info: Vec<_> = found.release_info.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(info, [("codename", "bullseye"), ("id", "mainsailos"), ("name", "MainsailOS"), ("version_id", "1.0.1")]);
    }

    #[test]
    fn nothing_is_known_of_a_system_without_these_files() {
        assert_eq!(read(&tree(&[]).1), Distribution::default());
        assert_eq!((release_line(""), release_line("(x)"), unquoted("\"a\\\"b\"")), (None, None, "a\"b".to_owned()));
        assert_eq!(release_line("12.3").as_ref(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}") {
            let _ = (assignments(&text), release_line(&text), in_parentheses(&text));
        }
    }
}
