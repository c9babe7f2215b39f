//! Object processing against recorded samples of real slicers, where the samples are at hand.

use std::path::{Path, PathBuf};

use gcode::objects::{Family, ObjectsError, Outcome, Verdict, detect, process};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The established tool gives up on this one (wire document 2, section 4: `M486` without `T`); ours does not.
const M486_WITHOUT_COUNT: &str = "prusaslicer-2.8.1-qoi.gcode";

fn samples() -> Vec<(PathBuf, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/gcode-samples");
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut samples: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "gcode"))
        .map(|path| {
            let expected = std::fs::read(path.with_extension("expected.json")).unwrap();
            (path, serde_json::from_slice::<Value>(&expected).unwrap()["object_processing"].take())
        })
        .collect();
    samples.sort_by(|left, right| left.0.cmp(&right.0));
    samples
}

fn count(text: &str, start: &str) -> usize {
    text.lines().filter(|line| line.starts_with(start)).count()
}

#[test]
fn every_sample_comes_out_as_recorded() {
    for (path, expected) in samples() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let file = std::fs::read(&path).unwrap();
        let mut out = Vec::new();
        let outcome = process(file.as_slice(), &mut out, &|| true);
        let Some(sha256) = expected["sha256"].as_str() else {
            refused(&name, &expected["log"], &outcome, &out);
            continue;
        };

        let text = String::from_utf8(out.clone()).unwrap();
        let definitions: Vec<_> = text.lines().filter(|line| line.starts_with("EXCLUDE_OBJECT_DEFINE ")).collect();
        assert_eq!(serde_json::json!(definitions), expected["define"], "{name}");
        assert_eq!(count(&text, "EXCLUDE_OBJECT_START "), expected["starts"], "{name}");
        assert_eq!(count(&text, "EXCLUDE_OBJECT_END "), expected["ends"], "{name}");
        assert_eq!(out.len(), expected["size"], "{name}");
        let digest: String = Sha256::digest(&out).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, sha256, "{name}");

        let Ok(Outcome::Written { objects, bytes, .. }) = outcome else { panic!("{name}: {outcome:?}") };
        assert_eq!((objects, bytes), (definitions.len(), out.len() as u64), "{name}");
        assert_eq!(detect(out.as_slice()).unwrap(), Verdict::Processed, "{name}");
    }
}

/// The samples that the established tool leaves alone, and why.
fn refused(name: &str, log: &Value, outcome: &Result<Outcome, ObjectsError>, out: &[u8]) {
    let reason = log.as_array().and_then(|lines| lines.first()).and_then(Value::as_str);
    match reason {
        None => assert!(matches!(outcome, Ok(Outcome::Untouched(Verdict::NoObjects))), "{name}: {outcome:?}"),
        Some(reason) if reason.contains("currently supports cancellation") => {
            assert!(matches!(outcome, Ok(Outcome::Untouched(Verdict::Defined))), "{name}: {outcome:?}");
        }
        Some(_) if name == M486_WITHOUT_COUNT => {
            assert!(matches!(outcome, Ok(Outcome::Written { family: Family::M486, objects: 1, .. })), "{name}: {outcome:?}");
            let text = std::str::from_utf8(out).unwrap();
            assert_eq!(count(text, "EXCLUDE_OBJECT_DEFINE NAME=Shape_Box CENTER="), 1);
            assert_eq!(count(text, "EXCLUDE_OBJECT_START NAME=Shape_Box"), count(text, "EXCLUDE_OBJECT_END NAME=Shape_Box"));
            return;
        }
        // The IdeaMaker sample is cut: it announces more objects than it has.
        Some(_) => assert!(matches!(outcome, Err(ObjectsError::CountMismatch { declared: 4, .. })), "{name}: {outcome:?}"),
    }
    assert!(out.is_empty(), "{name}");
}
