//! Laws of object processing for any file.

use std::io;

use gcode::Source;
use gcode::objects::{Family, Outcome, Verdict, detect, process};
use proptest::prelude::*;

use crate::run;

/// Lines that mean something to some family, and some that mean nothing.
fn line() -> impl Strategy<Value = String> {
    let name = "[a-c .(]{0,3}";
    prop_oneof![
        name.prop_map(|name| format!("; printing object {name}")),
        name.prop_map(|name| format!("; stop printing object {name}")),
        name.prop_map(|name| format!(";MESH:{name}")),
        Just(";MESH:NONMESH".to_owned()),
        (0..3).prop_map(|time| format!(";TIME_ELAPSED:{time}")),
        name.prop_map(|name| format!(";PRINTING:{name}")),
        (-1..3).prop_map(|id| format!(";PRINTING_ID: {id}")),
        Just(";REMAINING_TIME: 0".to_owned()),
        (-1..3).prop_map(|id| format!("M486 S{id}")),
        name.prop_map(|name| format!("M486 S1 A{name}")),
        (0..4).prop_map(|count| format!("M486 T{count}")),
        (-9.0..9.0, -9.0..9.0, -1.0..9.0).prop_map(|(x, y, e): (f64, f64, f64)| format!("G1 X{x:.3} Y{y:.3} E{e:.5}")),
        Just("; comment".to_owned()),
        "[ -~]{0,20}",
    ]
}

fn file() -> impl Strategy<Value = String> {
    (proptest::collection::vec((line(), prop_oneof![3 => Just("\n"), 1 => Just("\r\n")]), 0..40), any::<bool>()).prop_map(
        |(lines, open)| {
            let mut file: String = lines.iter().flat_map(|(line, end)| [line.as_str(), end]).collect();
            if open {
                file.push_str("M84");
            }
            file
        },
    )
}

/// A file that comes in small pieces.
struct Pieces<'f>(&'f [u8], usize);

impl Source for Pieces<'_> {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.1);
        self.0.read_at(position, &mut buffer[..count])
    }
}

/// Takes the file's own lines out of the output; what remains was inserted.
fn inserted<'o>(file: &str, out: &'o str, family: Family) -> Result<Vec<&'o str>, String> {
    let mut own = file.lines().peekable();
    let mut inserted = Vec::new();
    for line in out.lines() {
        match own.peek() {
            Some(expected) if line == *expected || (family == Family::M486 && line.strip_prefix("; ") == Some(*expected)) => {
                own.next();
            }
            _ => inserted.push(line),
        }
    }
    own.next().map_or(Ok(inserted), |line| Err(format!("lost {line:?}")))
}

proptest! {
    #[test]
    fn the_lines_of_the_file_stay_in_their_order(file in file()) {
        let (outcome, out) = run(file.as_bytes());
        let Ok(Outcome::Written { family, objects, bytes }) = outcome else {
            prop_assert!(out.is_empty());
            return Ok(());
        };
        prop_assert_eq!(bytes, out.len() as u64);
        prop_assert_eq!(detect(out.as_slice()).unwrap(), Verdict::Processed);

        let out = std::str::from_utf8(&out).unwrap();
        let definitions: Vec<_> = out.lines().filter(|line| line.starts_with("EXCLUDE_OBJECT_DEFINE ")).collect();
        prop_assert_eq!(definitions.len(), objects);
        for line in inserted(&file, out, family).map_err(TestCaseError::fail)? {
            let ours = ["EXCLUDE_OBJECT_", "; Pre-Processed for Cancel-Object support by preprocess_cancellation v0.2.0", "; "];
            prop_assert!(line.is_empty() || ours.iter().any(|start| line.starts_with(start)), "{:?}", line);
        }

        // Starts and ends name defined objects; nothing is started before the definitions.
        let mut known = Vec::new();
        for line in out.lines() {
            if let Some(definition) = line.strip_prefix("EXCLUDE_OBJECT_DEFINE NAME=") {
                known.push(definition.split(' ').next().unwrap());
            }
            for verb in ["EXCLUDE_OBJECT_START NAME=", "EXCLUDE_OBJECT_END NAME="] {
                if let Some(name) = line.strip_prefix(verb) {
                    prop_assert!(known.contains(&name), "{}", name);
                }
            }
        }
    }

    #[test]
    fn objects_do_not_overlap_where_the_marks_only_begin(file in file()) {
        let (outcome, out) = run(file.as_bytes());
        let Ok(Outcome::Written { family: Family::Cura | Family::IdeaMaker | Family::M486, .. }) = outcome else { return Ok(()) };
        let mut open = None;
        for line in std::str::from_utf8(&out).unwrap().lines() {
            if let Some(name) = line.strip_prefix("EXCLUDE_OBJECT_START NAME=") {
                prop_assert_eq!(open.replace(name), None);
            } else if let Some(name) = line.strip_prefix("EXCLUDE_OBJECT_END NAME=") {
                prop_assert_eq!(open.take(), Some(name));
            }
        }
    }

    #[test]
    fn the_size_of_reads_and_the_line_ends_do_not_matter(file in file(), piece in 1usize..9) {
        let (whole, expected) = run(file.as_bytes());
        let mut out = Vec::new();
        let outcome = process(&Pieces(file.as_bytes(), piece), &mut out, &|| true);
        prop_assert_eq!(format!("{:?}", outcome), format!("{:?}", whole));
        prop_assert_eq!(&out, &expected);
        let (_, from_crlf) = run(file.replace("\r\n", "\n").replace('\n', "\r\n").as_bytes());
        prop_assert_eq!(from_crlf, expected);
    }

    #[test]
    fn any_bytes_are_survived(head in line(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = run(&bytes);
        let _ = run(&[head.as_bytes(), b"\n", &bytes].concat());
        let _ = run(&[head.as_bytes(), &bytes].concat());
    }
}
