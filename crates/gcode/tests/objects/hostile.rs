//! Damaged files, endless lines, sources and outputs that fail.

use std::cell::Cell;
use std::io::{self, Write};

use gcode::Source;
use gcode::objects::{MAX_NAME_BYTES, MAX_OBJECTS, ObjectsError, Outcome, Verdict, detect, process};

use crate::{run, written};

/// A file that needs no memory: a short beginning, then one line up to its size.
struct EndlessLine(&'static [u8], u64);

const GIGABYTE: u64 = 1 << 30;

impl Source for EndlessLine {
    fn size(&self) -> u64 {
        self.1
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let head = self.0.read_at(position, buffer)?;
        if head > 0 || position >= self.1 {
            return Ok(head);
        }
        let count = buffer.len().min(usize::try_from(self.1 - position).unwrap_or(usize::MAX));
        buffer[..count].fill(b'x');
        Ok(count)
    }
}

/// Counts bytes and keeps none.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_longer_than_any_buffer_passes_through() {
    let size = GIGABYTE / 10;
    let source = EndlessLine(b"G28\n; printing object a\nG1 X1 Y1 E1\n; stop printing object a\n; printing object ", size);
    let mut out = Counter(0);
    let outcome = process(&source, &mut out, &|| true).unwrap();
    assert!(matches!(outcome, Outcome::Written { objects: 1, .. }), "{outcome:?}");
    assert!(out.0 > size);
}

#[test]
fn a_line_of_a_gigabyte_is_no_mark() {
    assert_eq!(detect(&EndlessLine(b"G28\n;MESH:", GIGABYTE)).unwrap(), Verdict::NoObjects);
    assert_eq!(detect(&EndlessLine(b"", GIGABYTE)).unwrap(), Verdict::NoObjects);
}

#[test]
fn line_ends_at_the_border_of_the_window_are_seen() {
    // Lines around the window's 256 KiB, with a carriage return as its last byte, inside and at the end of a long line.
    for length in (256 * 1024 - 24)..(256 * 1024 + 4) {
        let long = "x".repeat(length);
        let file = format!(";MESH:a\r\n{long}\r\nG1 X1 Y1 E1\r\n{long}\r{long}\r\n");
        let out = written(file.as_bytes());
        assert!(out.contains("NAME=a CENTER=1.000,1.000 "), "{length}");
        let expected = format!(";MESH:a\nEXCLUDE_OBJECT_START NAME=a\n{long}\nG1 X1 Y1 E1\n{long}\r{long}\nEXCLUDE_OBJECT_END NAME=a\n");
        assert!(out.ends_with(&expected), "{length}");
    }
}

#[test]
fn too_many_objects_are_refused() {
    for file in [format!("M486 T{MAX_OBJECTS}\n"), "M486 T99999999999999999999999\n".to_owned()] {
        assert!(matches!(run(file.as_bytes()).0, Err(ObjectsError::TooManyObjects)), "{file}");
    }
    let meshes: String = (0..=MAX_OBJECTS).map(|number| format!(";MESH:{number}\n")).collect();
    let (outcome, out) = run(meshes.as_bytes());
    assert!(matches!(outcome, Err(ObjectsError::TooManyObjects)), "{outcome:?}");
    assert!(out.is_empty());
}

#[test]
fn too_long_names_are_refused() {
    let name = "n".repeat(MAX_NAME_BYTES + 1);
    for file in [format!(";MESH:{name}\n"), format!("M486 S0\nM486 A{name}\n"), format!(";PRINTING: {name}\n;PRINTING_ID: 1\n")] {
        assert!(matches!(run(file.as_bytes()).0, Err(ObjectsError::NameTooLong)));
    }
}

#[test]
fn a_file_cut_short_is_processed_unless_it_says_how_much_is_missing() {
    let (outcome, out) = run(b"G28\n;TOTAL_NUM: 3\n;PRINTING: a\n;PRINTING_ID: 1\nG1 X1 Y");
    assert!(matches!(outcome, Err(ObjectsError::CountMismatch { declared: 3, found: 1 })), "{outcome:?}");
    assert!(out.is_empty());
    let cut = written(b"G28\n; printing object a\nG1 X1 Y1 E1\nG1 X5 Y");
    assert!(cut.contains("CENTER=1.000,1.000 ") && cut.ends_with("G1 X5 Y"));
}

#[test]
fn bytes_that_are_no_text_pass_through() {
    let junk: Vec<u8> = (0..=255).filter(|byte| *byte != b'\n').collect();
    let file = [b"G28\n;MESH:a\xff\xfeb\nG1 X1 Y1 E1\n", &junk[..], b"\n"].concat();
    let (outcome, out) = run(&file);
    assert!(matches!(outcome, Ok(Outcome::Written { objects: 1, .. })), "{outcome:?}");
    assert!(out.windows(junk.len()).any(|window| window == junk));
    let definition = b"EXCLUDE_OBJECT_DEFINE NAME=a_b CENTER=";
    assert!(out.windows(definition.len()).any(|window| window == definition));
}

const SMALL: &[u8] = b"G28\n;MESH:a\nG1 X1 Y1 E1\n";

/// A file that misbehaves at its n-th read.
struct Moody {
    reads: Cell<u32>,
    at: u32,
    mood: Mood,
}

#[derive(Clone, Copy)]
enum Mood {
    Fails,
    Shrinks,
}

impl Source for Moody {
    fn size(&self) -> u64 {
        SMALL.len() as u64
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads.set(self.reads.get() + 1);
        if self.reads.get() < self.at {
            return SMALL.read_at(position, buffer);
        }
        match self.mood {
            Mood::Fails => Err(io::Error::other("disk gone")),
            Mood::Shrinks => Ok(0),
        }
    }
}

#[test]
fn a_file_that_fails_or_changes_is_an_error() {
    // Two reads for each of detection, survey and rewrite.
    for at in 1..=6 {
        let source = Moody { reads: Cell::new(0), at, mood: Mood::Fails };
        let outcome = process(&source, &mut Vec::new(), &|| true);
        assert!(matches!(outcome, Err(ObjectsError::Read(_))), "read {at}: {outcome:?}");
    }
    let source = Moody { reads: Cell::new(0), at: 5, mood: Mood::Shrinks };
    let outcome = process(&source, &mut Vec::new(), &|| true);
    assert!(matches!(outcome, Err(ObjectsError::Changed)), "{outcome:?}");
}

/// A disk without room.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let outcome = process(SMALL, &mut Full, &|| true);
    assert!(matches!(&outcome, Err(ObjectsError::Write(error)) if error.kind() == io::ErrorKind::StorageFull), "{outcome:?}");
}

#[test]
fn the_caller_can_stop_it_at_each_read() {
    let mut file = SMALL.to_vec();
    file.extend(b"G1 X1 Y1 E1\n".repeat(50_000));
    let asked = Cell::new(0);
    process(file.as_slice(), &mut Counter(0), &|| {
        asked.set(asked.get() + 1);
        true
    })
    .unwrap();
    let all = asked.get();
    assert!(all >= 6, "{all}");
    for allowed in 0..all {
        asked.set(0);
        let outcome = process(file.as_slice(), &mut Counter(0), &|| {
            asked.set(asked.get() + 1);
            asked.get() <= allowed
        });
        assert!(matches!(outcome, Err(ObjectsError::Cancelled)), "{outcome:?}");
        assert_eq!(asked.get(), allowed + 1);
    }
}
