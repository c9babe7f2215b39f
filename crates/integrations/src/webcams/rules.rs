//! What a webcam entry must be.

use std::fmt;

use protocol::ApiError;
use protocol::webcam::Webcam;

/// Webcams in all.
pub const MAX_WEBCAMS: usize = 128;

/// Longest text of an entry, in bytes.
const MAX_TEXT: usize = 256;

/// Longest address of an entry, in bytes.
const MAX_ADDRESS: usize = 4096;

/// Longest extra data of an entry, in bytes of JSON.
const MAX_EXTRA_DATA: usize = 64 * 1024;

/// Frames per second at most.
const MAX_FPS: i64 = 1000;

/// Schemes that would let an address run as a program in a front end, or read its files.
const REFUSED_SCHEMES: &[&str] = &["javascript", "vbscript", "data", "file", "blob"];

/// A field that cannot stay as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Invalid {
    /// Name of the field.
    pub field: &'static str,
    /// What it holds.
    pub value: String,
    /// What it may hold.
    pub expected: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.value.chars().take(64).collect();
        write!(f, "Invalid value for '{}': {shown}, expected {}", self.field, self.expected)
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        Self::bad_request(invalid.to_string())
    }
}

/// Checks every field.
///
/// # Errors
/// The first field that is wrong.
pub(super) fn check(webcam: &Webcam) -> Result<(), Invalid> {
    text("name", &webcam.name)?;
    if webcam.name.trim().is_empty() {
        return Err(invalid("name", &webcam.name, "a name that is not empty"));
    }
    text("location", &webcam.location)?;
    text("service", &webcam.service)?;
    text("icon", &webcam.icon)?;
    fps("target_fps", webcam.target_fps)?;
    fps("target_fps_idle", webcam.target_fps_idle)?;
    address("stream_url", &webcam.stream_url)?;
    address("snapshot_url", &webcam.snapshot_url)?;
    if !matches!(webcam.rotation, 0 | 90 | 180 | 270) {
        return Err(invalid("rotation", &webcam.rotation, "0, 90, 180 or 270"));
    }
    if !is_ratio(&webcam.aspect_ratio) {
        return Err(invalid("aspect_ratio", &webcam.aspect_ratio, "two numbers with a colon between them, as in 16:9"));
    }
    let extra = webcam.extra_data.get();
    if !extra.starts_with('{') || extra.len() > MAX_EXTRA_DATA {
        return Err(invalid("extra_data", &extra, "an object of at most 64 KiB"));
    }
    Ok(())
}

fn invalid(field: &'static str, value: &dyn ToString, expected: &'static str) -> Invalid {
    Invalid { field, value: value.to_string(), expected }
}

fn text(field: &'static str, value: &str) -> Result<(), Invalid> {
    if value.len() <= MAX_TEXT && !value.contains(char::is_control) {
        Ok(())
    } else {
        Err(invalid(field, &value.escape_debug(), "one line of at most 256 bytes"))
    }
}

fn fps(field: &'static str, value: i64) -> Result<(), Invalid> {
    if (0..=MAX_FPS).contains(&value) { Ok(()) } else { Err(invalid(field, &value, "a number from 0 to 1000")) }
}

fn address(field: &'static str, value: &str) -> Result<(), Invalid> {
    if value.len() > MAX_ADDRESS || value.contains(char::is_control) {
        return Err(invalid(field, &value.escape_debug(), "an address without control characters of at most 4096 bytes"));
    }
    let scheme = value.trim().split(':').next().unwrap_or("");
    if REFUSED_SCHEMES.iter().any(|refused| scheme.eq_ignore_ascii_case(refused)) {
        return Err(invalid(field, &value, "a complete address of a camera, or a path on this machine"));
    }
    match value.trim().split_once("://") {
        // Whatever looks complete must be complete.
        Some((scheme, _)) if is_scheme(scheme) && !outbound::parse_url(value.trim()).is_ok_and(|url| url.has_host()) => {
            Err(invalid(field, &value, "a complete address of a camera, or a path on this machine"))
        }
        _ => Ok(()),
    }
}

/// True for the letters before `://`.
pub(super) fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'))
}

/// Digits, a colon, digits.
fn is_ratio(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.len() <= 5 && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(':').is_some_and(|(width, height)| digits(width) && digits(height))
}
