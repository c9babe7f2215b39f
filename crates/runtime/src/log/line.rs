//! How an event becomes one line: bounded, without forged line beginnings, as text or as JSON.

use std::borrow::Cow;
use std::fmt::{self, Debug, Write};

use jiff::Zoned;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, Scope};

/// Longest line in a log in bytes, indents of its further lines not counted; the rest of a longer one is cut off.
pub const MAX_LINE_BYTES: usize = 16 * 1024;

/// Longest message in a JSON line in bytes.
const MAX_MESSAGE_BYTES: usize = 8 * 1024;

/// Longest text of one field in a JSON line in bytes.
const MAX_FIELD_BYTES: usize = 2 * 1024;

/// Bytes of the message that are kept of a JSON line that is too long in spite of the limits above.
const SHORT_MESSAGE_BYTES: usize = 1024;

/// What the lines of a file look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// For people.
    Text,
    /// One JSON object per line, for programs.
    Json,
}

impl Style {
    /// A line of the log itself, which no event stands behind.
    pub(super) fn note(self, level: &str, message: &str) -> Vec<u8> {
        let line = match self {
            Style::Text => format!("{} {level:>5} {}: {message}\n", Zoned::now().strftime(TEXT_TIME), module_path!()),
            Style::Json => {
                let message = message.to_owned();
                JsonLine { level, file: None, function: Some(module_path!()), line: None, message, ..JsonLine::default() }.finish()
            }
        };
        tidy(line.as_bytes()).into_owned()
    }
}

/// Makes one event (with its final newline) one line: further lines are indented, so that a text from elsewhere cannot
/// pretend to be a line of its own, and what exceeds [`MAX_LINE_BYTES`] is cut off.
pub(super) fn tidy(event: &[u8]) -> Cow<'_, [u8]> {
    let body = event.strip_suffix(b"\n").unwrap_or(event);
    let clean = !body.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    if clean && body.len() < event.len() && event.len() <= MAX_LINE_BYTES {
        return Cow::Borrowed(event);
    }
    let kept = &body[..boundary(body, MAX_LINE_BYTES)];
    let mut line = Vec::with_capacity(kept.len() + 64);
    for byte in kept {
        match byte {
            b'\n' => line.extend_from_slice(b"\n    "),
            b'\r' => line.push(b' '),
            byte => line.push(*byte),
        }
    }
    if kept.len() < body.len() {
        line.extend_from_slice(format!("... ({} bytes cut)", body.len() - kept.len()).as_bytes());
    }
    line.push(b'\n');
    Cow::Owned(line)
}

/// Largest length up to `max` at which UTF-8 `text` can be cut.
fn boundary(text: &[u8], max: usize) -> usize {
    if text.len() <= max {
        return text.len();
    }
    (0..=max).rev().find(|end| text[*end] & 0xC0 != 0x80).unwrap_or(0)
}

fn cut(text: &str, max: usize) -> String {
    let kept = &text[..boundary(text.as_bytes(), max)];
    if kept.len() == text.len() { kept.to_owned() } else { format!("{kept}... ({} bytes cut)", text.len() - kept.len()) }
}

const TEXT_TIME: &str = "%Y-%m-%d %H:%M:%S%.3f";
const JSON_TIME: &str = "%Y-%m-%dT%H:%M:%S%.3f%:z";

/// Local time at the beginning of text lines.
pub(super) struct LocalTime;

impl FormatTime for LocalTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{}", Zoned::now().strftime(TEXT_TIME))
    }
}

/// Fields of spans as they stand in the file. A type of its own because the formatter caches the text of a span per
/// type of its fields: shared with the terminal, colours would end up in the file.
#[derive(Default)]
pub(super) struct FileFields(DefaultFields);

impl<'writer> FormatFields<'writer> for FileFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        self.0.format_fields(writer, fields)
    }
}

/// Events as JSON lines: `time`, `level`, `file`, `function`, `line`, `message`, then `target` if it differs from the
/// function, `fields` and `spans` if there are any (wire document 1, section 7.5). `function` is the module, which is
/// all that an event knows about its place besides file and line.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let place = event.metadata();
        let mut line = JsonLine {
            level: place.level().as_str(),
            file: place.file(),
            function: place.module_path(),
            line: place.line(),
            target: Some(place.target()),
            ..JsonLine::default()
        };
        event.record(&mut line);
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().map_or("", |fields| fields.fields.as_str());
            let text = if fields.is_empty() { span.name().to_owned() } else { format!("{}{{{fields}}}", span.name()) };
            line.spans.push(cut(&text, MAX_FIELD_BYTES).into());
        }
        writer.write_str(&line.finish())
    }
}

/// A JSON line in the making.
#[derive(Default)]
struct JsonLine<'a> {
    level: &'a str,
    file: Option<&'a str>,
    function: Option<&'a str>,
    line: Option<u32>,
    message: String,
    target: Option<&'a str>,
    fields: Vec<(&'static str, Value)>,
    spans: Vec<Value>,
}

impl JsonLine<'_> {
    /// The line with its newline, never longer than [`MAX_LINE_BYTES`] and always whole JSON.
    fn finish(mut self) -> String {
        self.message = cut(&self.message, MAX_MESSAGE_BYTES);
        let line = self.to_json();
        if line.len() <= MAX_LINE_BYTES {
            return line;
        }
        self.message = cut(&self.message, SHORT_MESSAGE_BYTES);
        self.fields = vec![("log.cut_bytes", line.len().into())];
        self.spans.clear();
        self.to_json()
    }

    fn to_json(&self) -> String {
        // a `Value` is written as compact JSON, in which no newline occurs
        let mut json = format!("{{\"time\":\"{}\"", Zoned::now().strftime(JSON_TIME));
        let mut member = |name: &str, value: Value| {
            // writing to a String cannot fail
            let _: fmt::Result = write!(json, ",{}:{value}", Value::from(name));
        };
        member("level", self.level.into());
        member("file", self.file.into());
        member("function", self.function.into());
        member("line", self.line.into());
        member("message", self.message.as_str().into());
        if self.target.is_some() && self.target != self.function {
            member("target", self.target.into());
        }
        if !self.fields.is_empty() {
            member("fields", self.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect());
        }
        if !self.spans.is_empty() {
            member("spans", self.spans.clone().into());
        }
        json.push_str("}\n");
        json
    }

    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            ("message", value) => self.message = value.to_string(),
            (name, Value::String(text)) => self.fields.push((name, cut(&text, MAX_FIELD_BYTES).into())),
            (name, value) => self.fields.push((name, value)),
        }
    }
}

impl Visit for JsonLine<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}").into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn further_lines_are_indented() {
        let table: [(&str, &str); 5] = [
            ("one\n", "one\n"),
            ("no end", "no end\n"),
            ("one\n2026-11-21 INFO forged\n", "one\n    2026-11-21 INFO forged\n"),
            ("progress\rforged\n", "progress forged\n"),
            ("\n", "\n"),
        ];
        for (event, expected) in table {
            assert_eq!(String::from_utf8(tidy(event.as_bytes()).into_owned()).unwrap(), expected, "{event:?}");
        }
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let line = tidy(format!("x{}\n", "é".repeat(MAX_LINE_BYTES)).as_bytes()).into_owned();
        let line = String::from_utf8(line).unwrap();
        assert!(line.starts_with("xéé") && line.ends_with(&format!("é... ({} bytes cut)\n", MAX_LINE_BYTES + 2)), "{}", line.len());
        assert!(line.len() < MAX_LINE_BYTES + 40);
    }

    #[test]
    fn notes_look_like_their_neighbours() {
        let text = String::from_utf8(Style::Text.note("WARN", "two\nlines")).unwrap();
        assert!(text.ends_with("  WARN runtime::log::line: two\n    lines\n"), "{text}");
        let json: Value = serde_json::from_slice(&Style::Json.note("INFO", "two\nlines")).unwrap();
        assert_eq!((&json["level"], &json["message"]), (&"INFO".into(), &"two\nlines".into()));
    }

    #[test]
    fn a_json_line_is_whole_even_when_escapes_make_it_long() {
        let fields = vec![("data", Value::from("\u{1}".repeat(MAX_FIELD_BYTES))); 8];
        let line = JsonLine { level: "INFO", message: "\u{1}".repeat(MAX_MESSAGE_BYTES), fields, ..JsonLine::default() }.finish();
        assert!(line.len() <= MAX_LINE_BYTES, "{}", line.len());
        let json: Value = serde_json::from_str(&line).unwrap();
        assert!(json["fields"]["log.cut_bytes"].as_u64().unwrap() > MAX_LINE_BYTES as u64);
    }

    proptest! {
        #[test]
        fn no_inner_line_begins_at_the_margin(text in "\\PC*(\n\\PC*){0,5}") {
            let line = String::from_utf8(tidy(text.as_bytes()).into_owned()).unwrap();
            prop_assert!(line.ends_with('\n'));
            prop_assert!(line.trim_end_matches('\n').lines().skip(1).all(|inner| inner.starts_with("    ")));
        }
    }
}
