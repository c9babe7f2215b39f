//! The part of another print server's API that slicers and screens know (OctoPrint's): what they ask before they upload, the state of the
//! printer in that server's words, scripts, and the choice of a file. Uploads take the one way of all uploads.
//!
//! Source: wire/1-core.md section 10, wire/4-clients.md section 4. Which program asks what: docs/slicers.md.

mod api;
mod model;
mod options;

use std::collections::BTreeMap;
use std::sync::Arc;

use fwhost::FwHost;
use protocol::error::ApiResult;
use protocol::status::{Fields, Selection, Text};
use protocol::{ApiError, ErrorKind};
use rpc::Call;
use rpc::transfer::Boxed;

pub use options::SlicerApiOptions;

use model::{CHAMBER, Heater, Job, Printer, Progress, Standing, Temperature};

/// Commands of one request; a script of this length is a file.
pub const MAX_COMMANDS: usize = 1000;

/// Files and the job, as far as a slicer's choice of a file needs them.
pub trait Prints: Send + Sync {
    /// True when this is a file in the gcode root that may be read. `filename` is relative to it.
    fn has(&self, filename: String) -> Boxed<'static, bool>;

    /// Starts a file on behalf of a caller; ready when the firmware host has accepted it.
    fn start(&self, filename: String, call: Arc<Call>) -> Boxed<'static, ApiResult<()>>;

    /// Puts a file into the queue on behalf of a caller; `None` when uploads are not queued.
    fn queue(&self, filename: String, call: Arc<Call>) -> Option<Boxed<'static, ApiResult<()>>>;
}

/// The emulated API.
pub struct SlicerApi {
    options: SlicerApiOptions,
    host: FwHost,
    prints: Arc<dyn Prints>,
}

impl SlicerApi {
    /// Puts the operations around the printer.
    #[must_use]
    pub fn new(options: SlicerApiOptions, host: FwHost, prints: Arc<dyn Prints>) -> Arc<Self> {
        Arc::new(Self { options, host, prints })
    }

    fn standing(&self) -> Standing {
        Standing::of(self.host.status().state, self.host.print_stats().map(|job| job.state))
    }

    /// State and temperatures, from the status cache; no temperatures while the firmware host is away.
    fn printer(&self) -> Printer {
        let objects = self.host.status().objects.clone();
        let temperature = objects.iter().filter_map(|object| {
            let heater = Heater::of(object)?;
            let number = |field| self.number(object, field).unwrap_or(0.0);
            Some((heater.name(), Temperature::new(number("temperature"), number("target"))))
        });
        Printer { temperature: temperature.collect(), state: self.standing().into() }
    }

    /// The file and how far it is, while there is a job.
    fn job(&self) -> Job {
        let stats = self.host.print_stats();
        let standing = Standing::of(self.host.status().state, stats.as_ref().map(|job| job.state));
        let stats = stats.filter(|_| matches!(standing, Standing::Printing | Standing::Paused));
        let progress = stats.as_ref().map(|stats| {
            let part = self.number("virtual_sdcard", "progress");
            Progress::new(part, self.number("virtual_sdcard", "file_position"), stats.print_duration)
        });
        Job::new(stats.map(|stats| stats.filename.to_string()), progress.unwrap_or_default(), standing)
    }

    fn has_object(&self, wanted: &str) -> bool {
        self.host.status().objects.iter().any(|object| &**object == wanted)
    }

    fn number(&self, object: &str, field: &str) -> Option<f64> {
        let text: Text = self.host.field(object, field)?;
        text.parse().ok()
    }

    /// Runs commands one after the other. A command that fails is the printer's to tell; those after it run all the same.
    async fn run(&self, commands: Vec<String>) -> ApiResult<()> {
        if commands.len() > MAX_COMMANDS {
            return Err(ApiError::argument(format!("Unable to convert argument [commands]: expected at most {MAX_COMMANDS} commands")));
        }
        for command in commands {
            match self.host.gcode(&command, false).await {
                Ok(()) => {}
                // Nobody is there to tell of it, nor to run the others.
                Err(error) if error.kind == ErrorKind::Unavailable => return Err(error),
                Err(error) => tracing::debug!(command = format!("{command:.80}"), %error, "a command of a slicer failed"),
            }
        }
        Ok(())
    }

    /// Prints a file now or, when a job is under way, next.
    async fn print(&self, root: &str, filename: String, call: Arc<Call>) -> ApiResult<()> {
        if root != "gcodes" || !self.prints.has(filename.clone()).await {
            return Err(ApiError::bad_request(format!("{root}/{filename} is no file that can be printed")));
        }
        // What was started a moment ago counts: the cache alone may not show it yet.
        let job = Selection(BTreeMap::from([("print_stats".into(), Fields::All)]));
        self.host.query(&job).await?;
        if !self.host.print_stats().is_some_and(|job| job.state.is_active()) {
            return self.prints.start(filename, call).await;
        }
        match self.prints.queue(filename, call) {
            Some(queued) => queued.await,
            None => Err(ApiError::new(ErrorKind::Conflict, "A print is under way")),
        }
    }
}
