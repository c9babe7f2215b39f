use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::document::OriginalOptions;

fn files() -> MemoryFiles {
    MemoryFiles::new()
}

fn loaded(files: &MemoryFiles) -> Loaded {
    load(Path::new("/data/config/main.conf"), files)
}

fn problems(files: &MemoryFiles) -> Vec<String> {
    loaded(files).problems.iter().map(ToString::to_string).collect()
}

/// The document of a configuration without problems.
fn sound(files: &MemoryFiles) -> Document {
    let loaded = loaded(files);
    assert_eq!(loaded.problems, []);
    loaded.document
}

fn value(document: &Document, section: &str, option: &str) -> String {
    document.get(section, option).map(|setting| setting.value.clone()).unwrap_or_default()
}

#[test]
fn includes_override_what_precedes_and_are_overridden_by_what_follows() {
    let document = sound(
        &files()
            .with("/data/config/main.conf", "[server]\nhost: a\nport: 1\n[include sub/x.conf]\n[machine]\nprovider: none\n")
            .with("/data/config/sub/x.conf", "[server]\nport: 2\nssl_port: 3\n[machine]\nprovider: dbus\n"),
    );
    let get = |option| value(&document, "server", option);
    assert_eq!((get("host"), get("port"), get("ssl_port")), ("a".into(), "2".into(), "3".into()));
    assert_eq!(value(&document, "machine", "provider"), "none");
    let names: Vec<_> = document.files().iter().map(|file| (file.name.as_str(), file.sections.join(","))).collect();
    assert_eq!(names, [("main.conf", "server,machine".to_owned()), ("sub/x.conf", "server,machine".to_owned())]);
    let port = document.get("server", "port").unwrap().span;
    assert_eq!(document.place(port).to_string(), "sub/x.conf:2");
    assert_eq!(document.raw(port), "port: 2");
}

#[test]
fn nested_includes_are_relative_to_their_own_file() {
    let document = sound(
        &files()
            .with("/data/config/main.conf", "[server]\n[include a/one.conf]\n")
            .with("/data/config/a/one.conf", "[include two.conf]\n[include ../../other/three.conf]\n")
            .with("/data/config/a/two.conf", "[two]\n")
            .with("/data/other/three.conf", "[three]\n"),
    );
    let names: Vec<_> = document.files().iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["main.conf", "a/one.conf", "a/two.conf", "/data/other/three.conf"]);
    assert!(document.section("three").is_some());
}

#[test]
fn globs_are_read_in_the_order_of_names() {
    let with = |include: &str| {
        files()
            .with("/data/config/main.conf", format!("[server]\n[include {include}]\n"))
            .with("/data/config/d/20-b.conf", "[server]\nlast: b\n[b]\n")
            .with("/data/config/d/10-a.conf", "[server]\nlast: a\n[a]\n")
            .with("/data/config/d/.30-hidden.conf", "[server]\nlast: hidden\n")
            .with("/data/config/d/30-c.conf.off", "[server]\nlast: off\n")
            .with("/data/config/d/40.conf/x", "")
            .with("/data/config/e/50.conf", "[server]\nlast: e\n")
    };
    for include in ["d/*.conf", "d/[12]?-*.conf", "./d/*.conf", "/data/config/d/*.conf"] {
        let document = sound(&with(include));
        assert_eq!(value(&document, "server", "last"), "b", "{include}");
        assert_eq!(document.files().len(), 3, "{include}");
    }
    assert_eq!(value(&sound(&with("*/*.conf")), "server", "last"), "e");
    assert_eq!(value(&sound(&with("*/50.conf")), "server", "last"), "e");
    assert_eq!(problems(&with("/data/*/d/*.conf")), ["main.conf:2: expected a file: nothing matches `/data/*/d/*.conf`"]);
}

#[test]
fn an_include_without_match_is_a_problem() {
    let files = files().with("/data/config/main.conf", "[server]\n[include nothing.conf]\n[include d/*.conf]\n[machine]\nprovider: x\n");
    assert_eq!(
        problems(&files),
        ["main.conf:2: expected a file: nothing matches `nothing.conf`", "main.conf:3: expected a file: nothing matches `d/*.conf`"]
    );
    assert_eq!(value(&loaded(&files).document, "machine", "provider"), "x");
}

#[test]
fn a_file_is_read_once_whatever_its_name() {
    let files = files()
        .with("/data/config/main.conf", "[server]\n[include a.conf]\n[include link.conf]\n")
        .with("/data/config/a.conf", "[a]\n[include main.conf]\n")
        .with_link("/data/config/link.conf", "/data/config/a.conf");
    assert_eq!(
        problems(&files),
        [
            "a.conf:2: expected each file once: `main.conf` is included already (recursive include)",
            "main.conf:3: expected each file once: `link.conf` is included already (recursive include)",
        ]
    );
}

#[test]
fn depth_number_and_size_are_bounded() {
    let chain = (0..MAX_INCLUDE_DEPTH + 3).fold(files().with("/data/config/main.conf", "[server]\n[include 0.conf]"), |files, n| {
        files.with(&format!("/data/config/{n}.conf"), format!("[include {}.conf]", n + 1))
    });
    assert_eq!(problems(&chain), [format!("15.conf:1: expected includes at most {MAX_INCLUDE_DEPTH} deep")]);

    let many = (0..MAX_FILES + 50).fold(files().with("/data/config/main.conf", "[server]\n[include d/*]"), |files, n| {
        files.with(&format!("/data/config/d/{n}.conf"), "")
    });
    assert_eq!(problems(&many), [format!("main.conf:2: expected at most {MAX_FILES} files")]);

    let big =
        files().with("/data/config/main.conf", "[server]\n[include b.conf]").with("/data/config/b.conf", vec![b'#'; MAX_FILE_SIZE + 1]);
    assert_eq!(problems(&big), [format!("main.conf:2: expected `b.conf` to have at most {MAX_FILE_SIZE} bytes")]);

    let parts = MAX_TOTAL_SIZE / MAX_FILE_SIZE;
    let total = (0..parts).fold(files().with("/data/config/main.conf", "[server]\n[include d/*]"), |files, n| {
        files.with(&format!("/data/config/d/{n}"), vec![b'#'; MAX_FILE_SIZE])
    });
    assert_eq!(problems(&total), [format!("main.conf:2: expected all files together to have at most {MAX_TOTAL_SIZE} bytes")]);
}

#[test]
fn problems_of_all_files_are_reported_together() {
    let files = files()
        .with("/data/config/main.conf", "[server]\njunk\n[include sub/a.conf]\n[server]\n")
        .with("/data/config/sub/a.conf", b"[a]\nx: 1\nx: 2\ny: \xff\n");
    assert_eq!(
        problems(&files),
        [
            "main.conf:2: [server]: expected `name: value`, or deeper indentation to go on with the value above",
            "main.conf:4: [server]: expected each section once per file; this one stands above already",
            "sub/a.conf:4: expected UTF-8 text",
            "sub/a.conf:3: [a] x: expected each option once per section and file; this one stands above already",
        ]
    );
}

#[test]
fn the_main_file_and_its_server_section_must_exist() {
    assert_eq!(problems(&files()), ["main.conf: expected a readable file `main.conf`: no such file"]);
    assert_eq!(problems(&files().with("/data/config/main.conf", "[machine]")), ["main.conf: [server]: expected this section to exist"]);
}

#[test]
fn default_options_are_inherited_and_shown() {
    let document = sound(&files().with("/data/config/main.conf", "[DEFAULT]\na: 1\nb: 2\n[server]\nb: 3\n[t]\n"));
    assert_eq!((value(&document, "server", "a"), value(&document, "server", "b")), ("1".into(), "3".into()));
    assert_eq!(document.get("absent", "a"), None);
    assert_eq!(document.files()[0].sections, ["server", "t"]);
    let text = |section: &indexmap::IndexMap<String, String>| format!("{section:?}");
    let orig = document.orig();
    assert_eq!(orig.keys().collect::<Vec<_>>(), ["DEFAULT", "server", "t"]);
    assert_eq!(text(&orig["DEFAULT"]), r#"{"a": "1", "b": "2"}"#);
    assert_eq!(text(&orig["server"]), r#"{"b": "3", "a": "1"}"#);
    assert_eq!(text(&orig["t"]), r#"{"a": "1", "b": "2"}"#);
    assert!(sound(&files().with("/data/config/main.conf", "[server]")).orig()["DEFAULT"].is_empty());
}

#[test]
fn the_merged_text_gives_the_same_configuration() {
    let document = sound(
        &files()
            .with("/data/config/main.conf", "[DEFAULT]\nz: 0\n[server]\nlist:\n  a \\# b # c\n  d\n[include x.conf]\n")
            .with("/data/config/x.conf", "[server]\nport: 2\n[x]\n"),
    );
    let text = document.to_text();
    assert_eq!(text, "[DEFAULT]\nz: 0\n\n[server]\nlist:\n    a \\# b\n    d\nport: 2\n\n[x]\n");
    assert_eq!(sound(&files().with("/data/config/main.conf", text)).orig(), document.orig());
}

#[test]
fn a_sound_configuration_is_chosen_without_a_look_at_the_backup() {
    let files = files().with("/data/config/main.conf", "[server] x\nport: 1\n").with("/data/config/.main.conf.bkp", "junk");
    let chosen = load_or_last_good(Path::new("/data/config/main.conf"), &files);
    assert_eq!((chosen.source, chosen.problems.len()), (Source::Main, 0));
    assert_eq!(chosen.warnings, ["main.conf:1: text after `]` is ignored"]);
}

#[test]
fn a_broken_configuration_is_replaced_by_the_last_good_one() {
    let files =
        files().with("/data/config/main.conf", "[server]\nport: 1\nport: 2\n").with("/data/config/.main.conf.bkp", "[server]\nport: 3\n");
    let chosen = load_or_last_good(Path::new("/data/config/main.conf"), &files);
    assert_eq!(chosen.source, Source::LastGood);
    assert_eq!(value(&chosen.document, "server", "port"), "3");
    assert_eq!(
        chosen.warnings,
        [
            "The configuration /data/config/main.conf has errors; the last good one, /data/config/.main.conf.bkp, is in use until it is corrected.",
            "main.conf:3: [server] port: expected each option once per section and file; this one stands above already",
        ]
    );
}

#[test]
fn without_a_last_good_one_the_sound_parts_are_used() {
    for backup in [None, Some("[machine]")] {
        let mut files = files().with("/data/config/main.conf", "[server]\nport: 1\njunk\n");
        if let Some(backup) = backup {
            files = files.with("/data/config/.main.conf.bkp", backup);
        }
        let chosen = load_or_last_good(Path::new("/data/config/main.conf"), &files);
        assert_eq!((chosen.source, value(&chosen.document, "server", "port")), (Source::Salvaged, "1".to_owned()));
        assert_eq!((chosen.problems.len(), chosen.warnings.len()), (1, 2));
    }
    let nothing = load_or_last_good(Path::new("/data/config/main.conf"), &files());
    assert_eq!((nothing.source, nothing.document.sections().count()), (Source::Salvaged, 0));
}

proptest! {
    #[test]
    fn any_bytes_load_and_merge_stably(main in prop::collection::vec(any::<u8>(), 0..200), part in "(\\[[a-c]\\]\n|[a-c]: [#;\\\\ a]{0,5}\n|  [#a]{1,3}\n){0,9}") {
        let files = files().with("/data/config/main.conf", main).with("/data/config/part.conf", &part);
        let document = loaded(&files).document;
        let again = load_text("again.conf", &document.to_text());
        let orig = |document: &Document| -> OriginalOptions { document.orig() };
        prop_assert_eq!(orig(&again.document), orig(&document));

        let part = load_text("part.conf", &part).document;
        let again = load_text("again.conf", &part.to_text());
        prop_assert!(again.problems.len() <= 1, "only the missing [server]: {:?}", again.problems);
        prop_assert_eq!(orig(&again.document), orig(&part));
    }
}
