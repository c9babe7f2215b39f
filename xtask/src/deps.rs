//! Licences, bans and sources of all dependencies, by the rules of `deny.toml`.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::{metadata, spdx};

#[derive(Deserialize)]
struct Rules {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

/// Checks every package that any of ours needs.
pub fn check(root: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(root.join("deny.toml")).context("deny.toml cannot be read")?;
    let rules: Rules = toml::from_str(&text).context("deny.toml is not understood")?;
    let metadata = metadata::read(root, true)?;
    let mut faults = String::new();
    for package in &metadata.packages {
        let name = format!("{} {}", package.name, package.version);
        let licence = package.license.as_deref().unwrap_or("none");
        if !spdx::satisfied(licence, &|licence| rules.licenses.allow.iter().any(|allowed| allowed == licence)) {
            let _ = writeln!(faults, "{name}: licence {licence} is not allowed");
        }
        if let Some(ban) = rules.bans.deny.iter().find(|ban| ban.name == package.name) {
            let _ = writeln!(faults, "{name} is banned: {}", ban.reason);
        }
        if package.source.as_deref().is_some_and(|source| !source.starts_with("registry+")) {
            let _ = writeln!(faults, "{name} does not come from a registry");
        }
    }
    if !faults.is_empty() {
        bail!("\n{faults}");
    }
    Ok(format!("{} packages: licences, bans and sources are in order", metadata.packages.len()))
}
