//! The floors of the house (ARCHITECTURE.md): a crate may use only crates on lower floors.

use std::fmt::Write;
use std::path::Path;

use anyhow::bail;

use crate::metadata;

/// Crate → floor. Side crates stand above everything and nobody but the binary may use them.
const FLOORS: &[(&str, u8)] = &[
    ("protocol", 0),
    ("config", 0),
    ("gcode", 0),
    ("runtime", 1),
    ("template", 1),
    ("rpc", 2),
    ("store", 2),
    ("fwhost", 2),
    ("outbound", 2),
    ("tls", 2),
    ("access", 3),
    ("files", 3),
    ("jobs", 3),
    ("machine", 3),
    ("printer", 3),
    ("server", 3),
    ("integrations", 3),
    ("devices", 3),
    ("transport", 4),
    ("bowsprit", 5),
];

/// Crates beside the house, and who may use them (besides tests).
const SIDE: &[(&str, &[&str])] = &[("simulator", &["bowsprit"]), ("fuzzing", &[]), ("xtask", &[])];

/// Crates above floor 0 that are pure nevertheless.
const PURE: &[&str] = &["template"];

/// Dependencies that pure crates must not have: those of floor 0 and [`PURE`].
const NOT_PURE: &[&str] = &["tokio", "tokio-util", "hyper", "rusqlite", "rustix"];

/// Checks every declared dependency.
pub fn check(root: &Path) -> anyhow::Result<String> {
    let metadata = metadata::read(root, false)?;
    let floor = |name: &str| FLOORS.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor);
    let mut faults = String::new();
    for package in &metadata.packages {
        let side = SIDE.iter().any(|(name, _)| *name == package.name);
        let Some(own) = floor(&package.name).or(side.then_some(u8::MAX)) else {
            let _ = writeln!(faults, "{} stands on no floor: add it to xtask/src/floors.rs and to ARCHITECTURE.md", package.name);
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev")) {
            if (own == 0 || PURE.contains(&package.name.as_str())) && NOT_PURE.contains(&dependency.name.as_str()) {
                let _ = writeln!(faults, "{} is pure and must not use {}", package.name, dependency.name);
            }
            if dependency.path.is_none() {
                continue;
            }
            let users = SIDE.iter().find(|(name, _)| *name == dependency.name).map(|(_, users)| *users);
            let allowed = match (users, floor(&dependency.name)) {
                (Some(users), _) => users.contains(&package.name.as_str()),
                (None, Some(other)) => other < own,
                (None, None) => true,
            };
            if !allowed {
                let _ = writeln!(faults, "{} (floor {own}) must not use {}", package.name, dependency.name);
            }
        }
    }
    if !faults.is_empty() {
        bail!("\n{faults}");
    }
    Ok(format!("{} crates keep to their floors", metadata.packages.len()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn crates_keep_to_their_floors() {
        super::check(&crate::root()).unwrap();
    }
}
