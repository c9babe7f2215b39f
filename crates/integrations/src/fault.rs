//! Faults of the store, for clients.

use protocol::{ApiError, ErrorKind};
use store::StoreError;

/// A fault of the store, for clients.
#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(crate) fn to_api(error: StoreError) -> ApiError {
    let kind = match error.kind() {
        store::ErrorKind::NotFound => ErrorKind::NotFound,
        store::ErrorKind::Invalid => ErrorKind::BadRequest,
        store::ErrorKind::Denied => ErrorKind::Forbidden,
        store::ErrorKind::Unavailable => ErrorKind::Unavailable,
        store::ErrorKind::Internal => ErrorKind::Internal,
    };
    let kind = if matches!(error, StoreError::Full) { ErrorKind::Storage } else { kind };
    ApiError::new(kind, error.to_string())
}
