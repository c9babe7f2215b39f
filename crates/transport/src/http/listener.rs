//! Accepting TCP connections and serving HTTP/1 on each.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tls::Acceptor;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::routes::{self, Arrival};
use crate::gateway::Gateway;
use crate::limits::{
    HEAD_TIMEOUT, MAX_ARRIVING, MAX_HEAD, MAX_HEADERS, MAX_TCP_CONNECTIONS, MAX_TLS_BESIDE_WEBSOCKETS, STOP_GRACE, TCP_USER_TIMEOUT_MS,
};
use crate::wire::Wire;

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

/// Serves until the gateway stops; with an acceptor, secured connections only.
pub async fn serve(gateway: Arc<Gateway>, listener: TcpListener, acceptor: Option<Arc<Acceptor>>) {
    let by_tls = gateway.settings.max_websockets + MAX_TLS_BESIDE_WEBSOCKETS;
    let slots = Arc::new(Semaphore::new(if acceptor.is_some() { by_tls } else { MAX_TCP_CONNECTIONS }));
    let mut arriving = Arriving(VecDeque::new());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = gateway.stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (gateway, acceptor, slots) = (gateway.clone(), acceptor.clone(), slots.clone());
                let given_up = arriving.next(&gateway.stop);
                gateway.dispatcher.tasks.clone().spawn(async move {
                    let is_secure = acceptor.is_some();
                    let opening = async { Some((open(stream, acceptor).await?, slots.acquire_owned().await.ok()?)) };
                    if let Some((wire, slot)) = given_up.run_until_cancelled(opening).await.flatten() {
                        connection(gateway, wire, Arrival { peer: peer.ip(), is_secure }).await;
                        drop(slot);
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The newest connections, of which those that are still on their way can be given up.
struct Arriving(VecDeque<CancellationToken>);

impl Arriving {
    /// Takes one more, for which the oldest gives way; the token tells when this one has to, or all.
    fn next(&mut self, stop: &CancellationToken) -> CancellationToken {
        if self.0.len() == MAX_ARRIVING
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.cancel();
        }
        let given_up = stop.child_token();
        self.0.push_back(given_up.clone());
        given_up
    }
}

/// A connection that is ready for requests; `None` when it could not be secured.
async fn open(stream: TcpStream, acceptor: Option<Arc<Acceptor>>) -> Option<Wire> {
    // Neither option is vital: without them half-open peers only live longer and small answers wait for the peer's acknowledgement.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, TCP_USER_TIMEOUT_MS);
    let Some(acceptor) = acceptor else { return Some(Wire::Plain(stream)) };
    match acceptor.accept(stream).await {
        Ok(secured) => Some(Wire::Secure(Box::new(secured))),
        Err(error) => {
            // Browsers leave here when somebody has not accepted the certificate yet.
            tracing::debug!(%error, "a connection could not be secured");
            None
        }
    }
}

async fn connection(gateway: Arc<Gateway>, wire: Wire, arrival: Arrival) {
    let stop = gateway.stop.clone();
    let service = service_fn(move |request| {
        let gateway = gateway.clone();
        async move { Ok::<_, Infallible>(routes::handle(gateway, arrival, request).await) }
    });
    // Without `pipeline_flush`: it holds an answer back while anything follows the request, be it only a line break.
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(wire), service)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_on_its_way_gives_way() {
        let (stop, mut arriving) = (CancellationToken::new(), Arriving(VecDeque::new()));
        let tokens: Vec<_> = (0..MAX_ARRIVING + 2).map(|_| arriving.next(&stop)).collect();
        let given_up = || tokens.iter().take_while(|token| token.is_cancelled()).count();
        assert_eq!(given_up(), 2);
        assert!(!tokens[2].is_cancelled());
        stop.cancel();
        assert_eq!(given_up(), tokens.len());
    }
}
