//! Logging: events go to stderr for people and to a rotated file for later.
//!
//! ```text
//! tracing event ─► level filter ─┬─► text ─► bounded queue ─► thread ─► stderr
//!                                └─► text or JSON ─► bounded queue ─► thread ─► logs/<name>
//! ```
//!
//! Nobody who logs waits for a disk or a terminal. The file is put aside at midnight, when it is full and on request;
//! two old ones are kept. A file that cannot be opened costs the file, never the server.

mod archive;
mod file;
mod line;
mod outlet;
mod plan;
mod stderr;
#[cfg(test)]
mod tests;
mod throttle;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{Dispatch, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry, fmt};

pub use archive::KEPT_FILES;
use file::{Header, LogFile};
pub use line::MAX_LINE_BYTES;
use line::{FileFields, JsonLines, LocalTime, Style};
pub use outlet::MAX_QUEUED_BYTES;
use outlet::{Moment, Outlet};
pub use plan::MAX_FILE_BYTES;
use stderr::Stderr;
pub use throttle::{LogThrottle, MAX_KINDS};

/// Longest wait for a forced rollover; a disk that hangs longer makes it a failure.
const ROLL_OVER_DEADLINE: Duration = Duration::from_secs(5);

/// Longest wait for the last lines at the end of the process.
const FLUSH_DEADLINE: Duration = Duration::from_secs(1);

/// Libraries whose own events are of interest only when something is wrong with them.
const FOREIGN: [&str; 8] = ["h2", "hyper", "hyper_util", "mio", "rustls", "tokio", "tokio_tungstenite", "tungstenite"];

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verbosity {
    /// What an owner wants to know: `INFO` and above.
    #[default]
    Normal,
    /// Also requests and answers: `DEBUG` and above.
    Verbose,
    /// Everything.
    Debug,
}

impl Verbosity {
    fn filter(self) -> Targets {
        let (own, foreign) = match self {
            Verbosity::Normal => (LevelFilter::INFO, LevelFilter::WARN),
            Verbosity::Verbose => (LevelFilter::DEBUG, LevelFilter::WARN),
            Verbosity::Debug => (LevelFilter::TRACE, LevelFilter::DEBUG),
        };
        Targets::new().with_default(own).with_targets(FOREIGN.map(|library| (library, foreign)))
    }
}

/// What [`init`] sets up.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LogOptions {
    /// The log file; `None` logs to stderr only (`--nologfile`).
    pub file: Option<PathBuf>,
    /// JSON lines in the file instead of text (`--structured-logging`).
    pub json: bool,
    /// How much is logged, to both places.
    pub verbosity: Verbosity,
}

/// Logging as [`init`] has set it up.
#[must_use = "dropping `flush_at_end` early gives up its purpose"]
pub struct Logging {
    /// To roll over, flush and count.
    pub handle: LogHandle,
    /// Complete sentences for the owner, for example that the file cannot be opened.
    pub warnings: Vec<String>,
    /// Keep until the end of `main`.
    pub flush_at_end: FlushGuard,
}

/// Sets up logging for the whole process, panics included: they become events of level `ERROR`.
pub fn init(options: &LogOptions) -> Logging {
    let (dispatch, mut logging) = build(options);
    match tracing::dispatcher::set_global_default(dispatch) {
        Ok(()) => log_panics(),
        Err(_) => logging.warnings.push("Logging had been set up before; the new settings are not used.".to_owned()),
    }
    logging
}

fn build(options: &LogOptions) -> (Dispatch, Logging) {
    let mut warnings = Vec::new();
    let stderr = Outlet::start("log-stderr", Stderr).map_err(|error| warnings.push(format!("Cannot log to stderr: {error}"))).ok();
    let style = if options.json { Style::Json } else { Style::Text };
    let file = options.file.as_deref().and_then(|path| FileHandle::open(path, style).map_err(|text| warnings.push(text)).ok());

    let subscriber = Registry::default()
        .with(options.verbosity.filter())
        .with(stderr.clone().map(|outlet| stderr_layer(outlet, stderr::is_colourful(), !stderr::is_stamped_by_reader())))
        .with(file.as_ref().map(|file| file_layer(file.outlet.clone(), style)));
    let handle = LogHandle { stderr, file };
    let flush_at_end = FlushGuard(handle.clone());
    (Dispatch::new(subscriber), Logging { handle, warnings, flush_at_end })
}

type BoxedLayer<S> = Box<dyn Layer<S> + Send + Sync>;

fn stderr_layer<S: Subscriber + for<'a> LookupSpan<'a>>(outlet: Outlet, colours: bool, times: bool) -> BoxedLayer<S> {
    let layer = fmt::layer().compact().with_ansi(colours).with_writer(outlet);
    if times { layer.with_timer(LocalTime).boxed() } else { layer.without_time().boxed() }
}

fn file_layer<S: Subscriber + for<'a> LookupSpan<'a>>(outlet: Outlet, style: Style) -> BoxedLayer<S> {
    let layer = fmt::layer().fmt_fields(FileFields::default()).with_ansi(false).with_writer(outlet);
    match style {
        Style::Text => layer.compact().with_timer(LocalTime).boxed(),
        Style::Json => layer.event_format(JsonLines).boxed(),
    }
}

fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("(no text)");
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(location, thread = std::thread::current().name(), "panic: {text}");
    }));
}

#[derive(Clone)]
struct FileHandle {
    path: PathBuf,
    outlet: Outlet,
    header: Header,
}

impl FileHandle {
    fn open(path: &Path, style: Style) -> Result<Self, String> {
        let header = Header::default();
        let file = LogFile::open(path, MAX_FILE_BYTES, style, header.clone(), Moment::now())?;
        let outlet = Outlet::start("log-file", file).map_err(|error| format!("Cannot log to {}: {error}", path.display()))?;
        Ok(Self { path: path.to_owned(), outlet, header })
    }
}

/// The running log. Clones are cheap and share it.
#[derive(Clone)]
pub struct LogHandle {
    stderr: Option<Outlet>,
    file: Option<FileHandle>,
}

impl LogHandle {
    /// The log file, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| &*file.path)
    }

    /// Sets the text at the top of each file from the next rotation on: program, arguments, system. It is not written
    /// now; what exceeds [`MAX_LINE_BYTES`] is cut off.
    pub fn set_header(&self, text: impl Into<String>) {
        if let Some(file) = &self.file {
            *file.header.lock() = text.into();
        }
    }

    /// Puts the log file aside now and begins a new one.
    ///
    /// # Errors
    /// A text for the caller of `server.logs.rollover`: file logging is off, or the file cannot be put aside.
    pub async fn roll_over(&self) -> Result<(), String> {
        let Some(file) = &self.file else { return Err("File logging is off".to_owned()) };
        match tokio::time::timeout(ROLL_OVER_DEADLINE, file.outlet.roll_over()).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err("The log is busy with other rollovers".to_owned()),
            Err(_) => Err("The disk does not answer; the log will be rolled over as soon as it does".to_owned()),
        }
    }

    /// Lines that were lost so far because a queue was full or the disk refused them.
    #[must_use]
    pub fn lost_lines(&self) -> u64 {
        self.outlets().map(Outlet::lost).sum()
    }

    /// Blocks until everything logged so far is written; false if that takes longer than `deadline` for one place.
    pub fn flush(&self, deadline: Duration) -> bool {
        // every place gets its turn, also after one that failed
        self.outlets().filter(|outlet| !outlet.flush(deadline)).count() == 0
    }

    fn outlets(&self) -> impl Iterator<Item = &Outlet> {
        self.stderr.iter().chain(self.file.as_ref().map(|file| &file.outlet))
    }
}

/// Writes the last lines when dropped: the last thing that `main` lets go of.
#[must_use]
pub struct FlushGuard(LogHandle);

impl Drop for FlushGuard {
    fn drop(&mut self) {
        self.0.flush(FLUSH_DEADLINE);
    }
}
