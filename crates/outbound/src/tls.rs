//! TLS of everything here that is not HTTP: with the certificates that the system trusts.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Secures a connection to `host`, a name or an address. The text of a failure is for people.
pub(crate) async fn secure<S: AsyncRead + AsyncWrite + Unpin>(host: &str, tcp: S) -> Result<TlsStream<S>, String> {
    // Reads some hundred certificates from the disk.
    let config = tokio::task::spawn_blocking(|| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok::<_, rustls::Error>(builder.with_platform_verifier()?.with_no_client_auth())
    });
    let config = config.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await.map_err(|error| format!("TLS: {error}"))
}
