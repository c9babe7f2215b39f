//! Golden files: the public surface as documents. `UPDATE_GOLDEN=1` rewrites them.

use std::path::Path;
use std::process::Command;

use crate::harness::server::BOWSPRIT;

/// Compares what a command prints with a file, given relative to this crate.
fn compare(args: &[&str], file: &str) {
    let output = Command::new(BOWSPRIT).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    compare_text(&format!("`bowsprit {}`", args.join(" ")), &String::from_utf8(output.stdout).unwrap(), file);
}

/// Compares a text with a file, given relative to this crate.
pub(crate) fn compare_text(what: &str, printed: &str, file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        return std::fs::write(&path, printed).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}; run with UPDATE_GOLDEN=1"));
    let differs = kept.lines().zip(printed.lines()).position(|(kept, printed)| kept != printed);
    let line = differs.unwrap_or_else(|| kept.lines().count().min(printed.lines().count()));
    let show = |text: &str| text.lines().nth(line).unwrap_or("(end)").to_owned();
    assert!(
        kept == printed,
        "{what} is no longer what {file} says, from line {} on:\n  file:    {}\n  printed: {}\nIf that is intended, run with UPDATE_GOLDEN=1.",
        line + 1,
        show(&kept),
        show(printed)
    );
}

#[test]
fn openapi_contract() {
    compare(&["contract"], "tests/golden/openapi.json");
}

#[test]
fn rpc_contract() {
    compare(&["contract", "--rpc"], "tests/golden/rpc.json");
}

#[test]
fn configuration_reference() {
    compare(&["config-reference"], "../../docs/configuration.md");
}

#[test]
fn help() {
    compare(&["--help"], "tests/golden/help.txt");
}

#[test]
fn help_of_serve() {
    compare(&["serve", "--help"], "tests/golden/help-serve.txt");
}
