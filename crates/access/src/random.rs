//! Random bytes and texts that nobody guesses, and comparing them without telling how far they agree.

use data_encoding::{BASE32, BASE64URL_NOPAD};
use protocol::ApiError;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

const LETTERS_AND_DIGITS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// SHA-256 of a secret, by which it can be stored and looked up without being known.
pub(crate) type Digest = [u8; 32];

/// Random bytes.
///
/// # Errors
/// 500 when the system has none.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], ApiError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| ApiError::internal("The system gives no random numbers"))?;
    Ok(bytes)
}

/// `N` letters and digits, each as likely as any other.
///
/// # Errors
/// 500 when the system has no random numbers.
pub(crate) fn letters_and_digits<const N: usize>() -> Result<String, ApiError> {
    let mut text = String::with_capacity(N);
    while text.len() < N {
        // Bytes beyond the last whole multiple of 62 would make the first letters more likely.
        let fair = bytes::<N>()?.into_iter().filter(|byte| *byte < 248);
        text.extend(fair.take(N - text.len()).map(|byte| char::from(LETTERS_AND_DIGITS[usize::from(byte % 62)])));
    }
    Ok(text)
}

/// 20 random bytes in base32: the form of oneshot tokens.
///
/// # Errors
/// 500 when the system has no random numbers.
pub(crate) fn base32() -> Result<String, ApiError> {
    Ok(BASE32.encode(&bytes::<20>()?))
}

/// 32 random bytes in base64url: the form of key ids.
///
/// # Errors
/// 500 when the system has no random numbers.
pub(crate) fn base64url() -> Result<String, ApiError> {
    Ok(BASE64URL_NOPAD.encode(&bytes::<32>()?))
}

/// The digest of a secret.
pub(crate) fn digest_of(secret: &str) -> Digest {
    let mut out = Digest::default();
    out.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    out
}

/// Compares in constant time.
pub(crate) fn are_equal(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_form_and_never_repeat() {
        let key = letters_and_digits::<32>().unwrap();
        assert!(key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{key}");
        assert_ne!(key, letters_and_digits::<32>().unwrap());
        let token = base32().unwrap();
        assert!(token.len() == 32 && token.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7')), "{token}");
        assert_eq!(base64url().unwrap().len(), 43);
    }

    #[test]
    fn digests_compare() {
        assert!(are_equal(&digest_of("a"), &digest_of("a")));
        assert!(!are_equal(&digest_of("a"), &digest_of("b")));
        assert!(!are_equal(b"a", b"ab"));
    }
}
