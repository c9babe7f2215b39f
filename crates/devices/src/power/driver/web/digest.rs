//! Digest authentication with SHA-256 (RFC 7616), as relays of the second generation ask for it.

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

/// Longest part of a challenge that is taken.
const MAX_PART: usize = 512;

/// What a device asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
}

impl Challenge {
    /// Reads `WWW-Authenticate`; none when it is not Digest with SHA-256 and `qop=auth`.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("digest") {
            return None;
        }
        let parts = parts(rest)?;
        let part = |name: &str| parts.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone());
        let offers_auth = part("qop")?.split(',').any(|qop| qop.trim() == "auth");
        if !offers_auth || !part("algorithm")?.eq_ignore_ascii_case("SHA-256") {
            return None;
        }
        Some(Self { realm: part("realm")?, nonce: part("nonce")?, opaque: part("opaque") })
    }
}

/// `name=value` and `name="value"`, separated by commas. None when it is something else.
fn parts(text: &str) -> Option<Vec<(String, String)>> {
    let (mut parts, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        // What would have to be quoted anew does not come from such a device.
        if value.len() > MAX_PART || value.contains('\\') {
            return None;
        }
        parts.push((name.trim().to_owned(), value.trim().to_owned()));
        let after = after.trim_start();
        rest = after.strip_prefix(',').or(after.is_empty().then_some(""))?.trim_start();
    }
    Some(parts)
}

/// Login name, password, and the challenge that is answered.
#[derive(Clone)]
pub(crate) struct Digest {
    user: String,
    password: String,
    challenge: Option<Challenge>,
    /// Requests that answered it.
    count: u32,
}

impl Digest {
    pub(crate) fn new(user: &str, password: &str) -> Self {
        Self { user: user.to_owned(), password: password.to_owned(), challenge: None, count: 0 }
    }

    pub(crate) fn challenged(&mut self, challenge: Challenge) {
        (self.challenge, self.count) = (Some(challenge), 0);
    }

    /// `Authorization` for a request; none before the first challenge.
    pub(crate) fn answer(&mut self, method: &str, uri: &str) -> Option<String> {
        let mut random = [0; 16];
        SystemRandom::new().fill(&mut random).ok()?;
        self.answer_with(method, uri, &HEXLOWER.encode(&random))
    }

    fn answer_with(&mut self, method: &str, uri: &str, cnonce: &str) -> Option<String> {
        let Challenge { realm, nonce, opaque } = self.challenge.clone()?;
        self.count += 1;
        let (user, count) = (&self.user, format!("{:08x}", self.count));
        let secret = hash(&format!("{user}:{realm}:{}", self.password));
        let response = hash(&format!("{secret}:{nonce}:{count}:{cnonce}:auth:{}", hash(&format!("{method}:{uri}"))));
        let opaque = opaque.map(|opaque| format!(", opaque=\"{opaque}\"")).unwrap_or_default();
        Some(format!(
            "Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", algorithm=SHA-256, qop=auth, nc={count}, \
             cnonce=\"{cnonce}\", response=\"{response}\"{opaque}"
        ))
    }
}

fn hash(text: &str) -> String {
    HEXLOWER.encode(digest(&SHA256, text.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of RFC 7616, section 3.9.1.
    #[test]
    fn the_example_of_the_standard_is_answered() {
        let header = r#"Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#;
        let mut digest = Digest::new("Mufasa", "Circle of Life");
        assert_eq!(digest.answer("GET", "/"), None);
        digest.challenged(Challenge::parse(header).unwrap());
        let answer = digest.answer_with("GET", "/dir/index.html", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ").unwrap();
        assert!(answer.contains(r#"response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1""#), "{answer}");
        assert!(answer.contains("nc=00000001") && answer.contains("opaque=\"FQhe/"), "{answer}");
    }

    #[test]
    fn other_challenges_are_not_answered() {
        for other in [
            "",
            "Basic realm=\"x\"",
            "Digest realm=\"x\", nonce=\"y\", qop=\"auth\", algorithm=MD5",
            "Digest realm=\"x\", nonce=\"y\", algorithm=SHA-256",
            "Digest realm=\"x, nonce=y",
            "Digest realm=\"x\" nonce=\"y\"",
            "Digest realm=\"x\\\"\", nonce=\"y\", qop=auth, algorithm=SHA-256",
        ] {
            assert_eq!(Challenge::parse(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_header_breaks_it(text in "(Digest )?([a-z]{0,6}=\"?[a-zA-Z0-9\\\\-]{0,8}\"?[, ]{0,2}){0,6}|.{0,60}") {
            let _ = Challenge::parse(&text);
        }
    }
}
