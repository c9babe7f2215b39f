//! What holds for every file: no panic, and line ends do not matter.

use std::fs;
use std::sync::LazyLock;

use gcode::metadata::{Metadata, Options, read};
use proptest::prelude::*;

use crate::compare::{crate_folder, files};

static OWN_FILES: LazyLock<Vec<String>> = LazyLock::new(|| {
    files(&crate_folder().join("tests/metadata/data"), ".gcode").iter().map(|path| fs::read_to_string(path).unwrap()).collect()
});

fn metadata(text: &[u8]) -> Metadata {
    read(text, &Options::new("a.gcode")).unwrap().metadata
}

/// Everything but what counts bytes of the file.
fn without_positions(mut metadata: Metadata) -> Metadata {
    (metadata.size, metadata.gcode_start_byte, metadata.gcode_end_byte) = (0, None, None);
    metadata
}

/// Lines of real formats in any order, so that rules of several slicers meet.
fn mixed_lines() -> impl Strategy<Value = String> {
    let line = (0..OWN_FILES.len(), any::<prop::sample::Index>()).prop_map(|(file, line)| {
        let lines: Vec<&str> = OWN_FILES[file].lines().collect();
        lines[line.index(lines.len())].to_owned()
    });
    prop::collection::vec(line, 0..60).prop_map(|lines| lines.join("\n") + "\n")
}

#[test]
fn own_files_read_the_same_with_either_line_end() {
    for text in OWN_FILES.iter() {
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(without_positions(metadata(crlf.as_bytes())), without_positions(metadata(text.as_bytes())), "{text}");
    }
}

#[test]
fn own_files_can_be_cut_anywhere() {
    for text in OWN_FILES.iter() {
        let step = text.len() / 100 + 1;
        for end in (0..text.len()).step_by(step) {
            assert_eq!(metadata(&text.as_bytes()[..end]).size, end as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mixed_files_read_the_same_with_either_line_end(text in mixed_lines()) {
        let crlf = text.replace('\n', "\r\n");
        prop_assert_eq!(without_positions(metadata(crlf.as_bytes())), without_positions(metadata(text.as_bytes())));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        prop_assert_eq!(metadata(&bytes).size, bytes.len() as u64);
    }

    #[test]
    fn damage_anywhere_is_survived(file in 0..17_usize, places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let mut bytes = OWN_FILES[file % OWN_FILES.len()].clone().into_bytes();
        for (place, value) in places {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        let found = metadata(&bytes);
        let ordered = found.gcode_start_byte.zip(found.gcode_end_byte).is_none_or(|(start, end)| start < end && end <= bytes.len() as u64);
        prop_assert!(ordered);
    }
}
