//! HTTPS: which certificate is shown, and the port beside that of HTTP.

use std::path::PathBuf;
use std::sync::Arc;

use runtime::Supervisor;
use server::Warnings;
use tls::{Acceptor, SelfMade, Source};
use tokio::net::TcpListener;
use transport::Gateway;

use crate::data_folder::DataFolder;
use crate::settings::ServerOptions;

/// The open port of HTTPS.
pub struct Secure {
    acceptor: Arc<Acceptor>,
    listener: TcpListener,
    /// Where it listens.
    pub port: u16,
}

impl Secure {
    /// Opens the port if there is a certificate. Whatever is in the way is a warning: HTTP goes on.
    pub fn open(data: &DataFolder, options: &ServerOptions, warnings: &Warnings) -> Option<Self> {
        let source = match source(data, options, warnings) {
            Ok(source) => source?,
            Err(warning) => {
                warnings.add(format!("{warning}; there is no HTTPS"));
                return None;
            }
        };
        if options.ssl_port == options.port {
            warnings.add(format!("[server] ssl_port: {} is the port of HTTP; there is no HTTPS", options.ssl_port));
            return None;
        }
        let unusable = |error| warnings.add(format!("There is no HTTPS: {error}"));
        let acceptor = Acceptor::new(source).map_err(unusable).ok()?;
        let (host, port) = (&options.host, options.ssl_port);
        let failed = |error| warnings.add(format!("[server] ssl_port: cannot listen on {host} port {port}: {error}"));
        let listener = transport::http::bind(host, port).map_err(failed).ok()?;
        Some(Self { acceptor: Arc::new(acceptor), listener, port })
    }

    /// Serves, and follows changes of the certificate.
    pub fn start(self, gateway: &Arc<Gateway>, supervisor: &Supervisor) {
        let Self { acceptor, listener, port } = self;
        tracing::info!(port, fingerprint = acceptor.fingerprint(), "ready for clients by HTTPS");
        let kept = acceptor.clone();
        supervisor.spawn("certificate", move |stop| kept.clone().keep(stop));
        supervisor.spawn_once("https", transport::http::serve(gateway.clone(), listener, Some(acceptor)));
    }
}

/// The files that were named, those in their usual place, a certificate of our own making, or none.
fn source(data: &DataFolder, options: &ServerOptions, warnings: &Warnings) -> Result<Option<Source>, String> {
    match (&options.ssl_certificate_path, &options.ssl_key_path) {
        (Some(certificate), Some(key)) => return Ok(Some(Source::Files { certificate: certificate.clone(), key: key.clone() })),
        (Some(_), None) => return Err("[server] ssl_key_path is missing beside ssl_certificate_path".to_owned()),
        (None, Some(_)) => return Err("[server] ssl_certificate_path is missing beside ssl_key_path".to_owned()),
        (None, None) => {}
    }
    let (pair, halves) = data.certificate();
    halves.into_iter().for_each(|half| warnings.add(half));
    if let Some((certificate, key)) = pair {
        return Ok(Some(Source::Files { certificate, key }));
    }
    Ok(options.self_made_certificate.then(|| Source::SelfMade(self_made(data.certificates()))))
}

fn self_made(folder: PathBuf) -> SelfMade {
    let host = crate::host_name();
    SelfMade { folder, host, names: outbound::own::addresses().iter().map(ToString::to_string).collect() }
}
