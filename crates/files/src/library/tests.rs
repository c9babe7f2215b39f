use std::fs;
use std::os::unix::fs::symlink;

use proptest::prop_assert;
use proptest::test_runner::TestRunner;
use protocol::ErrorKind;

use super::*;
use crate::path::MAX_NAME_BYTES;

/// `gcodes` and `gcodes2` beside each other, `secret` outside of both.
fn library() -> (tempfile::TempDir, Library) {
    let folder = tempfile::tempdir().unwrap();
    let library = Library::default();
    for name in ["gcodes", "gcodes2", "secret", "gcodes/sub", "gcodes/.git"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    for file in ["gcodes/a.gcode", "gcodes/sub/b.gcode", "gcodes2/x.gcode", "secret/key", "gcodes/.git/config"] {
        fs::write(folder.path().join(file), file).unwrap();
    }
    library.register("gcodes", &folder.path().join("gcodes"), true).unwrap();
    (folder, library)
}

fn refused(library: &Library, text: &str) -> (ErrorKind, String) {
    let error = library.locate(text, Need::Read).unwrap_err();
    (error.kind, error.message)
}

#[test]
fn finds_what_is_there_and_what_could_be() {
    let (folder, library) = library();
    let base = folder.path().canonicalize().unwrap().join("gcodes");
    for (text, real) in
        [("gcodes", ""), ("gcodes/a.gcode", "a.gcode"), ("/gcodes//sub/../new/x", "new/x"), ("gcodes/a.gcode/x", "a.gcode/x")]
    {
        let found = library.locate(text, Need::Write).unwrap();
        assert_eq!(found.real, RelPath::parse(real).unwrap().below(&base), "{text}");
        assert_eq!(found.entry, found.real);
    }
}

#[test]
fn hostile_texts_are_refused() {
    let (_folder, library) = library();
    assert_eq!(refused(&library, "nope/x"), (ErrorKind::BadRequest, "Invalid root path (nope)".into()));
    assert_eq!(refused(&library, "/etc/passwd"), (ErrorKind::BadRequest, "Invalid root path (etc)".into()));
    assert_eq!(refused(&library, "gcodes/../gcodes2/x.gcode").1, "Invalid root path (gcodes2)");
    let name = library.locate("gcodes/%2e%2e/secret/key", Need::Read).unwrap();
    assert!(name.real.ends_with("gcodes/%2e%2e/secret/key"), "decoded once only, by the transport: here this is a name");
}

#[test]
fn links_out_of_the_root_are_refused_by_components() {
    let (folder, library) = library();
    let gcodes = folder.path().join("gcodes");
    symlink("../secret", gcodes.join("out")).unwrap();
    symlink("../secret/key", gcodes.join("key")).unwrap();
    // Same text at the beginning, another folder.
    symlink("../gcodes2", gcodes.join("twin")).unwrap();
    symlink("sub/../../gcodes2/x.gcode", gcodes.join("twin.gcode")).unwrap();
    symlink(gcodes.join("a.gcode"), folder.path().join("secret/back")).unwrap();
    symlink("loop", gcodes.join("loop")).unwrap();
    for text in ["out", "out/key", "key", "twin/x.gcode", "twin.gcode", "out/new/file", "out/back", "loop", "loop/x"] {
        let text = format!("gcodes/{text}");
        assert_eq!(refused(&library, &text).0, ErrorKind::BadRequest, "{text}");
    }
    assert!(refused(&library, "gcodes/out/key").1.contains("leads out of its root"));
}

#[test]
fn links_inside_the_root_are_followed() {
    let (folder, library) = library();
    symlink("sub/b.gcode", folder.path().join("gcodes/link.gcode")).unwrap();
    let found = library.locate("gcodes/link.gcode", Need::Write).unwrap();
    assert!(found.real.ends_with("sub/b.gcode") && found.entry.ends_with("gcodes/link.gcode"));
    assert_eq!(library.item(&found).unwrap().permissions, "r");
}

#[test]
fn links_may_lead_where_the_owner_says() {
    let (folder, library) = library();
    symlink("../secret", folder.path().join("gcodes/usb")).unwrap();
    let open = Library::new(&[folder.path().join("secret")]);
    open.register("gcodes", &folder.path().join("gcodes"), true).unwrap();
    assert!(open.locate("gcodes/usb/key", Need::Read).is_ok());
    assert!(library.locate("gcodes/usb/key", Need::Read).is_err());
}

#[test]
fn git_folders_and_our_own_are_refused_also_through_links() {
    let (folder, library) = library();
    symlink(".git", folder.path().join("gcodes/innocent")).unwrap();
    for text in ["gcodes/.git/config", "gcodes/.git", "gcodes/innocent/config", "gcodes/sub/.git/new"] {
        assert_eq!(refused(&library, text), (ErrorKind::Forbidden, "Access to .git folders is forbidden".into()), "{text}");
    }
    assert_eq!(refused(&library, "gcodes/.bowsprit-upload/1.part").0, ErrorKind::Forbidden);
    assert!(library.locate("gcodes/.gitignore", Need::Write).is_ok());
}

#[test]
fn reserved_paths_by_need_and_through_links() {
    let (folder, library) = library();
    let reserve = |name: &str, path: &str, readable| {
        library.reserve(Reserved { name: name.into(), path: folder.path().join(path), readable });
    };
    reserve("certs", "gcodes/certs", false);
    reserve("firmware", "gcodes/sub", true);
    fs::create_dir(folder.path().join("gcodes/certs")).unwrap();
    symlink("certs", folder.path().join("gcodes/hidden")).unwrap();
    for text in ["gcodes/certs", "gcodes/certs/key", "gcodes/hidden/key"] {
        assert_eq!(refused(&library, text).0, ErrorKind::Forbidden, "{text}");
    }
    assert_eq!(refused(&library, "gcodes/certs/key").1, "Access to file key forbidden by reserved path 'certs'");
    assert!(library.locate("gcodes/certs2", Need::Write).is_ok());
    assert!(library.locate("gcodes/sub/b.gcode", Need::Read).is_ok());
    assert_eq!(library.locate("gcodes/sub/b.gcode", Need::Write).unwrap_err().kind, ErrorKind::Forbidden);
    let found = library.locate("gcodes/sub/b.gcode", Need::Read).unwrap();
    assert_eq!(library.item(&found).unwrap().permissions, "r");
}

#[test]
fn a_reservation_named_again_is_replaced() {
    let (folder, library) = library();
    for path in ["gcodes/sub", "elsewhere"] {
        library.reserve(Reserved { name: "firmware".into(), path: folder.path().join(path), readable: false });
    }
    assert!(library.locate("gcodes/sub/b.gcode", Need::Write).is_ok());
}

#[test]
fn what_cannot_be_a_root() {
    let (folder, library) = library();
    for path in [Path::new("/"), &folder.path().join("missing"), &folder.path().join("secret/key")] {
        assert!(library.register("docs", path, false).is_err(), "{}", path.display());
    }
    assert!(library.root("docs").is_none());
}

#[test]
fn overlong_and_nul_are_bad_requests() {
    let (_folder, library) = library();
    assert_eq!(refused(&library, "gcodes/a\0b").0, ErrorKind::BadRequest);
    assert_eq!(refused(&library, &format!("gcodes/{}", "x".repeat(MAX_NAME_BYTES + 1))).0, ErrorKind::BadRequest);
    // Allowed in itself, but longer than the system takes once the root stands before it.
    let long = format!("gcodes{}", format!("/{}", "x".repeat(203)).repeat(20));
    assert_eq!(refused(&library, &long).0, ErrorKind::BadRequest);
}

#[test]
fn whatever_is_asked_stays_inside() {
    let (folder, library) = library();
    let gcodes = folder.path().join("gcodes").canonicalize().unwrap();
    symlink("../secret", gcodes.join("out")).unwrap();
    symlink("../gcodes2", gcodes.join("twin")).unwrap();
    symlink("..", gcodes.join("sub/up")).unwrap();
    let names: &'static [&str] = &["..", ".", "", "sub", "out", "twin", "a.gcode", "new", "gcodes", "up"];
    let asked = proptest::collection::vec(proptest::sample::select(names), 0..8);
    let checked = TestRunner::default().run(&asked, |names| {
        if let Ok(found) = library.locate(&format!("gcodes/{}", names.join("/")), Need::Write) {
            prop_assert!(found.real.starts_with(&gcodes), "{}", found.real.display());
            prop_assert!(found.entry.starts_with(&gcodes), "{}", found.entry.display());
        }
        Ok(())
    });
    checked.unwrap();
}
