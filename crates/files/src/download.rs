//! Downloads: any readable file of a root, and the two logs that have fixed paths (wire/2-files-jobs.md section 1.4). Blocks.

use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use protocol::ApiError;
use protocol::vocabulary::ROUTES;
use rpc::transfer::Download;

use crate::disk::open_resolved;
use crate::kind;
use crate::library::{Library, Need};
use crate::path::{PathFault, RequestPath};
use crate::refusal::Refusal;

/// Where files are served.
const PREFIX: &str = "/server/files/";

/// The logs with fixed paths below `/server/files/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// Our own: `core.log`.
    Core,
    /// The firmware host's: `fwhost.log`.
    Firmware,
}

impl Log {
    /// The log that a path below `/server/files/` names, in either vocabulary.
    fn at(path: &str) -> Option<Self> {
        let pair = ROUTES.iter().find(|pair| [pair.neutral, pair.upstream].iter().any(|route| route.strip_prefix(PREFIX) == Some(path)))?;
        match pair.neutral.strip_prefix(PREFIX)? {
            "core.log" => Some(Self::Core),
            "fwhost.log" => Some(Self::Firmware),
            _ => None,
        }
    }
}

/// Where the logs are, as far as known.
#[derive(Debug, Default)]
pub(crate) struct LogPaths {
    core: Mutex<Option<PathBuf>>,
    firmware: Mutex<Option<PathBuf>>,
}

impl LogPaths {
    pub(crate) fn set(&self, log: Log, path: PathBuf) {
        *self.of(log).lock() = Some(path);
    }

    fn of(&self, log: Log) -> &Mutex<Option<PathBuf>> {
        match log {
            Log::Core => &self.core,
            Log::Firmware => &self.firmware,
        }
    }
}

/// Opens what a path below `/server/files/` names.
pub(crate) fn open(library: &Library, logs: &LogPaths, path: &str) -> Result<Download, ApiError> {
    if let Some(log) = Log::at(path) {
        let file = logs.of(log).lock().clone().ok_or_else(|| missing(path))?;
        // The owner named this file: links in it are his.
        let real = file.canonicalize().map_err(|error| unreadable(path, &error))?;
        return open_file(&real, path, name_of(path));
    }
    let request = RequestPath::parse(path).map_err(Refusal::from).and_then(|request| {
        // Changing from one root into another is a way out of the first, which downloads do not offer.
        if request.changed_root { Err(Refusal::Text(PathFault::Outside)) } else { Ok(request) }
    });
    let found = request.and_then(|request| library.resolve(&request.root, request.relative, Need::Read));
    let found = found.map_err(|refusal| refusal.for_download(path))?;
    open_file(&found.real, path, found.relative.name())
}

fn open_file(real: &Path, asked: &str, name: &str) -> Result<Download, ApiError> {
    // What a link that leads nowhere names is not there.
    let refused = |error: io::Error| if real.exists() { unreadable(asked, &error) } else { missing(asked) };
    let file = open_resolved(real).map_err(refused)?;
    let metadata = file.metadata().map_err(|error| unreadable(asked, &error))?;
    Ok(Download {
        size: metadata.len(),
        modified: metadata.modified().unwrap_or(std::time::UNIX_EPOCH),
        name: name.to_owned(),
        content_type: kind::content_type(name),
        file,
    })
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn missing(path: &str) -> ApiError {
    ApiError::not_found(format!("File does not exist: {path}"))
}

fn unreadable(path: &str, error: &io::Error) -> ApiError {
    match error.kind() {
        io::ErrorKind::InvalidInput => ApiError::forbidden(format!("Not a file: {path}")),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => missing(path),
        _ => ApiError::forbidden(format!("Cannot read {path}: {error}")),
    }
}

#[cfg(test)]
mod tests;
