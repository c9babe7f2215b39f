//! Each family of marks, by small files and what becomes of them; and the rules at the edges.

use gcode::objects::{Family, Outcome, Verdict, detect};

use crate::{run, written};

/// Compares a file with the recorded result.
fn check(name: &str, family: Family, file: &str, expected: &str) {
    assert_eq!(detect(file.as_bytes()).unwrap(), Verdict::Marked(family), "{name}");
    let out = written(file.as_bytes());
    assert_eq!(out, expected, "{name}");
    assert_eq!(written(file.replace('\n', "\r\n").as_bytes()), expected, "{name} with CRLF");
    assert_eq!(detect(out.as_bytes()).unwrap(), Verdict::Processed, "{name}");
    let (again, nothing) = run(out.as_bytes());
    assert!(matches!(again, Ok(Outcome::Untouched(Verdict::Processed))) && nothing.is_empty(), "{name}: {again:?}");
}

macro_rules! family {
    ($test:ident, $family:ident, $name:literal) => {
        #[test]
        fn $test() {
            let expected = include_str!(concat!("data/", $name, ".expected"));
            check($name, Family::$family, include_str!(concat!("data/", $name, ".gcode")), expected);
        }
    };
}

family!(prusaslicer_comments_are_followed_by_commands, PrusaSlicer, "prusaslicer");
family!(cura_meshes_end_where_the_next_begins, Cura, "cura");
family!(m486_with_a_count_uses_the_numbers, M486, "m486-count");
family!(m486_without_a_count_uses_the_names, M486, "m486-names");
family!(ideamaker_ids_become_names, IdeaMaker, "ideamaker");

#[test]
fn m486_goes_before_the_marks_of_the_slicer() {
    let file = b"; printing object a\nM486 S0\nG1 X1 Y1 E1\nM486 S-1\n; stop printing object a\n";
    assert_eq!(detect(file.as_slice()).unwrap(), Verdict::Marked(Family::M486));
}

#[test]
fn files_that_define_objects_themselves_are_left_alone() {
    for line in ["EXCLUDE_OBJECT_DEFINE NAME=a", "DEFINE_OBJECT NAME=a"] {
        let file = format!("; printing object a\nG28\n{line}\n");
        let (outcome, out) = run(file.as_bytes());
        assert!(matches!(outcome, Ok(Outcome::Untouched(Verdict::Defined))), "{outcome:?}");
        assert!(out.is_empty());
    }
}

#[test]
fn what_only_looks_like_a_mark_is_none() {
    for file in [
        "",
        "\n\n",
        "G1 X1 Y1 E1\n",
        ";MESH:NONMESH\n",
        " ; printing object a\n",
        "M4860 S1\n",
        "G1 ;MESH:a\n",
        "; start printing object\n",
    ] {
        assert_eq!(detect(file.as_bytes()).unwrap(), Verdict::NoObjects, "{file:?}");
    }
}

#[test]
fn marks_without_an_object_write_nothing() {
    for file in ["M486 S-1\nG28\n", "M486 T0\nG28\n", "M486 P1\n", ";PRINTING: NON-OBJECT\n;PRINTING_ID: -1\nG28\n"] {
        let (outcome, out) = run(file.as_bytes());
        assert!(matches!(outcome, Ok(Outcome::Untouched(Verdict::NoObjects))), "{file:?}: {outcome:?}");
        assert!(out.is_empty());
    }
}

#[test]
fn a_mark_among_the_leading_comments_comes_after_the_definitions() {
    let out = written(b"; head\n; printing object a\nG1 X1 Y1 E1\n; stop printing object a\n");
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[..3], ["; head", "", ""]);
    assert_eq!(lines[4], "; 1 known objects");
    assert_eq!(lines[6..8], ["; printing object a", "EXCLUDE_OBJECT_START NAME=a"]);
}

#[test]
fn the_end_of_a_file_without_a_line_end_is_kept_apart() {
    assert!(written(b"G28\n;MESH:a\nG1 X1 Y1 E1").ends_with("\nG1 X1 Y1 E1\nEXCLUDE_OBJECT_END NAME=a\n"));
    assert!(written(b"G28\n; printing object a").ends_with("\n; printing object a\nEXCLUDE_OBJECT_START NAME=a\n"));
    assert!(written(b"G28\n;MESH:a\n;MESH:NONMESH\nM84").ends_with("EXCLUDE_OBJECT_END NAME=a\nM84"));
}

#[test]
fn objects_keep_to_the_bytes_their_names_have_left() {
    assert!(written("G28\n;MESH:Würfel (1).stl\n".as_bytes()).contains("EXCLUDE_OBJECT_DEFINE NAME=Würfel_1_stl\n"));
    assert!(written(b"G28\n;MESH:(!)\n").contains("EXCLUDE_OBJECT_DEFINE NAME=object_0\n"));
}

#[test]
fn the_head_decides() {
    let mut file = b"G28\n".to_vec();
    file.extend(b"; filler line\n".repeat(1024 * 1024 / 14 - 1));
    let inside = [&file[..], b"; printing object a\nG1 X1 Y1 E1\n; stop printing object a\n"].concat();
    assert_eq!(detect(inside.as_slice()).unwrap(), Verdict::Marked(Family::PrusaSlicer));
    file.extend(b"; filler line\n".repeat(2));
    let beyond = [&file[..], b"; printing object a\n"].concat();
    assert_eq!(detect(beyond.as_slice()).unwrap(), Verdict::NoObjects);
}

#[test]
fn a_mark_of_processing_beyond_the_head_counts_too() {
    let mut file = b";PRINTING: a\n".to_vec();
    file.extend(b"; filler line\n".repeat(100_000));
    file.extend(b"G28\n;PRINTING: a\n;PRINTING_ID: 1\nG1 X1 Y1 E1\n");
    let out = written(&file);
    assert_eq!(detect(out.as_bytes()).unwrap(), Verdict::Marked(Family::IdeaMaker));
    let (again, nothing) = run(out.as_bytes());
    assert!(matches!(again, Ok(Outcome::Untouched(Verdict::Processed))), "{again:?}");
    assert!(nothing.is_empty());
}
