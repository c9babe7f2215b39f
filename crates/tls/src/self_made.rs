//! A certificate of our own making, for networks where nobody issues one.
//!
//! The key is made once and stays, so that who pins it need not look again. The certificate is made anew before it ends, or when the machine
//! has another name. What it was made for stands in the file above it, as a line of text.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};

use crate::identity::{TlsError, read};

/// How long a certificate of ours holds; some systems refuse such that hold longer than 825 days.
pub const LIFE_TIME: Duration = Duration::from_secs(820 * 24 * 3600);

/// How long before its end it is made anew.
pub const RENEW_BEFORE: Duration = Duration::from_secs(60 * 24 * 3600);

/// No certificate begins before 2020-01-01: boards without a clock start in the past.
const FIRST_DAY: Timestamp = Timestamp::constant(1_577_836_800, 0);

/// A certificate begins a day before it is made: clocks differ.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Names and addresses in one certificate.
const MAX_NAMES: usize = 32;

/// Word before the host's name in the line above the certificate.
const HOST: &str = "Host: ";

/// Word before the end.
const UNTIL: &str = "Until: ";

/// Where a certificate of ours lies, and whom it names.
#[derive(Debug, Clone)]
pub struct SelfMade {
    /// The folder, which must exist.
    pub folder: PathBuf,
    /// Name of the machine. Another one makes another certificate.
    pub host: String,
    /// Further names and addresses at the time when it is made.
    pub names: Vec<String>,
}

impl SelfMade {
    /// File of the certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("self-made.cert")
    }

    /// File of the key; only its owner may read it.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.folder.join("self-made.key")
    }

    /// Makes key and certificate as far as they are missing or about to end.
    ///
    /// # Errors
    /// When a file cannot be read or written. A key that cannot be read is not replaced.
    pub fn prepare(&self, now: Timestamp) -> Result<(), TlsError> {
        let known = self.key_pair()?;
        if known.is_some() && self.still_holds(now) {
            return Ok(());
        }
        let key = match known {
            Some(key) => key,
            None => {
                let key = KeyPair::generate().map_err(make)?;
                write(&self.key(), key.serialize_pem().as_bytes(), 0o600)?;
                key
            }
        };
        // With a clock that was never set it would end before its first day.
        let from = now.max(FIRST_DAY);
        let until = from + LIFE_TIME;
        let certificate = self.params(from).and_then(|params| params.self_signed(&key)).map_err(make)?;
        let text = format!(
            "Made by Bowsprit; remove it and restart to have it made anew.\n{HOST}{}\n{UNTIL}{until}\n{}",
            self.host,
            certificate.pem()
        );
        write(&self.certificate(), text.as_bytes(), 0o644)
    }

    fn key_pair(&self) -> Result<Option<KeyPair>, TlsError> {
        let path = self.key();
        let pem = match read(&path) {
            Err(TlsError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            pem => pem?,
        };
        let text = String::from_utf8_lossy(&pem);
        KeyPair::from_pem(&text).map(Some).map_err(|_| TlsError::Content { path, expected: "a private key in PEM, as it was made" })
    }

    /// True when the certificate is there, names this machine and does not end soon.
    fn still_holds(&self, now: Timestamp) -> bool {
        let Ok(text) = read(&self.certificate()) else { return false };
        let text = String::from_utf8_lossy(&text);
        let after = |word: &str| text.lines().find_map(|line| line.strip_prefix(word)).map(str::trim);
        let until = after(UNTIL).and_then(|until| until.parse::<Timestamp>().ok());
        after(HOST) == Some(&self.host) && until.is_some_and(|until| now + RENEW_BEFORE < until)
    }

    fn params(&self, from: Timestamp) -> Result<CertificateParams, rcgen::Error> {
        let mut params = CertificateParams::new(self.all_names())?;
        params.distinguished_name.push(DnType::CommonName, self.host.clone());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let day = |time: Timestamp| {
            let date = time.to_zoned(TimeZone::UTC).date();
            let small = |number: i8| u8::try_from(number).unwrap_or(1);
            rcgen::date_time_ymd(i32::from(date.year()), small(date.month()), small(date.day()))
        };
        (params.not_before, params.not_after) = (day(from - DAY), day(from + LIFE_TIME));
        Ok(params)
    }

    /// The machine's name, alone and in the local domain, this machine for itself, and what else was given; each once.
    fn all_names(&self) -> Vec<String> {
        let usual = [self.host.clone(), format!("{}.local", self.host), "localhost".into(), "127.0.0.1".into(), "::1".into()];
        let mut names: Vec<String> = Vec::new();
        for name in usual.into_iter().chain(self.names.iter().cloned()) {
            if is_name(&name) && !names.contains(&name) && names.len() < MAX_NAMES {
                names.push(name);
            }
        }
        names
    }
}

/// What may stand in a certificate.
fn is_name(name: &str) -> bool {
    let is_host = |name: &str| name.len() <= 253 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    !name.is_empty() && (name.parse::<IpAddr>().is_ok() || is_host(name))
}

#[expect(clippy::needless_pass_by_value, reason = "as an error is mapped")]
fn make(error: rcgen::Error) -> TlsError {
    TlsError::Make(error.to_string())
}

/// Writes a file as a whole: aside, synced, then into its place.
fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), TlsError> {
    let aside = path.with_extension("new");
    let written = || {
        let _ = fs::remove_file(&aside);
        let mut file = File::options().write(true).create_new(true).mode(mode).open(&aside)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    written().map_err(|error| TlsError::File { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;

    use super::*;
    use crate::identity::Identity;

    fn bench() -> (tempfile::TempDir, SelfMade) {
        let folder = tempfile::tempdir().unwrap();
        let made = SelfMade { folder: folder.path().to_owned(), host: "printer".into(), names: vec!["192.0.2.7".into(), "fd00::7".into()] };
        (folder, made)
    }

    fn now() -> Timestamp {
        "2026-11-22T08:00:00Z".parse().unwrap()
    }

    #[test]
    fn made_once_and_renewed_with_the_same_key() {
        let (_keep, made) = bench();
        made.prepare(now()).unwrap();
        let files = || (fs::read(made.key()).unwrap(), fs::read(made.certificate()).unwrap());
        let (key, first) = files();
        assert_eq!(fs::metadata(made.key()).unwrap().permissions().mode() & 0o777, 0o600);
        made.prepare(now() + (LIFE_TIME - RENEW_BEFORE - Duration::from_secs(60))).unwrap();
        assert_eq!(files(), (key.clone(), first.clone()), "it still holds");
        made.prepare(now() + (LIFE_TIME - RENEW_BEFORE)).unwrap();
        let (same_key, second) = files();
        assert_eq!(same_key, key);
        assert_ne!(second, first);
        let renamed = SelfMade { host: "other".into(), ..made.clone() };
        renamed.prepare(now() + LIFE_TIME).unwrap();
        assert_ne!(files().1, second, "another name");
        assert!(Identity::read(&made.certificate(), &made.key()).is_ok());
    }

    #[test]
    fn none_holds_longer_than_systems_accept() {
        let (_keep, made) = bench();
        for at in [now(), FIRST_DAY] {
            let params = made.params(at).unwrap();
            let days = (params.not_after - params.not_before).whole_days();
            assert!((LIFE_TIME.as_secs() / 86_400..=825).contains(&u64::try_from(days).unwrap()), "{days}");
        }
    }

    #[test]
    fn one_that_was_made_before_the_clock_was_set_is_replaced() {
        let (_keep, made) = bench();
        made.prepare("1970-01-01T00:00:10Z".parse().unwrap()).unwrap();
        let first = fs::read_to_string(made.certificate()).unwrap();
        let until = first.lines().find_map(|line| line.strip_prefix(UNTIL)).unwrap();
        assert_eq!(until.parse::<Timestamp>().unwrap(), FIRST_DAY + LIFE_TIME, "not before its first day");
        assert_eq!(FIRST_DAY.to_string(), "2020-01-01T00:00:00Z");
        made.prepare(now()).unwrap();
        let second = fs::read(made.certificate()).unwrap();
        assert_ne!(second, first.into_bytes());
        made.prepare("1970-01-01T00:00:10Z".parse().unwrap()).unwrap();
        assert_eq!(fs::read(made.certificate()).unwrap(), second, "the next start without a clock keeps what holds");
    }

    #[test]
    fn a_key_that_cannot_be_read_is_left_alone() {
        let (_keep, made) = bench();
        fs::write(made.key(), "something else").unwrap();
        let error = made.prepare(now()).unwrap_err().to_string();
        assert!(error.contains("self-made.key: expected a private key"), "{error}");
        assert_eq!(fs::read_to_string(made.key()).unwrap(), "something else");
    }

    #[test]
    fn names_that_no_certificate_may_hold_are_left_out() {
        let (_keep, mut made) = bench();
        made.names = vec!["bücher".into(), "a b".into(), "printer".into(), String::new(), "10.0.0.1".into()];
        assert_eq!(made.all_names(), ["printer", "printer.local", "localhost", "127.0.0.1", "::1", "10.0.0.1"]);
        made.host = "mein drucker".into();
        made.prepare(now()).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn any_text_above_a_certificate_is_survived(text in ".{0,80}") {
            let (_keep, made) = bench();
            fs::write(made.certificate(), format!("{HOST}printer\n{UNTIL}{text}\n")).unwrap();
            let _ = made.still_holds(now());
        }
    }
}
