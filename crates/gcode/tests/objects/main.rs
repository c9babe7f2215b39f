//! Object processing as its callers see it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod families;
mod golden;
mod hostile;
mod properties;

use gcode::objects::{ObjectsError, Outcome, process};

/// Processes a file in memory: what was done and what was written.
fn run(file: &[u8]) -> (Result<Outcome, ObjectsError>, Vec<u8>) {
    let mut out = Vec::new();
    let outcome = process(file, &mut out, &|| true);
    (outcome, out)
}

/// Processes a file that has objects.
fn written(file: &[u8]) -> String {
    let (outcome, out) = run(file);
    match outcome {
        Ok(Outcome::Written { bytes, .. }) => assert_eq!(bytes, out.len() as u64),
        other => panic!("{other:?}"),
    }
    String::from_utf8(out).unwrap()
}
