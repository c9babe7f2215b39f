//! Asking a directory of users (LDAP, version 3): log in, search one entry, log in as it. RFC 4511; wire/1-core.md section 6.9.
//!
//! A [`Link`] is used for one login and then dropped. Answers are bounded in size and number; the caller bounds the time of the whole.

mod ber;
mod filter;
mod link;
mod message;

use std::fmt;

pub use ber::Malformed;
pub use filter::{Comparison, Filter};
pub use link::{CONNECT_TIMEOUT, Link, MAX_MESSAGE, MAX_MESSAGES, Server};
pub use message::{Answer, Entry, Outcome, accepts};

/// Why a directory could not be asked. The text is for the log; it repeats no password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LdapError {
    /// The server was not reached, went away, or speaks something else.
    Broken(String),
    /// The server refused.
    Refused(Outcome),
}

impl fmt::Display for LdapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(reason) => f.write_str(reason),
            Self::Refused(Outcome { code, text }) => {
                write!(f, "the server refused with code {code} ({})", meaning(*code))?;
                // What a stranger wrote must not look like lines of a log.
                let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
                if text.is_empty() { Ok(()) } else { write!(f, ": {text}") }
            }
        }
    }
}

impl std::error::Error for LdapError {}

fn meaning(code: u32) -> &'static str {
    match code {
        1 => "operations error; perhaps it wants a login before searches: set bind_dn",
        3 => "it took too long",
        8 => "it wants another kind of login",
        10 => "it refers to another server",
        13 => "it wants an encrypted connection: set ldap_secure",
        32 => "no such entry: check base_dn",
        34 => "this is no distinguished name",
        48 => "this kind of login is not allowed",
        49 => "wrong name or password",
        50 => "not enough rights",
        51 => "busy",
        52 => "unavailable",
        53 => "unwilling",
        _ => "see RFC 4511",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_do_and_stay_on_one_line() {
        let refused = LdapError::Refused(Outcome { code: 32, text: "a\nb".into() });
        assert_eq!(refused.to_string(), "the server refused with code 32 (no such entry: check base_dn): ab");
    }
}
