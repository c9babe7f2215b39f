//! `cargo xtask TASK`: checks and chores of the workspace.
//!
//! | task | what it does |
//! |---|---|
//! | `deps` | licences, bans and sources of all dependencies, by `deny.toml` |
//! | `floors` | a crate may use only crates on lower floors (also a test) |
//! | `golden` | rewrites the golden files and generated documentation |

#![allow(unreachable_pub, reason = "nothing outside a binary can reach it anyway")]

mod deps;
mod floors;
mod limits;
mod metadata;
mod spdx;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail, ensure};

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let outcome = match task.as_str() {
        "deps" => deps::check(&root()),
        "floors" => floors::check(&root()),
        "golden" => golden(),
        "limits" => limits::page(&root())
            .and_then(|page| Ok(std::fs::write(root().join("docs/limits.md"), page).map(|()| "docs/limits.md written".to_owned())?)),
        _ => {
            report("tasks: deps, floors, golden");
            return ExitCode::from(64);
        }
    };
    match outcome {
        Ok(summary) => {
            report(&summary);
            ExitCode::SUCCESS
        }
        Err(error) => {
            report(&format!("{task}: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

#[allow(clippy::print_stdout, reason = "the output of a command")]
fn report(text: &str) {
    println!("{text}");
}

/// Runs the tests that compare golden files, in the mode in which they write them.
fn golden() -> anyhow::Result<String> {
    std::fs::write(root().join("docs/limits.md"), limits::page(&root())?).context("docs/limits.md cannot be written")?;
    let status = Command::new(env!("CARGO"))
        .args(["test", "--package", "bowsprit", "--test", "e2e", "golden"])
        .env("UPDATE_GOLDEN", "1")
        .current_dir(root())
        .status()
        .context("cargo cannot be run")?;
    ensure!(status.success(), "the golden files could not be written");
    if let Ok(output) = Command::new("git").args(["status", "--short"]).current_dir(root()).output() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    bail!("git cannot be run")
}
