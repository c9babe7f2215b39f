//! Names of feeds.

use protocol::vocabulary::DEFAULT_FEEDS;
use protocol::{ApiError, Form};

/// Longest name of a feed, in bytes.
const MAX_NAME: usize = 64;

/// The feed that is meant: in lower case, and under the name that its file has.
///
/// # Errors
/// When no file can have that name.
pub(super) fn parse(name: &str) -> Result<String, ApiError> {
    let name = name.trim().to_lowercase();
    // The name becomes part of an address and of a path.
    let is_usable = !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if !is_usable {
        let shown: String = name.chars().take(MAX_NAME).collect();
        return Err(ApiError::bad_request(format!("Invalid feed name '{shown}': expected letters, digits, '-', '_' and '.', at most 64")));
    }
    Ok(DEFAULT_FEEDS.iter().find(|pair| pair.is(&name)).map_or(name, |pair| pair.upstream.to_owned()))
}

/// The name that a caller reads.
pub(super) fn shown(feed: &str, form: Form) -> String {
    DEFAULT_FEEDS.iter().find(|pair| pair.upstream == feed).map_or(feed, |pair| pair.in_form(form)).to_owned()
}

/// The feeds that are always checked.
pub(super) fn defaults() -> impl Iterator<Item = String> {
    DEFAULT_FEEDS.iter().map(|pair| pair.upstream.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_vocabularies_name_the_same_feed() {
        for name in ["core", "moonraker", " Moonraker "] {
            assert_eq!(parse(name).unwrap(), "moonraker");
        }
        assert_eq!((shown("klipper", Form::Neutral), shown("klipper", Form::Upstream)), ("firmware".to_owned(), "klipper".to_owned()));
        assert_eq!(parse("Moonraker-Telegram-Bot").unwrap(), "moonraker-telegram-bot");
    }

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["", ".", "..", "../x", "a/b", "a b", "a?b", "ä", &"a".repeat(65)] {
            assert!(parse(name).is_err(), "{name}");
        }
    }
}
