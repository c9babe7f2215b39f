//! What the fuzz targets check: properties that hold for every input. `fuzz/` calls these with a fuzzer (by hand), and a test replays the
//! corpora on stable in every run of the test suite.

use outbound::mqtt::replay::replay;
use outbound::mqtt::{Version, topic};
use protocol::envelope::{self, Document, Incoming};
use protocol::raw::RawMembers;
use protocol::status::{HostStatus, Selection};
use rpc::Arguments;
use serde::Deserialize;
use serde_json::value::RawValue;

mod sliced;
use sliced::SLICERS;
pub use sliced::*;

/// A target: its name (also of its corpus) and its check.
pub type Target = (&'static str, fn(&[u8]));

/// The targets, those of the slicers aside.
pub const TARGETS: &[Target] = &[
    ("rpc_envelope", rpc_envelope),
    ("arguments", arguments),
    ("config_file", config_file),
    ("fwhost_frames", fwhost_frames),
    ("gcode_metadata", gcode_metadata),
    ("gcode_objects", gcode_objects),
    ("thumbnail_block", thumbnail_block),
    ("thumbnail_png", thumbnail_png),
    ("thumbnail_jpg", thumbnail_jpg),
    ("thumbnail_qoi", thumbnail_qoi),
    ("templates", templates),
    ("access_token", access_token),
    ("ufp", ufp),
    ("announcement_feed", announcement_feed),
    ("webcam_record", webcam_record),
    ("mqtt_packets", mqtt_packets),
    ("ldap", ldap),
];

/// All targets.
#[must_use]
pub fn all_targets() -> Vec<Target> {
    [TARGETS, SLICERS].concat()
}

/// What a broker sends causes the same in whatever pieces it arrives, and topics of messages can be looked up. The first byte chooses the version
/// and the size of the pieces.
///
/// # Panics
/// When a property does not hold.
pub fn mqtt_packets(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let version = [Version::V31, Version::V311, Version::V5][usize::from(first % 3)];
    let whole = replay(version, bytes, bytes.len());
    assert_eq!(whole, replay(version, bytes, usize::from(first / 3) + 1), "pieces make no difference");
    let text = String::from_utf8_lossy(bytes);
    if let Some((filter, name)) = text.split_once('\n')
        && topic::check(name).is_ok()
        && topic::check_filter(filter).is_ok()
    {
        assert!(topic::has_wildcard(filter) || topic::matches(filter, name) == (filter == name));
    }
}

/// Any document is understood or refused; what is refused gets an answer that is JSON, and ids are echoed as they came.
///
/// # Panics
/// When a property does not hold.
pub fn rpc_envelope(data: &[u8]) {
    let members = match envelope::parse(data) {
        Document::Single(member) => vec![member],
        Document::Batch(members) => members,
    };
    for member in members {
        match member {
            Incoming::Invalid(answer) => assert_is_json(&answer),
            Incoming::Request(request) => {
                if let Some(id) = request.id {
                    let answer = envelope::success(b"null", id);
                    assert_is_json(&answer);
                    assert!(find(&answer, id.get().as_bytes()), "the id is echoed");
                }
                if let Ok(arguments) = Arguments::from_json(request.params) {
                    assert_is_json(arguments.to_json_object().get().as_bytes());
                }
            }
            Incoming::Reply(_) => {}
        }
    }
}

/// One of each type that parameters have.
#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct EveryType {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    count: Option<u32>,
    #[serde(default)]
    offset: Option<i64>,
    #[serde(default)]
    ratio: Option<f64>,
    #[serde(default)]
    flag: Option<bool>,
    #[serde(default)]
    list: Option<Vec<String>>,
    #[serde(default)]
    any: Option<Box<RawValue>>,
    #[serde(default)]
    objects: Option<Selection>,
}

/// Arguments from a query string (first line) and a JSON body (the rest) decode or give an error that says something.
///
/// # Panics
/// When a property does not hold.
pub fn arguments(data: &[u8]) {
    let (query, body) = data.split_at(data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len()));
    let Ok(body) = std::str::from_utf8(body) else { return };
    let mut arguments = Arguments::none();
    let added =
        arguments.add_pairs(query).and_then(|()| if body.trim().is_empty() { Ok(()) } else { arguments.add_json_object(body.trim()) });
    if let Err(error) = added.and_then(|()| rpc::decode::<EveryType>(&arguments, &["any"]).map(drop)) {
        assert!(!error.message.is_empty());
    }
    let text = arguments.to_json_object();
    assert!(serde_json::from_str::<RawMembers<'_>>(text.get()).is_ok(), "arguments can always be passed on");
    let mut objects = Arguments::none();
    let _ = objects.add_printer_objects(query);
}

/// A configuration file parses without panic, and printing what was understood loses nothing.
///
/// # Panics
/// When a property does not hold.
pub fn config_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let loaded = config::load_text("fuzz.conf", text);
    let printed = loaded.document.to_text();
    let again = config::load_text("fuzz.conf", &printed);
    let (first, second) = (loaded.document.orig(), again.document.orig());
    assert_eq!(first, second, "printing and reading again changes nothing");
}

/// A stream of the firmware host, cut into pieces by its first byte, gives frames; each is a message or rubbish, and status is read or refused.
///
/// # Panics
/// When a property does not hold.
pub fn fwhost_frames(data: &[u8]) {
    const LIMIT: usize = 64 * 1024;
    let Some((cut, stream)) = data.split_first() else { return };
    let mut splitter = fwhost::frame::Splitter::new(LIMIT);
    for piece in stream.chunks(usize::from(*cut).max(1)) {
        splitter.extend(piece);
        loop {
            match splitter.next_frame() {
                Ok(Some(frame)) => check_frame(frame),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

fn check_frame(frame: &[u8]) {
    assert!(!frame.contains(&0x03), "frames end at ETX");
    let _ = fwhost::message::parse(frame);
    let _ = serde_json::from_slice::<HostStatus<'_>>(frame);
    if let Some(cleaned) = fwhost::message::without_barewords(frame) {
        assert!(fwhost::message::without_barewords(&cleaned).is_none(), "once is enough");
    }
}

/// A sliced file has metadata that can be written as JSON, and thumbnails that are what they say.
///
/// # Panics
/// When a property does not hold.
pub fn gcode_metadata(data: &[u8]) {
    let Ok(scan) = gcode::metadata::read(data, &gcode::metadata::Options::new("fuzz.gcode")) else { return };
    assert!(serde_json::to_vec(&scan.metadata).is_ok(), "metadata is JSON");
    assert_eq!(scan.metadata.size, data.len() as u64);
    assert_eq!(scan.thumbnails.len(), scan.metadata.thumbnails.len(), "every thumbnail is announced");
}

/// Objects are marked or the file is left alone; what was marked is not marked again, and no line is lost.
///
/// # Panics
/// When a property does not hold.
pub fn gcode_objects(data: &[u8]) {
    let mut out = Vec::new();
    if let Ok(gcode::objects::Outcome::Written { .. }) = gcode::objects::process(data, &mut out, &|| true) {
        assert!(out.len() >= data.len(), "nothing is lost");
        assert!(matches!(
            gcode::objects::process(out.as_slice(), &mut Vec::new(), &|| true),
            Ok(gcode::objects::Outcome::Untouched(_)) | Err(_)
        ));
    }
}

/// Any text as an access token and as a stored password: no token is accepted with a byte less or more, and what is stored reads back as itself.
///
/// # Panics
/// When a property does not hold.
pub fn access_token(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if access::token::probe(text) {
        assert!(!access::token::probe(&text[..text.len() - 1]) && !access::token::probe(&format!("{text}A")));
    }
    let hash = access::PasswordHash::parse(text);
    assert!(access::PasswordHash::parse(&hash.to_string()) == hash);
}

/// A template compiles or says where it does not, and renders within its limits or says why it does not.
///
/// # Panics
/// When a property does not hold.
pub fn templates(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let (secrets, _) = config::Secrets::parse("fuzz.secrets", br#"{"word": "hunter2-hunter2"}"#);
    let mut context = template::Context::new(&secrets)
        .with("n", 7)
        .with("s", "some text")
        .with("d", serde_json::json!({ "a": [1, 2.5, null, "x"], "b": {} }))
        .with_kept("kept", serde_json::json!({}))
        .with_function("call_method");
    match template::Template::compile(source).and_then(|template| template.render(&mut context, &mut template::NoHost)) {
        Ok(text) => assert!(text.len() <= template::limits::MAX_OUTPUT),
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(!error.to_string().contains("hunter2-hunter2") || source.contains("hunter2"), "a secret is told");
        }
    }
    if let Ok(expression) = template::Expression::compile(source) {
        let _ = expression.evaluate(&mut context, &mut template::NoHost);
    }
}

/// Any bytes from a directory server are read or refused; any search filter is read or refused, and a name that is filled in stays a value.
///
/// # Panics
/// When a property does not hold.
pub fn ldap(data: &[u8]) {
    use outbound::ldap::{Filter, accepts};
    let _ = accepts(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(filter) = Filter::parse(text) {
        assert!(!filter.encode().is_empty());
    }
    let mut filter = Filter::equal("uid", "USERNAME");
    assert!(filter.fill_in("USERNAME", text) && filter == Filter::equal("uid", text), "a name stays a value");
}

/// A feed gives items within their bounds, or is refused with a reason.
///
/// # Panics
/// When a property does not hold.
pub fn announcement_feed(data: &[u8]) {
    use integrations::announcements::rss;
    match rss::parse(data) {
        Ok(items) => {
            assert!(items.len() <= rss::MAX_ITEMS);
            for item in items {
                assert!(!item.guid.is_empty() && item.description.chars().count() <= rss::MAX_DESCRIPTION);
                assert!(item.link.is_empty() || item.link.to_ascii_lowercase().starts_with("http"));
            }
        }
        Err(reason) => assert!(!reason.0.is_empty()),
    }
}

/// A webcam record is understood or refused; what was understood and written is understood alike.
///
/// # Panics
/// When a property does not hold.
pub fn webcam_record(data: &[u8]) {
    use integrations::webcams::record;
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(webcam) = record::read("uid", text) else { return };
    assert!([0, 90, 180, 270].contains(&webcam.rotation) && !webcam.name.trim().is_empty());
    let written = record::write(&webcam).map(|written| record::read("uid", written.get()));
    let same = |other: &_| serde_json::to_string(&webcam).ok() == serde_json::to_string(other).ok();
    assert!(written.is_ok_and(|again| again.is_ok_and(|again| same(&again))), "writing and reading again changes nothing");
}

fn assert_is_json(text: &[u8]) {
    assert!(serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok(), "not JSON: {}", String::from_utf8_lossy(text));
}

fn find(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// A UFP container gives a gcode file within the limit, or an error of the client's that says something.
///
/// # Panics
/// When a property does not hold.
pub fn ufp(data: &[u8]) {
    const LIMIT: u64 = 256 * 1024;
    match files::unpack_ufp(data, LIMIT) {
        Ok((gcode, _)) => assert!(gcode.len() as u64 <= LIMIT, "no more than allowed comes out"),
        Err(error) => assert!(matches!(error.kind.http_status(), 400 | 413) && !error.message.is_empty()),
    }
}
