//! What `cargo metadata` says, as far as the checks need it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// The packages of a workspace and everything that they need.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// All packages.
    pub packages: Vec<Package>,
}

/// One package.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// SPDX expression.
    pub license: Option<String>,
    /// Where it comes from; none for our own.
    pub source: Option<String>,
    /// What it needs.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
}

/// A declared dependency.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// Name of the package.
    pub name: String,
    /// `dev`, `build` or none.
    pub kind: Option<String>,
    /// Folder, for our own packages.
    pub path: Option<String>,
}

/// Asks cargo; `with_dependencies` also reads packages of others.
pub fn read(root: &Path, with_dependencies: bool) -> anyhow::Result<Metadata> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version", "1"]).current_dir(root);
    if !with_dependencies {
        command.arg("--no-deps");
    }
    let output = command.output().context("cargo cannot be run")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("cargo metadata is not understood")
}
