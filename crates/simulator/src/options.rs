//! What a simulated printer is started with.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fault::Fault;

/// Options of a simulator. [`Options::new`] gives a healthy printer in real time.
#[derive(Debug, Clone)]
pub struct Options {
    /// Unix socket to listen on. A stale file of that name is removed.
    pub socket: PathBuf,
    /// Model seconds per wall second: 1.0 is real time, 1000.0 prints minutes in a moment. Status ticks stay at 0.25 s.
    pub speed: f64,
    /// Folder of printable files; `virtual_sdcard.path` of the shown configuration.
    pub gcodes: PathBuf,
    /// Path of the configuration file, as reported. It is not read.
    pub config_file: PathBuf,
    /// Path of the log file, as reported. It is not written.
    pub log_file: Option<PathBuf>,
    /// Wall time from listening to `ready`.
    pub startup: Duration,
    /// Wall time between closing all connections at a restart and listening again.
    pub restart_gap: Duration,
    /// Faults from the start.
    pub faults: Vec<Fault>,
    /// Seed of the sensor noise.
    pub seed: u64,
}

impl Options {
    /// A healthy printer behind `socket`, with `gcodes` and `config` beside the socket's folder
    /// (`DATA/comms/x.sock` → `DATA/gcodes`, `DATA/config/printer.cfg`), as data folders are laid out.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        let socket = socket.into();
        let data = socket.parent().and_then(Path::parent).unwrap_or(Path::new("")).to_owned();
        Self {
            socket,
            speed: 1.0,
            gcodes: data.join("gcodes"),
            config_file: data.join("config/printer.cfg"),
            log_file: None,
            startup: Duration::from_millis(500),
            restart_gap: Duration::from_millis(300),
            faults: Vec::new(),
            seed: 1,
        }
    }
}
