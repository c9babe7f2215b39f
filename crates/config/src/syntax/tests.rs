use proptest::prelude::*;

use super::*;
use crate::limits::MAX_ERRORS_PER_FILE;

fn parsed(text: &str) -> ParsedFile {
    parse(FileId(0), text)
}

/// `section.option=value` of every option, for texts without errors.
fn options(text: &str) -> Vec<String> {
    let file = parsed(text);
    assert_eq!(file.errors, []);
    let of = |section: &SectionItem| section.options.iter().map(|o| format!("{}.{}={}", section.name, o.name, o.value)).collect::<Vec<_>>();
    file.sections().flat_map(of).collect()
}

/// `line: [section] option: message` of every error.
fn errors(text: &str) -> Vec<String> {
    let show = |error: SyntaxError| {
        format!("{}: [{}] {}: {}", error.span.line, error.section.unwrap_or_default(), error.option.unwrap_or_default(), error.message)
    };
    parsed(text).errors.into_iter().map(show).collect()
}

#[test]
fn colon_and_equals_both_separate() {
    assert_eq!(options("[s]\na: 1\nb = 2\nc:d=3\ne=f:4\ng:\nh   :   5  "), ["s.a=1", "s.b=2", "s.c=d=3", "s.e=f:4", "s.g=", "s.h=5"]);
}

#[test]
fn option_names_are_lower_case_and_sections_are_not() {
    assert_eq!(options("[Power My Led]\nPIN: Gpio4\n"), ["Power My Led.pin=Gpio4"]);
}

#[test]
fn headers_and_options_may_be_indented() {
    assert_eq!(options("  [s]\n    a: 1\n    b: 2\n  [t]\nc: 3"), ["s.a=1", "s.b=2", "t.c=3"]);
}

#[test]
fn deeper_lines_go_on_with_the_value() {
    assert_eq!(options("[s]\na: 1\n  2: x\n   [3]\nb: 4"), ["s.a=1\n2: x\n[3]", "s.b=4"]);
    assert_eq!(options("[s]\n  a: 1\n  b: 2\n    3"), ["s.a=1", "s.b=2\n3"]);
}

#[test]
fn a_value_on_the_next_line_starts_with_a_newline() {
    assert_eq!(options("[s]\na:\n  1\n  2"), ["s.a=\n1\n2"]);
}

#[test]
fn comments_and_blank_lines_vanish_inside_values() {
    assert_eq!(options("[s]\na: 1\n# x\n\n   ; y\n  2 # z\n\n  3\n"), ["s.a=1\n2\n3"]);
}

#[test]
fn inline_comments_and_escapes() {
    assert_eq!(
        options("[s] # c\na: x # c\nb: x#y;z\nc: x \\# y\nd: x\\#\ne: # c"),
        ["s.a=x", "s.b=x#y;z", "s.c=x # y", "s.d=x\\#", "s.e="]
    );
}

#[test]
fn tabs_are_four_columns() {
    assert_eq!(options("[s]\n    a: 1\n\t b: 2\n\tc: 3"), ["s.a=1\nb: 2", "s.c=3"]);
}

#[test]
fn nothing_is_interpolated() {
    assert_eq!(options("[s]\na: %(x)s {y} ${z} 100%"), ["s.a=%(x)s {y} ${z} 100%"]);
}

#[test]
fn byte_order_mark_and_carriage_returns_are_tolerated() {
    assert_eq!(options("\u{feff}[s]\r\na: 1\r\n  2\r\n\r\nb: 3"), ["s.a=1\n2", "s.b=3"]);
}

#[test]
fn includes_keep_their_place() {
    let file = parsed("[a]\n[include x/*.conf]\n[b]\n");
    assert_eq!(file.errors, []);
    assert!(matches!(&file.items[1], Item::Include(include) if include.pattern == "x/*.conf" && include.span.line == 2));
    assert_eq!(file.sections().count(), 2);
    assert!(parsed("[included x]").sections().any(|section| section.name == "included x"));
}

#[test]
fn duplicates_in_one_file_are_errors() {
    let text = "[s]\na: 1\nA: 2\n[t]\n[s]\nb: 3\na: 4\n";
    assert_eq!(
        errors(text),
        [
            "3: [s] a: expected each option once per section and file; this one stands above already",
            "5: [s] : expected each section once per file; this one stands above already",
            "7: [s] a: expected each option once per section and file; this one stands above already",
        ]
    );
    let file = parsed(text);
    let section = file.sections().next().unwrap();
    let values: Vec<_> = section.options.iter().map(|o| (o.name.as_str(), o.value.as_str(), o.span.line)).collect();
    assert_eq!(values, [("a", "4", 7), ("b", "3", 6)]);
    assert_eq!(errors("[DEFAULT]\na: 1\n[DEFAULT]\nb: 1"), [""; 0]);
}

#[test]
fn all_errors_are_found_and_followers_are_not() {
    let text = "x: 1\ny: 2\n[s\nz: 3\n[]\n[include]\n[s]\nnothing\n  more\n: 4\n[include f]\no: 5\n[t]\nok: 6\n";
    assert_eq!(
        errors(text),
        [
            "1: [] : expected a section header such as `[server]` before the first option",
            "3: [] : expected `]` at the end of the section name",
            "5: [] : expected a section name between the brackets",
            "6: [] : expected a path: `[include path]`",
            "8: [s] : expected `name: value`, or deeper indentation to go on with the value above",
            "10: [s] : expected a name before the value",
            "12: [] : expected a section header: an include has no options",
        ]
    );
    assert_eq!(parsed(text).sections().last().unwrap().options[0].value, "6");
}

#[test]
fn text_after_a_header_is_a_warning() {
    let file = parsed("[s] x\na: 1");
    assert_eq!((file.errors.len(), file.warnings.len()), (0, 1));
    assert_eq!(file.sections().next().unwrap().options.len(), 1);
}

#[test]
fn errors_are_bounded() {
    let file = parsed(&format!("[s]\n{}{}", "junk\n".repeat(5000), "[s] x\n".repeat(5000)));
    assert_eq!(file.errors.len(), MAX_ERRORS_PER_FILE + 1);
    assert_eq!(file.warnings.len(), MAX_ERRORS_PER_FILE);
}

#[test]
fn raw_text_is_kept() {
    let text = "[s]\r\na: 1 # why\r\n  # note\r\n  2\r\n\r\nb: 3";
    let file = parsed(text);
    let spans: Vec<Span> = file.sections().flat_map(|section| &section.options).map(|option| option.span).collect();
    assert_eq!((spans[0].line, spans[0].end_line), (2, 4));
    assert_eq!(raw_lines(&file.text, spans[0]), "a: 1 # why\r\n  # note\r\n  2");
    assert_eq!(raw_lines(&file.text, spans[1]), "b: 3");
    assert_eq!(raw_lines("", spans[1]), "");
}

#[test]
fn a_large_file_is_parsed_in_time() {
    let many: String = (0..60_000).map(|n| format!("option{n}: {n}\n")).collect();
    assert_eq!(options(&format!("[s]\n{many}")).len(), 60_000);
}

#[test]
fn printing_keeps_literal_backslashes() {
    let text = "[s]\na:\\#x\nb: y \\; z\nc:\n    \\# w\n";
    assert_eq!(options(text), ["s.a=\\#x", "s.b=y ; z", "s.c=\n# w"]);
    assert_eq!(parsed(text).to_text(), text);
}

/// Items with all spans equal, for comparing contents.
fn contents(file: &ParsedFile) -> Vec<Item> {
    let span = Span { file: FileId(0), line: 1, end_line: 1 };
    let mut items = file.items.clone();
    for item in &mut items {
        match item {
            Item::Include(include) => include.span = span,
            Item::Section(section) => {
                section.span = span;
                section.options.iter_mut().for_each(|option| option.span = span);
            }
        }
    }
    items
}

/// Texts that come close to configurations, full of marks that mean something.
fn config_like() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "[",
        "]",
        "[s]",
        "[include x]",
        "[DEFAULT]",
        ":",
        "=",
        "#",
        ";",
        "\\",
        "\\#",
        " ",
        "  ",
        "\t",
        "\n",
        "\n",
        "\n  ",
        "\r\n",
        "a",
        "B",
        "é",
        "\u{a0}",
        "\u{feff}",
        "a: b",
        "İ",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn check_invariants(text: &str) -> Result<(), TestCaseError> {
    let file = parsed(text);
    let lines = u32::try_from(text.split('\n').count()).unwrap();
    let within = |span: Span| 1 <= span.line && span.line <= span.end_line && span.end_line <= lines;
    for item in &file.items {
        match item {
            Item::Include(include) => prop_assert!(within(include.span)),
            Item::Section(section) => {
                prop_assert!(within(section.span) && raw_lines(text, section.span).contains('['));
                for option in &section.options {
                    prop_assert!(within(option.span) && raw_lines(text, option.span).contains([':', '=']));
                    prop_assert_eq!(option.name.trim(), &option.name);
                }
            }
        }
    }
    prop_assert!(file.errors.iter().all(|error| within(error.span)));

    let printed = file.to_text();
    let again = parsed(&printed);
    prop_assert_eq!(&again.errors, &vec![], "{:?}", printed);
    prop_assert_eq!(contents(&again), contents(&file), "{:?}", printed);
    prop_assert_eq!(again.to_text(), printed);
    Ok(())
}

proptest! {
    #[test]
    fn any_text_is_parsed_and_printed_stably(text in any::<String>()) {
        check_invariants(&text)?;
    }

    #[test]
    fn config_like_text_is_parsed_and_printed_stably(text in config_like()) {
        check_invariants(&text)?;
    }
}
