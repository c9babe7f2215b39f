//! Password hashes: argon2id for ours, PBKDF2 for those of an imported database until their users log in. wire/1-core.md section 6.3.
//!
//! Hashing takes tens of milliseconds and 19 MiB by design; callers run it on a blocking thread, few at once.

use std::fmt;
use std::num::NonZeroU32;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use data_encoding::{BASE64_NOPAD, HEXLOWER_PERMISSIVE};
use protocol::ApiError;
use ring::pbkdf2::{self, PBKDF2_HMAC_SHA256};

use crate::random;

/// Memory of one hash in KiB: what OWASP recommends, and little enough for a board with 256 MiB.
const MEMORY_KIB: u32 = 19 * 1024;

/// Passes of one hash: about a tenth of a second on a desktop, half a second on a small board.
const PASSES: u32 = 2;

/// Memory in KiB from which on a stored hash counts as damaged instead of being computed.
const MAX_MEMORY_KIB: u32 = 256 * 1024;

/// Passes from which on a stored hash counts as damaged instead of being computed.
const MAX_PASSES: u32 = 16;

/// Address space in bytes that a hash asks for at least; what it does not use costs no memory. An allocator keeps smaller pieces after their use, for
/// each thread that ever hashed, which a few logins make a hundred MiB of; pieces above 32 MiB go back to the system at once (mallopt(3), `M_MMAP_THRESHOLD`).
const MIN_SPACE: usize = 33 * 1024 * 1024;

/// Rounds of PBKDF2 in databases of existing installations.
const PBKDF2_ROUNDS: u32 = 100_000;

/// Longest password in bytes.
pub const MAX_PASSWORD: usize = 1024;

/// How a user's password is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// No password fits: the user's password is in a directory, or the stored text is damaged.
    Nothing,
    Argon2 {
        memory_kib: u32,
        passes: u32,
        lanes: u32,
        salt: Vec<u8>,
        hash: Vec<u8>,
    },
    Pbkdf2 {
        salt: Vec<u8>,
        hash: Vec<u8>,
    },
}

impl PasswordHash {
    /// What no password fits.
    #[must_use]
    pub fn nothing() -> Self {
        Self(Kind::Nothing)
    }

    /// Hashes a new password. Slow.
    ///
    /// # Errors
    /// 500 when there is no memory or no randomness.
    pub fn of(password: &str) -> Result<Self, ApiError> {
        let salt = random::bytes::<16>()?.to_vec();
        let hash =
            argon2id(password, &salt, MEMORY_KIB, PASSES, 1, 32).ok_or_else(|| ApiError::internal("The password cannot be hashed"))?;
        Ok(Self(Kind::Argon2 { memory_kib: MEMORY_KIB, passes: PASSES, lanes: 1, salt, hash }))
    }

    /// The hash of an imported user: both in hexadecimal, 100,000 rounds of PBKDF2-HMAC-SHA256. `None` when it is no such hash.
    #[must_use]
    pub fn from_pbkdf2_hex(salt: &str, hash: &str) -> Option<Self> {
        let [salt, hash] = [salt, hash].map(|text| HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok());
        let (salt, hash) = (salt?, hash?);
        (!salt.is_empty() && hash.len() == 32).then_some(Self(Kind::Pbkdf2 { salt, hash }))
    }

    /// The stored text; see [`PasswordHash`]'s `Display`. Anything else fits no password.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(parse(text).unwrap_or(Kind::Nothing))
    }

    /// True when `password` is the one. Slow.
    #[must_use]
    pub fn fits(&self, password: &str) -> bool {
        match &self.0 {
            Kind::Nothing => {
                // As slow as any other: how long an answer takes must not tell which users exist.
                let _ = argon2id(password, &[0; 16], MEMORY_KIB, PASSES, 1, 32);
                false
            }
            Kind::Argon2 { memory_kib, passes, lanes, salt, hash } => {
                let computed = argon2id(password, salt, *memory_kib, *passes, *lanes, hash.len());
                computed.is_some_and(|computed| random::are_equal(&computed, hash))
            }
            Kind::Pbkdf2 { salt, hash } => NonZeroU32::new(PBKDF2_ROUNDS)
                .is_some_and(|rounds| pbkdf2::verify(PBKDF2_HMAC_SHA256, rounds, salt, password.as_bytes(), hash).is_ok()),
        }
    }

    /// True when a new hash of the same password would be better than this one.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        !matches!(&self.0, Kind::Argon2 { memory_kib: MEMORY_KIB, passes: PASSES, .. })
    }
}

/// The stored text: the usual string of argon2, one of the same kind for PBKDF2, or nothing.
impl fmt::Display for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encode = |bytes: &[u8]| BASE64_NOPAD.encode(bytes);
        match &self.0 {
            Kind::Nothing => Ok(()),
            Kind::Argon2 { memory_kib, passes, lanes, salt, hash } => {
                write!(f, "$argon2id$v=19$m={memory_kib},t={passes},p={lanes}${}${}", encode(salt), encode(hash))
            }
            Kind::Pbkdf2 { salt, hash } => write!(f, "$pbkdf2-sha256$i={PBKDF2_ROUNDS}${}${}", encode(salt), encode(hash)),
        }
    }
}

/// Hashes stay out of logs, too.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

fn parse(text: &str) -> Option<Kind> {
    let decode = |text: &str| BASE64_NOPAD.decode(text.as_bytes()).ok().filter(|bytes| (8..=64).contains(&bytes.len()));
    let parts: Vec<&str> = text.split('$').collect();
    match parts.as_slice() {
        ["", "argon2id", "v=19", costs, salt, hash] => {
            let mut costs =
                ["m=", "t=", "p="].into_iter().zip(costs.split(',')).map(|(name, cost)| cost.strip_prefix(name)?.parse::<u32>().ok());
            let (memory_kib, passes, lanes) = (costs.next()??, costs.next()??, costs.next()??);
            let is_sane = memory_kib <= MAX_MEMORY_KIB && passes <= MAX_PASSES && (1..=16).contains(&lanes);
            is_sane.then_some(Kind::Argon2 { memory_kib, passes, lanes, salt: decode(salt)?, hash: decode(hash)? })
        }
        ["", "pbkdf2-sha256", rounds, salt, hash] if rounds.strip_prefix("i=") == Some("100000") => {
            Some(Kind::Pbkdf2 { salt: decode(salt)?, hash: decode(hash)? })
        }
        _ => None,
    }
}

fn argon2id(password: &str, salt: &[u8], memory_kib: u32, passes: u32, lanes: u32, length: usize) -> Option<Vec<u8>> {
    let params = Params::new(memory_kib, passes, lanes, Some(length)).ok()?;
    let mut blocks = Vec::new();
    blocks.try_reserve_exact(params.block_count().max(MIN_SPACE / Block::SIZE)).ok()?;
    blocks.resize(params.block_count(), Block::new());
    let mut hash = vec![0; length];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password_into_with_memory(password.as_bytes(), salt, &mut hash, blocks).ok()?;
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hash_fits_its_password_only_and_survives_storing() {
        let hash = PasswordHash::of("correct horse ü").unwrap();
        let stored = hash.to_string();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        let read = PasswordHash::parse(&stored);
        assert!(read == hash && read.fits("correct horse ü") && !read.is_outdated());
        assert!(!read.fits("correct horse u") && !read.fits(""));
        assert_ne!(PasswordHash::of("correct horse ü").unwrap(), hash, "every hash has a salt of its own");
        assert_eq!(format!("{hash:?}"), "(hidden)");
    }

    /// Values computed with another implementation of argon2 (the reference one).
    #[test]
    fn hashes_are_those_of_the_standard() {
        let text = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert!(PasswordHash::parse(text).fits("password") && PasswordHash::parse(text).is_outdated());
    }

    #[test]
    fn imported_hashes_are_verified() {
        let mut hash = [0; 32];
        pbkdf2::derive(PBKDF2_HMAC_SHA256, NonZeroU32::new(PBKDF2_ROUNDS).unwrap(), &[7; 32], b"old", &mut hash);
        let hex = |bytes: &[u8]| HEXLOWER_PERMISSIVE.encode(bytes);
        let imported = PasswordHash::from_pbkdf2_hex(&hex(&[7; 32]), &hex(&hash)).unwrap();
        let read = PasswordHash::parse(&imported.to_string());
        assert!(read == imported && read.fits("old") && !read.fits("new") && read.is_outdated());
        for (salt, hash) in [("", ""), ("zz", "00"), ("07", "0707")] {
            assert!(PasswordHash::from_pbkdf2_hex(salt, hash).is_none());
        }
    }

    #[test]
    fn damaged_texts_fit_nothing_and_cost_no_memory() {
        for text in [
            "",
            "plain",
            "$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2id$v=19$m=8,t=1$a$b",
        ] {
            assert!(PasswordHash::parse(text) == PasswordHash::nothing(), "{text}");
        }
        assert!(!PasswordHash::nothing().fits(""));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\$?[a-z0-9=,$+/]{0,80}") {
            let hash = PasswordHash::parse(&text);
            prop_assert_eq!(PasswordHash::parse(&hash.to_string()), hash);
        }
    }
}
