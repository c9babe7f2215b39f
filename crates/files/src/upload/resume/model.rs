//! What an upload that can be continued is, and its rules. Pure.

use std::time::{Duration, SystemTime};

use protocol::{ApiError, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::upload::form::{UploadForm, file_name};

/// An upload that can be continued is forgotten when nothing has arrived for this time; so is the answer to a complete one.
pub const UPLOAD_LIFETIME: Duration = Duration::from_hours(24);
/// Unfinished uploads that wait for their rest at once.
pub const MAX_OPEN_UPLOADS: usize = 16;
/// Unfinished uploads may together be as large as this many files of the largest size allowed.
pub const MAX_RESERVED_FILES: u64 = 2;
/// Answers to complete uploads that are kept for clients who missed them; the oldest go first.
pub const MAX_KEPT_ANSWERS: usize = 64;
/// Hexadecimal digits of a SHA-256.
const CHECKSUM_DIGITS: usize = 64;

/// An upload as it is kept on the disk, beside its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Size of the whole file in bytes.
    pub(super) length: u64,
    /// What the text parts of a form would be, and `filename`.
    pub(super) fields: Vec<(String, String)>,
    /// The same as the client wrote it.
    pub(super) metadata: String,
    /// Complete uploads: the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Answer>,
}

/// The answer to a complete upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// Path below `/server/files/`.
    pub(super) path: String,
    /// JSON.
    pub(super) body: String,
}

/// What the fields say: the form, and the name of the file.
///
/// # Errors
/// 400 that names the field.
pub(super) fn understand(fields: &[(String, String)]) -> Result<(UploadForm, String), ApiError> {
    let mut form = UploadForm::default();
    for (name, value) in fields {
        form.set(name, value)?;
    }
    // Some clients say `name`.
    let named = |wanted: &str| fields.iter().rev().find(|(name, _)| name == wanted).and_then(|(_, value)| file_name(value));
    let name = named("filename").or_else(|| named("name")).ok_or_else(|| ApiError::bad_request("Upload-Metadata: filename is missing"))?;
    let is_checksum = |text: &String| text.len() == CHECKSUM_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if form.checksum.as_ref().is_some_and(|given| !is_checksum(given)) {
        return Err(ApiError::bad_request(format!("Upload-Metadata: checksum is not a SHA-256 of {CHECKSUM_DIGITS} hexadecimal digits")));
    }
    Ok((form, name))
}

/// How much the client is told to have arrived. The last byte counts only once the file is in its place: a client that sees all bytes
/// acknowledged goes away, and until then something may still go wrong.
pub(super) fn acknowledged(on_disk: u64, length: u64) -> u64 {
    on_disk.min(length.saturating_sub(1))
}

/// Whether a file may be as large as this.
///
/// # Errors
/// 413 over the limit.
pub(super) fn check_size(length: u64, max_size: u64) -> Result<(), ApiError> {
    if length <= max_size {
        return Ok(());
    }
    let message = format!("Upload-Length is {length}: larger than the limit of {max_size} bytes (max_upload_size)");
    Err(ApiError::new(ErrorKind::TooLarge, message))
}

/// Whether one more upload has room beside those that are open (`open`: their lengths).
///
/// # Errors
/// 429 when too much waits already.
pub(super) fn admit(open: &[u64], length: u64, max_size: u64) -> Result<(), ApiError> {
    let total = open.iter().fold(length, |sum, length| sum.saturating_add(*length));
    if open.len() >= MAX_OPEN_UPLOADS || total > max_size.saturating_mul(MAX_RESERVED_FILES) {
        return Err(ApiError::new(ErrorKind::TooMany, "Too many unfinished uploads; finish or delete one, or wait until they expire"));
    }
    Ok(())
}

/// Whether a request may append: `at` is where the upload is, `announced` what the request will bring if it says so.
///
/// # Errors
/// 409 for another offset, 413 beyond the end.
pub(super) fn check_append(at: u64, offset: u64, announced: Option<u64>, length: u64) -> Result<(), ApiError> {
    if offset != at {
        return Err(ApiError::new(ErrorKind::Conflict, format!("Upload-Offset is {offset}, the upload is at {at}")));
    }
    if announced.is_some_and(|more| more > length - at) {
        return Err(too_long(length));
    }
    Ok(())
}

/// More than was announced at the start.
pub(super) fn too_long(length: u64) -> ApiError {
    ApiError::new(ErrorKind::TooLarge, format!("More data than the Upload-Length of {length} bytes"))
}

/// When an upload is forgotten.
pub(super) fn expires(touched: SystemTime) -> SystemTime {
    touched.checked_add(UPLOAD_LIFETIME).unwrap_or(touched)
}

/// True when sending the same bytes again could only fail again.
pub(super) fn is_final(error: &ApiError) -> bool {
    matches!(error.kind, ErrorKind::Checksum | ErrorKind::BadRequest | ErrorKind::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn fields_are_those_of_the_form() {
        let sum = "aB".repeat(32);
        let (form, name) =
            understand(&fields(&[("filename", " /a b.gcode"), ("root", "Config"), ("checksum", &sum), ("print", "true")])).unwrap();
        assert_eq!((form.root.as_str(), form.checksum, form.print, name.as_str()), ("config", Some(sum), true, "a b.gcode"));
        assert_eq!(understand(&fields(&[("name", "x"), ("type", "text/plain")])).unwrap().1, "x");
        for bad in
            [&[][..], &[("filename", " / ")], &[("filename", "x"), ("checksum", "12")], &[("filename", "x"), ("checksum", &"g".repeat(64))]]
        {
            assert_eq!(understand(&fields(bad)).unwrap_err().kind, ErrorKind::BadRequest, "{bad:?}");
        }
    }

    #[test]
    fn the_last_byte_is_acknowledged_by_placing_the_file() {
        assert_eq!([0, 5, 9, 10, 11].map(|on_disk| acknowledged(on_disk, 10)), [0, 5, 9, 9, 9]);
        assert_eq!(acknowledged(0, 0), 0);
    }

    #[test]
    fn open_uploads_are_bounded_in_number_and_size() {
        assert!(admit(&[], 100, 100).is_ok() && admit(&[100], 100, 100).is_ok());
        assert_eq!(check_size(101, 100).unwrap_err().kind, ErrorKind::TooLarge);
        assert!(check_size(100, 100).is_ok());
        assert_eq!(admit(&[100, 1], 100, 100).unwrap_err().kind, ErrorKind::TooMany);
        assert_eq!(admit(&[1; MAX_OPEN_UPLOADS], 1, 100).unwrap_err().kind, ErrorKind::TooMany);
        assert!(admit(&[1; MAX_OPEN_UPLOADS - 1], 1, 100).is_ok());
        assert_eq!(admit(&[u64::MAX], u64::MAX, u64::MAX).err().map(|error| error.kind), None, "no overflow");
    }

    #[test]
    fn appending_goes_on_where_the_upload_is() {
        assert!(check_append(5, 5, Some(5), 10).is_ok() && check_append(5, 5, None, 10).is_ok());
        for offset in [0, 4, 6, u64::MAX] {
            assert_eq!(check_append(5, offset, Some(1), 10).unwrap_err().kind, ErrorKind::Conflict);
        }
        assert_eq!(check_append(5, 5, Some(6), 10).unwrap_err().kind, ErrorKind::TooLarge);
    }
}
