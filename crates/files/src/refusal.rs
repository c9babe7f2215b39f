//! Why a path was not resolved, and what each kind of request answers then (wire/2-files-jobs.md sections 1.2 to 1.5).

use std::io;

use protocol::{ApiError, ErrorKind};

use crate::path::PathFault;

/// Why a request gets no path.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The text is no path.
    Text(PathFault),
    /// No such root.
    UnknownRoot(String),
    /// A link leads out of the root.
    Outside,
    /// Below a reserved path.
    Reserved {
        /// The name asked for.
        file: String,
        /// Name of the reservation.
        name: String,
    },
    /// Inside a `.git` folder.
    Git,
    /// Inside a folder of ours.
    Own,
    /// The file system refused.
    Io(io::Error),
}

impl From<PathFault> for Refusal {
    fn from(fault: PathFault) -> Self {
        Self::Text(fault)
    }
}

impl Refusal {
    /// For operations that name `root/path`.
    pub(crate) fn for_operation(self, text: &str) -> ApiError {
        match self {
            Self::Text(fault) => ApiError::bad_request(format!("Invalid path request, {fault}")),
            Self::UnknownRoot(root) => ApiError::bad_request(format!("Invalid root path ({root})")),
            Self::Outside => ApiError::bad_request(format!("Invalid path request, {text} leads out of its root")),
            other => other.common(),
        }
    }

    /// For uploads to `path` (relative to its root).
    pub(crate) fn for_upload(self, path: &str) -> ApiError {
        match self {
            Self::Text(fault) => ApiError::bad_request(format!("Cannot write to path: {path}: {fault}")),
            Self::UnknownRoot(root) => ApiError::bad_request(format!("Root {root} not available")),
            Self::Outside => ApiError::bad_request(format!("Cannot write to path: {path}")),
            other => other.common(),
        }
    }

    /// For downloads.
    pub(crate) fn for_download(self, path: &str) -> ApiError {
        match self {
            Self::Outside | Self::Text(PathFault::Outside) => ApiError::forbidden(format!("File is outside of its root: {path}")),
            Self::Text(_) | Self::UnknownRoot(_) => ApiError::not_found(format!("File does not exist: {path}")),
            other => other.common(),
        }
    }

    fn common(self) -> ApiError {
        match self {
            Self::Reserved { file, name } => ApiError::forbidden(format!("Access to file {file} forbidden by reserved path '{name}'")),
            Self::Git => ApiError::forbidden("Access to .git folders is forbidden"),
            Self::Own => ApiError::forbidden("Access to internal folders is forbidden"),
            Self::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                ApiError::forbidden(format!("Invalid path request, {error}"))
            }
            Self::Io(error) => ApiError::bad_request(format!("Invalid path request, {error}")),
            Self::Text(fault) => ApiError::bad_request(fault.to_string()),
            Self::UnknownRoot(root) => ApiError::bad_request(format!("Invalid root path ({root})")),
            Self::Outside => ApiError::bad_request("Invalid path request"),
        }
    }
}

/// The answer for a failed change: 507 when the disk is full, else the kind and text given by the caller with the system's reason.
pub(crate) fn failed(kind: ErrorKind, what: &str, error: &io::Error) -> ApiError {
    let kind = if is_full(error) { ErrorKind::Storage } else { kind };
    ApiError::new(kind, format!("{what}: {error}"))
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// True for what no other request could avoid: the disk is read-only, failing or gone.
fn is_disk_fault(error: &io::Error) -> bool {
    use rustix::io::Errno;
    const FAULTS: &[Errno] =
        &[Errno::ROFS, Errno::IO, Errno::NODEV, Errno::NXIO, Errno::STALE, Errno::NOTCONN, Errno::TIMEDOUT, Errno::MFILE, Errno::NFILE];
    Errno::from_io_error(error).is_some_and(|errno| FAULTS.contains(&errno))
}

/// The answer for a change that the file system refused, with the system's own text: 507 when the disk is full, 500 when the disk is at fault,
/// else 400.
pub(crate) fn system(error: &io::Error) -> ApiError {
    let kind = match () {
        () if is_full(error) => ErrorKind::Storage,
        () if is_disk_fault(error) => ErrorKind::Internal,
        () => ErrorKind::BadRequest,
    };
    ApiError::new(kind, error.to_string())
}

/// The answer for changes that would touch the loaded file.
pub(crate) fn in_use() -> ApiError {
    ApiError::forbidden("File currently in use")
}
