//! Real files of eleven slicers, compared with what the reference server reads; skipped where they are not present.

use std::fs;

use serde_json::{Map, Value};

use crate::compare::{crate_folder, files, scan_file, to_object, without_sizes_of_made_images};

/// The file whose QOI blocks end with a plain mark: we find them, the reference does not (section 11, number 10).
const MORE_THAN_THE_REFERENCE: &str = "cura-4.13.1-qoi";

/// Files with CRLF line ends, where the reference takes the height of a Z-hop for the object's (section 11, number 11).
const LOWER_THAN_THE_REFERENCE: [(&str, f64); 2] = [("prusaslicer-2.4.0-m486", 5.0), ("superslicer-2.3.56", 5.0)];

#[test]
fn every_value_is_that_of_the_reference() {
    let samples = crate_folder().join("../../../shared/gcode-samples");
    let mut differences = Vec::new();
    for path in files(&samples, ".gcode") {
        let expected: Value = serde_json::from_slice(&fs::read(path.with_extension("expected.json")).unwrap()).unwrap();
        let Value::Object(mut expected) = expected["metadata"].clone() else { panic!("no metadata") };
        let scan = scan_file(&path);
        let mut found = to_object(&scan);
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name == MORE_THAN_THE_REFERENCE {
            assert_eq!(found.remove("thumbnails").unwrap().as_array().unwrap().len(), 3);
        }
        if let Some((_, height)) = LOWER_THAN_THE_REFERENCE.iter().find(|(file, _)| *file == name) {
            expected.insert("object_height".to_owned(), (*height).into());
        }
        // Images encoded by the reference have other sizes than ours: the miniature and converted ones.
        let is_made = |index: usize| name.ends_with("-qoi") || scan.thumbnails.get(index).is_some_and(|image| image.block.is_none());
        without_sizes_of_made_images(&mut found, is_made);
        without_sizes_of_made_images(&mut expected, is_made);
        without_carriage_returns(&mut expected);
        let keys = |object: &Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
        for key in keys(&expected).iter().chain(&keys(&found)) {
            if expected.get(key) != found.get(key) {
                differences.push(format!("{name}: {key}: expected {:?}, found {:?}", expected.get(key), found.get(key)));
            }
        }
        for warning in &scan.warnings {
            differences.push(format!("{name}: {warning}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The reference keeps them at the end of strings from files with CRLF line ends.
fn without_carriage_returns(object: &mut Map<String, Value>) {
    for value in object.values_mut() {
        if let Value::String(text) = value {
            *text = text.trim_end_matches('\r').to_owned();
        }
    }
}
