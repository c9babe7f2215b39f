//! The port and the unix socket, opened at the end of a build.

use std::io::ErrorKind;
use std::sync::Arc;

use runtime::Supervisor;
use server::Warnings;
use tokio::net::TcpListener;
use transport::Gateway;

use super::{BuildError, Environment};
use crate::settings::Settings;

/// Port when the configured one cannot be had for want of rights.
const DEFAULT_PORT: u16 = 7125;

/// Opens port and socket; gives the port.
pub(super) fn listen(
    gateway: &Arc<Gateway>,
    supervisor: &Supervisor,
    settings: &Settings,
    environment: &Environment,
    warnings: &Warnings,
) -> Result<u16, BuildError> {
    let listener = open_port(&settings.server.host, settings.server.port, environment, warnings)?;
    let path = environment.socket.clone().unwrap_or_else(|| environment.data.socket_file());
    match transport::socket::listen_unix(&path) {
        Ok(listener) => {
            if environment.socket.is_none()
                && let Err(warning) = environment.data.link_socket()
            {
                warnings.add(warning);
            }
            let gateway = gateway.clone();
            supervisor.spawn_once("unix socket", transport::socket::serve_unix(gateway, listener));
        }
        Err(error) => warnings.add(format!("The unix socket {} cannot be opened: {error}", path.display())),
    }
    let local = listener.local_addr().ok();
    let address = local.map(|address| address.to_string()).unwrap_or_default();
    tracing::info!(%address, socket = %path.display(), "ready for clients");
    supervisor.spawn_once("http", transport::http::serve(gateway.clone(), listener, None));
    Ok(local.map_or(settings.server.port, |address| address.port()))
}

/// Opens the configured port or, when it cannot be had, the next best one: nothing in a configuration keeps the server from answering.
fn open_port(host: &str, port: u16, environment: &Environment, warnings: &Warnings) -> Result<TcpListener, BuildError> {
    let mut last = environment.last_address.lock();
    let error = match transport::http::bind(host, port) {
        Ok(listener) => {
            *last = Some((host.to_owned(), port));
            return Ok(listener);
        }
        Err(error) => error,
    };
    let failed = format!("cannot listen on {host} port {port}: {error}");
    let next_best = match (&*last, error.kind()) {
        (Some((host, port)), _) => Some((host.clone(), *port)),
        // A port that needs rights that we do not have.
        (None, ErrorKind::PermissionDenied) if port != DEFAULT_PORT => Some((host.to_owned(), DEFAULT_PORT)),
        // A kernel without IPv6, or another fault of that family alone.
        (None, kind) if host == "all" && kind != ErrorKind::AddrInUse => Some(("0.0.0.0".to_owned(), port)),
        // An address that this machine does not have, or that is none.
        (None, ErrorKind::AddrNotAvailable | ErrorKind::InvalidInput) => Some(("127.0.0.1".to_owned(), port)),
        (None, _) => None,
    };
    let Some((host, port)) = next_best else { return Err(BuildError(failed)) };
    warnings.add(format!("[server] {failed}; listening on {host} port {port} instead"));
    transport::http::bind(&host, port).map_err(|error| BuildError(format!("{failed}; nor on {host} port {port}: {error}")))
}
