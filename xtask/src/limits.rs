//! `docs/limits.md`: every documented constant of a number or a time in the server's crates, with its sentence.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Crates whose limits are not the server's.
const OTHERS: &[&str] = &["simulator", "fuzzing"];

/// Types of constants that are limits, sizes or times.
const TYPES: &[&str] = &["usize", "u64", "u32", "Duration"];

const HEAD: &str =
    "# Limits\n\nEverything that can grow, wait or repeat has a limit. This page is written from the source by `cargo xtask golden`.\n";

/// The page.
pub fn page(root: &Path) -> anyhow::Result<String> {
    let mut out = HEAD.to_owned();
    let mut crates: Vec<PathBuf> = fs::read_dir(root.join("crates"))?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    crates.sort();
    for folder in crates {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut rows = Vec::new();
        if !OTHERS.contains(&name.as_str()) {
            collect(&folder.join("src"), &mut rows)?;
        }
        if rows.is_empty() {
            continue;
        }
        let _ = write!(out, "\n## {name}\n\n| limit | value | meaning |\n|---|---|---|\n");
        for row in rows {
            let _ = writeln!(out, "| `{}` | {} | {} |", row.name, row.value, row.doc);
        }
    }
    Ok(out)
}

struct Row {
    name: String,
    value: String,
    doc: String,
}

fn collect(folder: &Path, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, rows)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            rows.extend(constants(&fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// The documented constants of a source text, up to its tests.
fn constants(source: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut doc = Vec::new();
    for line in source.lines().take_while(|line| !line.starts_with("#[cfg(test)]")) {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            doc.push(text.trim().to_owned());
            continue;
        }
        if !doc.is_empty()
            && let Some(row) = constant(line, &doc.join(" "))
        {
            rows.push(row);
        }
        doc.clear();
    }
    rows
}

fn constant(line: &str, doc: &str) -> Option<Row> {
    let rest =
        line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).or_else(|| line.strip_prefix("pub(super) ")).unwrap_or(line);
    let (name, rest) = rest.strip_prefix("const ")?.split_once(": ")?;
    let (kind, value) = rest.split_once(" = ")?;
    let value = value.strip_suffix(';')?;
    TYPES.contains(&kind).then(|| Row { name: name.to_owned(), value: readable(value), doc: doc.replace('|', "\\|") })
}

/// `10 * 1024 * 1024` → `10 MiB`, `Duration::from_secs(5)` → `5 s`.
fn readable(value: &str) -> String {
    for (suffix, unit) in [(" * 1024 * 1024 * 1024", "GiB"), (" * 1024 * 1024", "MiB"), (" * 1024", "KiB")] {
        if let Some(count) = value.strip_suffix(suffix) {
            return format!("{count} {unit}");
        }
    }
    for (prefix, unit) in [("Duration::from_secs(", "s"), ("Duration::from_millis(", "ms")] {
        if let Some(count) = value.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(')')) {
            return format!("{} {unit}", count.replace('_', ""));
        }
    }
    value.replace('_', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_rows() {
        let rows = constants(
            "/// Of a thing,\n/// at most.\npub const MAX: usize = 10 * 1024 * 1024;\n\nconst NO_DOC: usize = 3;\n/// Wait.\nconst W: Duration = Duration::from_millis(1_500);\n#[cfg(test)]\n/// No.\nconst N: usize = 1;\n",
        );
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].name.as_str(), rows[0].value.as_str(), rows[0].doc.as_str()), ("MAX", "10 MiB", "Of a thing, at most."));
        assert_eq!(rows[1].value, "1500 ms");
    }

    #[test]
    fn the_page_is_current() {
        let path = crate::root().join("docs/limits.md");
        assert!(fs::read_to_string(path).unwrap_or_default() == page(&crate::root()).unwrap(), "run cargo xtask golden");
    }
}
