//! Accepting TCP connections and serving HTTP/1 on each.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use super::routes;
use crate::gateway::Gateway;
use crate::limits::{HEAD_TIMEOUT, MAX_HEAD, MAX_HEADERS, MAX_TCP_CONNECTIONS, STOP_GRACE, TCP_USER_TIMEOUT_MS};

/// Connections that the kernel holds for us until we accept them.
const BACKLOG: u32 = 1024;

/// Pause after an accept error (usually: out of file descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Opens the listening socket; `all` listens on IPv4 and IPv6.
///
/// # Errors
/// When the host is no address or the port cannot be bound.
pub fn bind(host: &str, port: u16) -> io::Result<TcpListener> {
    let address = match host {
        "all" => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        "localhost" => IpAddr::from(Ipv4Addr::LOCALHOST),
        literal => literal
            .trim_matches(['[', ']'])
            .parse()
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, format!("'{literal}' is no IP address")))?,
    };
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if address.is_ipv6() {
        rustix::net::sockopt::set_ipv6_v6only(&socket, host != "all")?;
    }
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(address, port))?;
    socket.listen(BACKLOG)
}

/// Serves until the gateway stops.
pub async fn serve(gateway: Arc<Gateway>, listener: TcpListener) {
    let slots = Arc::new(Semaphore::new(MAX_TCP_CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = gateway.stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                let gateway = gateway.clone();
                gateway.dispatcher.tasks.clone().spawn(async move {
                    connection(gateway, stream, peer.ip()).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(gateway: Arc<Gateway>, stream: TcpStream, peer: IpAddr) {
    // Neither option is vital: without them half-open peers only live longer and small answers wait for the peer's acknowledgement.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, TCP_USER_TIMEOUT_MS);
    let stop = gateway.stop.clone();
    let service = service_fn(move |request| {
        let gateway = gateway.clone();
        async move { Ok::<_, Infallible>(routes::handle(gateway, peer, request).await) }
    });
    // Without `pipeline_flush`: it holds an answer back while anything follows the request, be it only a line break.
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        _ = serving.as_mut() => {}
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            // One that has not sent its first request, as browsers open them in advance, would never end.
            let _ = tokio::time::timeout(STOP_GRACE, serving).await;
        }
    }
}
