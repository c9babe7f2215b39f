//! What the owner can set, and the timing that tests shorten.

use std::path::PathBuf;
use std::time::Duration;

/// Samples of one temperature series unless configured otherwise: 20 minutes.
pub const DEFAULT_TEMPERATURE_STORE_SIZE: usize = 1200;

/// Entries of the gcode store unless configured otherwise.
pub const DEFAULT_GCODE_STORE_SIZE: usize = 1000;

/// How to reach the firmware host, who we say we are, and how much is remembered.
#[derive(Debug, Clone)]
pub struct Options {
    /// Path of the firmware host's unix socket.
    pub socket: PathBuf,
    /// Our program name, told to the firmware host (it writes it into its log).
    pub program: String,
    /// Our version, told to the firmware host.
    pub version: String,
    /// Samples (seconds) kept per temperature series.
    pub temperature_store_size: usize,
    /// Entries kept in the gcode store.
    pub gcode_store_size: usize,
    /// Intervals and time limits.
    pub timing: Timing,
}

impl Options {
    /// Defaults for the given socket and identity.
    pub fn new(socket: impl Into<PathBuf>, program: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            socket: socket.into(),
            program: program.into(),
            version: version.into(),
            temperature_store_size: DEFAULT_TEMPERATURE_STORE_SIZE,
            gcode_store_size: DEFAULT_GCODE_STORE_SIZE,
            timing: Timing::default(),
        }
    }
}

/// Every interval and time limit of the link. The defaults follow wire/5-fwhost.md sections 4, 12 and 13.
#[derive(Debug, Clone)]
pub struct Timing {
    /// How often the socket file is looked at, and the pace of all time limits below.
    pub poll: Duration,
    /// Longest pause between two attempts to connect to an unchanged socket file.
    pub backoff_max: Duration,
    /// Silence after which `info` is asked as a heart-beat; also its pace until the start sequence is done.
    pub heartbeat: Duration,
    /// An `info` that stays unanswered this long means that the host is gone.
    pub info_timeout: Duration,
    /// The same when the socket file was touched: an old host that still holds our connection shows itself soon.
    pub probe_timeout: Duration,
    /// Limit for the other requests of the start sequence, and for a client's subscription.
    pub subscribe_timeout: Duration,
    /// The cache answers while the last update is not older than this.
    pub fresh: Duration,
    /// Temperature sampling.
    pub sample: Duration,
    /// The standing subscription is renewed once, this long after ready: fields that a host adds late (the first statistics of a
    /// micro-controller, for example) are followed from then on.
    pub second_look: Duration,
    /// A request without an answer is logged each time this much has passed.
    pub pending_log: Duration,
    /// After a failed write what the host had already sent is still read, for this long at most.
    pub drain: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            poll: Duration::from_millis(250),
            backoff_max: Duration::from_secs(2),
            heartbeat: Duration::from_secs(2),
            info_timeout: Duration::from_secs(10),
            probe_timeout: Duration::from_secs(3),
            subscribe_timeout: Duration::from_secs(20),
            fresh: Duration::from_millis(500),
            sample: Duration::from_secs(1),
            second_look: Duration::from_secs(3),
            pending_log: Duration::from_secs(60),
            drain: Duration::from_millis(250),
        }
    }
}
