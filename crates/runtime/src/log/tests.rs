//! The file with its rotation under a clock of the test, and events on their whole way into it.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::Arc;
use std::time::Instant;

use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use super::outlet::Sink;
use super::*;

const SOON: Duration = Duration::from_secs(2);

/// A log of at most 100 bytes per file and the clock that it sees.
struct Bench {
    folder: TempDir,
    header: Header,
    start: Instant,
}

impl Bench {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), header: Header::default(), start: Instant::now() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("logs/core.log")
    }

    fn open(&self, now: Moment) -> Result<LogFile, String> {
        LogFile::open(&self.path(), 100, Style::Text, self.header.clone(), now)
    }

    /// The moment `hours` after noon of 2026-11-20.
    fn at(&self, hours: u32) -> Moment {
        let noon: DateTime = date(2026, 11, 20).at(12, 0, 0, 0);
        let since = Duration::from_secs(u64::from(hours) * 3600);
        Moment { local: noon + since, steady: self.start + since }
    }

    /// File names and contents in the folder of the logs.
    fn files(&self) -> Vec<(String, String)> {
        let entries = fs::read_dir(self.path().parent().unwrap()).unwrap().map(Result::unwrap);
        let mut files: Vec<_> = entries.map(|e| (e.file_name().into_string().unwrap(), fs::read_to_string(e.path()).unwrap())).collect();
        files.sort();
        files
    }
}

fn files(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}

#[test]
fn midnight_begins_a_new_file_and_two_old_ones_are_kept() {
    let bench = Bench::new();
    let mut log = bench.open(bench.at(0)).unwrap();
    for (hours, line) in [(0, "a\n"), (11, "b\n"), (13, "c\n"), (36, "d\n"), (60, "e\n"), (61, "f\n")] {
        log.write(line.as_bytes(), 0, bench.at(hours)).unwrap();
    }
    let expected = [("core.log", "e\nf\n"), ("core.log.2026-11-21", "c\n"), ("core.log.2026-11-22", "d\n")];
    assert_eq!(bench.files(), files(&expected), "without the day 20");
}

#[test]
fn a_full_file_begins_a_new_one_of_the_same_day() {
    let bench = Bench::new();
    let mut log = bench.open(bench.at(0)).unwrap();
    let line = |letter: &str| format!("{}\n", letter.repeat(59));
    for letter in ["a", "b", "c", "d"] {
        log.write(line(letter).as_bytes(), 0, bench.at(0)).unwrap();
    }
    let expected = [("core.log", &*line("d")), ("core.log.2026-11-20.2", &*line("b")), ("core.log.2026-11-20.3", &*line("c"))];
    assert_eq!(bench.files(), files(&expected));
}

#[test]
fn each_new_file_begins_with_the_header() {
    let bench = Bench::new();
    let mut log = bench.open(bench.at(0)).unwrap();
    *bench.header.lock() = "Bowsprit 1\nArguments: -v".to_owned();
    log.write(b"old\n", 0, bench.at(0)).unwrap();
    log.roll_over(bench.at(1)).unwrap();
    log.write(b"new\n", 0, bench.at(1)).unwrap();
    let [(_, current), (name, old)] = <[_; 2]>::try_from(bench.files()).unwrap();
    assert!(current.ends_with(": Bowsprit 1\n    Arguments: -v\nnew\n") && current.contains(" INFO "), "{current}");
    assert_eq!((&*name, &*old), ("core.log.2026-11-20", "old\n"));
}

#[test]
fn an_empty_file_is_not_rolled_over() {
    let bench = Bench::new();
    let mut log = bench.open(bench.at(0)).unwrap();
    log.roll_over(bench.at(0)).unwrap();
    assert_eq!(bench.files(), files(&[("core.log", "")]));
}

#[test]
fn a_file_found_at_the_start_has_the_day_of_its_last_change() {
    let bench = Bench::new();
    drop(bench.open(bench.at(0)).unwrap());
    fs::write(bench.path(), "before\n").unwrap();
    let changed = bench.at(0).local.to_zoned(TimeZone::system()).unwrap().timestamp();
    fs::File::options().append(true).open(bench.path()).unwrap().set_modified(changed.into()).unwrap();

    let mut log = bench.open(bench.at(20)).unwrap();
    log.write(b"after\n", 0, bench.at(20)).unwrap();
    assert_eq!(bench.files(), files(&[("core.log", "after\n"), ("core.log.2026-11-20", "before\n")]));
}

#[test]
fn lost_lines_are_reported_before_the_next() {
    let bench = Bench::new();
    let mut log = bench.open(bench.at(0)).unwrap();
    log.write(b"next\n", 17, bench.at(0)).unwrap();
    let text = fs::read_to_string(bench.path()).unwrap();
    let (note, next) = text.split_once('\n').unwrap();
    assert!(note.contains("WARN") && note.ends_with(": 17 log lines before this one were lost"), "{note}");
    assert_eq!(next, "next\n");
}

#[test]
fn a_file_that_somebody_removed_is_made_again() {
    let bench = Bench::new();
    let mut log = bench.open(bench.at(0)).unwrap();
    log.write(b"a\n", 0, bench.at(0)).unwrap();
    fs::remove_file(bench.path()).unwrap();
    log.write(b"b\n", 0, bench.at(1)).unwrap();
    assert_eq!(bench.files(), files(&[("core.log", "b\n")]));
}

/// A rotation that cannot work whoever runs the test: the file's own name is gone.
#[test]
fn a_failed_rotation_is_reported_goes_on_while_there_is_room_and_is_tried_again_later() {
    let bench = Bench::new();
    let mut log = bench.open(bench.at(0)).unwrap();
    log.write(&[b'x'; 90], 0, bench.at(0)).unwrap();
    let hidden = bench.path().with_file_name("hidden");
    fs::rename(bench.path(), &hidden).unwrap();

    // within the pause of the identity check nobody notices the loss of the name
    let failure = log.roll_over(bench.at(0)).unwrap_err();
    assert!(failure.contains("Cannot rename") && failure.contains("core.log"), "{failure}");
    assert_eq!(log.write(&[b'y'; 20], 0, bench.at(0)).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    log.write(&[b'z'; 5], 0, bench.at(0)).unwrap();
    assert_eq!(fs::metadata(&hidden).unwrap().len(), 95);

    fs::rename(&hidden, bench.path()).unwrap();
    assert!(log.write(&[b'y'; 20], 0, bench.at(0)).is_err(), "on hold after the failure");
    log.write(&[b'y'; 20], 0, bench.at(1)).unwrap();
    assert_eq!(fs::metadata(bench.path()).unwrap().len(), 20);
}

#[test]
fn what_is_no_file_is_refused_with_a_sentence() {
    let folder = TempDir::new().unwrap();
    symlink("/dev/null", folder.path().join("null.log")).unwrap();
    fs::write(folder.path().join("plain"), "").unwrap();
    for path in ["null.log", ".", "plain/core.log", ".."] {
        let (_, logging) = build(&LogOptions { file: Some(folder.path().join(path)), ..LogOptions::default() });
        assert!(logging.handle.file().is_none());
        assert!(logging.warnings[0].starts_with("Cannot open the log file "), "{:?}", logging.warnings);
    }
    assert_eq!(fs::metadata("/dev/null").unwrap().mode() & 0o170_000, 0o020_000);
}

#[tokio::test]
async fn without_a_file_there_is_nothing_to_roll_over() {
    let (_, logging) = build(&LogOptions::default());
    assert!(logging.warnings.is_empty());
    assert_eq!(logging.handle.roll_over().await, Err("File logging is off".to_owned()));
}

/// Logs some events to a file and returns its text.
fn logged(json: bool, verbosity: Verbosity, events: impl FnOnce()) -> String {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("core.log");
    let (dispatch, logging) = build(&LogOptions { file: Some(path.clone()), json, verbosity });
    assert_eq!((logging.warnings.len(), logging.handle.file()), (0, Some(&*path)));
    tracing::dispatcher::with_default(&dispatch, events);
    assert!(logging.handle.flush(SOON));
    assert_eq!(logging.handle.lost_lines(), 0);
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_text_line_has_time_level_place_message_and_fields() {
    let text = logged(false, Verbosity::Normal, || {
        let _job = tracing::info_span!("job", id = 7).entered();
        tracing::info!(layer = 3, "printing");
    });
    let (time, rest) = text.split_at("2026-11-20 12:00:00.000".len());
    assert!(time.parse::<DateTime>().is_ok(), "{text}");
    assert_eq!(rest, "  INFO job: runtime::log::tests: printing layer=3 id=7\n");
}

#[test]
fn a_json_line_has_the_documented_members() {
    let text = logged(true, Verbosity::Normal, || {
        let _job = tracing::info_span!("job", id = 7, file = "a b.gcode").entered();
        tracing::warn!(layer = 3, ratio = 0.5, on = true, name = "x\ny", level = ?Some(1), "two\n\"lines\"");
        tracing::info!(target: "wire", "elsewhere");
    });
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [line, elsewhere] = &lines[..] else { panic!("{text}") };
    assert!(line["time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{line}");
    assert_eq!((&line["level"], &line["function"]), (&"WARN".into(), &"runtime::log::tests".into()));
    assert!(line["file"].as_str().unwrap().ends_with("log/tests.rs") && line["line"].as_u64().is_some());
    assert_eq!(line["message"], "two\n\"lines\"");
    assert_eq!(line["fields"], serde_json::json!({"layer": 3, "ratio": 0.5, "on": true, "name": "x\ny", "level": "Some(1)"}));
    assert_eq!(line["spans"], serde_json::json!(["job{id=7 file=\"a b.gcode\"}"]));
    assert!(line.get("target").is_none());
    assert_eq!((&elsewhere["target"], elsewhere.get("fields")), (&"wire".into(), None));
    let order = ["\"time\"", "\"level\"", "\"file\"", "\"function\"", "\"line\"", "\"message\""].map(|name| text.find(name).unwrap());
    assert!(order.is_sorted(), "{text}");
}

/// Keeps what it gets where the test can see it.
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Sink for Shown {
    fn write(&mut self, lines: &[u8], _: u64, _: Moment) -> io::Result<()> {
        self.0.lock().extend_from_slice(lines);
        Ok(())
    }

    fn roll_over(&mut self, _: Moment) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn colours_of_the_terminal_do_not_reach_the_file() {
    let places = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    let [terminal, file] = places.clone().map(|place| Outlet::start("shown", Shown(place)).unwrap());
    let layers = Registry::default().with(stderr_layer(terminal.clone(), true, false)).with(file_layer(file.clone(), Style::Text));
    tracing::subscriber::with_default(layers, || {
        let _job = tracing::info_span!("job", id = 7).entered();
        tracing::info!(text = "\x1b[31mred", "printing \x1b[2J");
    });
    assert!(terminal.flush(SOON) && file.flush(SOON));
    let [terminal, file] = places.map(|place| String::from_utf8(place.lock().clone()).unwrap());
    assert!(terminal.contains("\x1b[32m INFO") && !terminal.contains("\x1b[2J") && !terminal.starts_with("2"), "{terminal:?}");
    assert!(file.contains("id=7") && !file.contains('\x1b'), "{file:?}");
}

#[test]
fn verbosity_chooses_what_is_logged() {
    let events = || {
        tracing::info!("i");
        tracing::debug!("d");
        tracing::trace!("t");
        tracing::warn!(target: "hyper::proto", "W");
        tracing::info!(target: "hyper::proto", "I");
        tracing::debug!(target: "hyper::proto", "D");
        tracing::trace!(target: "hyper::proto", "T");
    };
    for (verbosity, expected) in [(Verbosity::Normal, "iW"), (Verbosity::Verbose, "idW"), (Verbosity::Debug, "idtWID")] {
        let text = logged(false, verbosity, events);
        let letters: String = text.lines().filter_map(|line| line.chars().last()).collect();
        assert_eq!(letters, expected, "{verbosity:?}");
    }
}

#[tokio::test]
async fn a_rollover_keeps_the_order_of_the_lines() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("core.log");
    let (dispatch, logging) = build(&LogOptions { file: Some(path.clone()), ..LogOptions::default() });
    logging.handle.set_header("the header");
    tracing::dispatcher::with_default(&dispatch, || tracing::info!("before"));
    logging.handle.roll_over().await.unwrap();
    tracing::dispatcher::with_default(&dispatch, || tracing::info!("after"));
    drop(logging.flush_at_end);

    let current = fs::read_to_string(&path).unwrap();
    let messages: Vec<_> = current.lines().filter_map(|line| line.rsplit_once(": ")).map(|(_, message)| message).collect();
    assert_eq!(messages, ["the header", "after"]);
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let old = names.filter(|name| *name != path).collect::<Vec<_>>();
    assert_eq!(old.len(), 1);
    assert!(fs::read_to_string(&old[0]).unwrap().ends_with(": before\n"));
}
