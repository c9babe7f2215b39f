//! Access and refresh tokens: JSON Web Tokens signed with Ed25519, by the key of one session each. wire/1-core.md section 6.2.
//!
//! One algorithm, one form, nothing to negotiate: whatever is not exactly what we write is no token of ours (docs/decisions/0006).

use data_encoding::BASE64URL_NOPAD;
use protocol::ApiError;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

/// Longest text that is looked at as a token: ours have about 400 characters, more with a long user name.
pub(crate) const MAX_TOKEN: usize = 2048;

/// Life of an access token in seconds (document 1, *Limits*).
pub const ACCESS_LIFETIME: i64 = 3600;

/// Claim `aud` of all our tokens.
const AUDIENCE: &str = "core";

const ALGORITHM: &str = "EdDSA";
const TYPE: &str = "JWT";

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenType {
    /// Calling operations.
    Access,
    /// Getting new access tokens.
    Refresh,
}

/// What the signature vouches for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    iss: String,
    aud: String,
    iat: i64,
    /// Unix seconds.
    pub(crate) exp: i64,
    pub(crate) username: String,
    pub(crate) token_type: TokenType,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    kid: String,
    alg: String,
    typ: String,
}

/// The key pair of a session.
pub(crate) struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// The pair that follows from a secret seed.
    ///
    /// # Errors
    /// 500; no seed of this length is refused.
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Result<Self, ApiError> {
        Ed25519KeyPair::from_seed_unchecked(seed).map(Self).map_err(|_| ApiError::internal("The key of a session is damaged"))
    }

    /// What verifies its tokens.
    pub(crate) fn public(&self) -> Vec<u8> {
        self.0.public_key().as_ref().to_vec()
    }

    /// A token from `issued` to `expires` (Unix seconds).
    ///
    /// # Errors
    /// 500 when it cannot be encoded.
    pub(crate) fn sign(
        &self,
        key_id: &str,
        issuer: &str,
        username: &str,
        kind: TokenType,
        issued: i64,
        expires: i64,
    ) -> Result<String, ApiError> {
        let header = Header { kid: key_id.to_owned(), alg: ALGORITHM.to_owned(), typ: TYPE.to_owned() };
        let claims = Claims {
            iss: issuer.to_owned(),
            aud: AUDIENCE.to_owned(),
            iat: issued,
            exp: expires,
            username: username.to_owned(),
            token_type: kind,
        };
        let mut token = encode(&header)?;
        token.push('.');
        token.push_str(&encode(&claims)?);
        let signature = self.0.sign(token.as_bytes());
        token.push('.');
        BASE64URL_NOPAD.encode_append(signature.as_ref(), &mut token);
        Ok(token)
    }
}

/// A text in the form of our tokens, of which nothing is proven.
pub(crate) struct Unverified<'t> {
    /// Id of the key that is said to have signed it.
    pub(crate) key_id: String,
    signed: &'t str,
    payload: &'t str,
    signature: Vec<u8>,
}

impl<'t> Unverified<'t> {
    /// Takes a text apart. `None` when it is not of the form of our tokens.
    pub(crate) fn read(token: &'t str) -> Option<Self> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        let header: Header = decode(header)?;
        if header.alg != ALGORITHM || header.typ != TYPE {
            return None;
        }
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).ok()?;
        Some(Self { key_id: header.kid, signed, payload, signature })
    }

    /// The claims when `public` is the key that signed it and `issuer` issued it. Whether it has expired is for the caller to see.
    pub(crate) fn verify(&self, public: &[u8], issuer: &str) -> Option<Claims> {
        UnparsedPublicKey::new(&ED25519, public).verify(self.signed.as_bytes(), &self.signature).ok()?;
        let claims: Claims = decode(self.payload)?;
        (claims.iss == issuer && claims.aud == AUDIENCE).then_some(claims)
    }
}

fn encode(part: &impl Serialize) -> Result<String, ApiError> {
    let json = serde_json::to_vec(part).map_err(|error| ApiError::internal(format!("The token cannot be encoded: {error}")))?;
    Ok(BASE64URL_NOPAD.encode(&json))
}

fn decode<T: for<'de> Deserialize<'de>>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64URL_NOPAD.decode(part.as_bytes()).ok()?).ok()
}

/// Reads any text as a token and verifies it with a fixed key: for fuzzing and property tests.
#[must_use]
pub fn probe(token: &str) -> bool {
    let public = SigningKey::from_seed(&[7; 32]).map(|key| key.public()).unwrap_or_default();
    Unverified::read(token).and_then(|token| token.verify(&public, "i")).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token(seed: u8) -> String {
        SigningKey::from_seed(&[seed; 32]).unwrap().sign("kid", "i", "anna", TokenType::Access, 1000, 4600).unwrap()
    }

    fn verified(token: &str) -> Option<Claims> {
        Unverified::read(token)?.verify(&SigningKey::from_seed(&[7; 32]).unwrap().public(), "i")
    }

    fn with_part(token: &str, index: usize, json: &str) -> String {
        let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
        parts[index] = BASE64URL_NOPAD.encode(json.as_bytes());
        parts.join(".")
    }

    #[test]
    fn a_token_of_ours_is_verified() {
        let claims = verified(&token(7)).unwrap();
        assert_eq!((claims.username.as_str(), claims.exp, claims.token_type), ("anna", 4600, TokenType::Access));
        let header = BASE64URL_NOPAD.decode(token(7).split('.').next().unwrap().as_bytes()).unwrap();
        assert_eq!(header, br#"{"kid":"kid","alg":"EdDSA","typ":"JWT"}"#);
    }

    /// RFC 8037, appendix A.4: the signature is the standard's.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let seed: [u8; 32] = BASE64URL_NOPAD.decode(b"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").unwrap().try_into().unwrap();
        let key = SigningKey::from_seed(&seed).unwrap();
        assert_eq!(BASE64URL_NOPAD.encode(&key.public()), "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
        let signature = key.0.sign(b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc");
        let expected = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
        assert_eq!(BASE64URL_NOPAD.encode(signature.as_ref()), expected);
    }

    #[test]
    fn nothing_else_is() {
        let good = token(7);
        assert!(verified(&token(8)).is_none(), "a foreign key");
        for header in [
            r#"{"kid":"kid","alg":"none","typ":"JWT"}"#,
            r#"{"kid":"kid","alg":"HS256","typ":"JWT"}"#,
            r#"{"kid":"kid","alg":"EdDSA","typ":"at+jwt"}"#,
            r#"{"kid":"kid","alg":"EdDSA","typ":"JWT","crit":["exp"]}"#,
            r#"{"alg":"EdDSA","typ":"JWT"}"#,
        ] {
            assert!(verified(&with_part(&good, 0, header)).is_none(), "{header}");
        }
        let forged = r#"{"iss":"i","aud":"core","iat":1000,"exp":9999999999,"username":"root","token_type":"access"}"#;
        assert!(verified(&with_part(&good, 1, forged)).is_none());
        assert!(verified(&with_part(&good, 2, "")).is_none(), "without a signature");
        for cut in 0..good.len() {
            assert!(verified(&good[..cut]).is_none(), "cut at {cut}");
        }
        assert!(verified(&format!("{good}=")).is_none());
        assert!(verified(&format!("{}{good}", "a".repeat(MAX_TOKEN))).is_none());
        let other = Unverified::read(&good).unwrap();
        assert!(other.verify(&SigningKey::from_seed(&[7; 32]).unwrap().public(), "another issuer").is_none());
    }

    proptest! {
        #[test]
        fn no_other_text_is_a_token(text in ".{0,300}", position in 0usize..300, byte in 0u8..128) {
            prop_assert!(!probe(&text));
            let mut changed = token(7).into_bytes();
            let position = position % changed.len();
            if changed[position] != byte {
                changed[position] = byte;
                prop_assert!(!probe(&String::from_utf8(changed).unwrap()));
            }
        }
    }
}
