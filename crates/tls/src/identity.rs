//! A certificate with its key, read from files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Largest file of a certificate or a key: a chain has a few certificates of a few KiB.
const MAX_FILE: u64 = 1024 * 1024;

/// Why there is no certificate to show. Texts never hold what is in a key file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read, or not made.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault.
        error: std::io::Error,
    },
    /// A file without what it should hold.
    #[error("{}: expected {expected}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
    },
    /// Certificate and key that cannot be used together.
    #[error("{} and {} cannot be used: {reason}", certificate.display(), key.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The fault.
        reason: String,
    },
    /// A certificate could not be made.
    #[error("no certificate can be made: {0}")]
    Make(String),
}

/// What is shown to clients.
pub(crate) struct Identity {
    pub(crate) config: Arc<ServerConfig>,
    /// SHA-256 of the certificate, as browsers show it.
    pub(crate) fingerprint: String,
}

impl Identity {
    /// Reads certificate and key.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let content = |path: &Path, expected| TlsError::Content { path: path.to_owned(), expected };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(certificate)?)
            .collect::<Result<_, _>>()
            .map_err(|_| content(certificate, "certificates in PEM"))?;
        let first = chain.first().ok_or_else(|| content(certificate, "a certificate in PEM (-----BEGIN CERTIFICATE-----)"))?;
        let fingerprint = fingerprint(first);
        let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| content(key, "a private key in PEM without a password"))?;
        let pair =
            |error: rustls::Error| TlsError::Pair { certificate: certificate.to_owned(), key: key.to_owned(), reason: error.to_string() };
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(pair)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), fingerprint })
    }
}

/// A small file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |error| TlsError::File { path: path.to_owned(), error };
    let known = path.metadata().map_err(failed)?;
    if !known.is_file() || known.len() > MAX_FILE {
        return Err(TlsError::Content { path: path.to_owned(), expected: "a file of at most 1 MiB" });
    }
    std::fs::read(path).map_err(failed)
}

fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}
