//! The client: one for the whole server.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, LOCATION, PROXY_AUTHORIZATION};
use parking_lot::RwLock;
use reqwest::Url;
use tokio::sync::{OnceCell, Semaphore};

use crate::{Incoming, OutboundError, Reach, Request, Response, own, redirect};

/// Time to reach the other side.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Exchanges that are under way at one time; further ones wait for their turn.
pub const MAX_EXCHANGES: usize = 8;

/// Connections that are kept for later, per host: as many as were in use at the same moment. Several devices can be behind one address.
const KEPT_CONNECTIONS: usize = 16;

/// How long connections are kept for later.
const KEEP_FOR: Duration = Duration::from_secs(30);

/// Sends requests. Clones share connections and limits. Costs nothing until it is used.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    user_agent: String,
    /// Made at first use, because it reads the certificates of the system.
    http: Arc<OnceCell<reqwest::Client>>,
    turns: Arc<Semaphore>,
    own_ports: Arc<RwLock<Vec<u16>>>,
}

impl Client {
    /// A client that calls itself `user_agent`.
    #[must_use]
    pub fn new(user_agent: &str) -> Self {
        let turns = Arc::new(Semaphore::new(MAX_EXCHANGES));
        Self { inner: Arc::new(Inner { user_agent: user_agent.to_owned(), http: Arc::default(), turns, own_ports: Arc::default() }) }
    }

    /// A client that shares connections with this one but has its own number of exchanges at one time, so that neither waits for the other: for
    /// whatever talks to something that may never answer.
    #[must_use]
    pub fn lane(&self, exchanges: usize) -> Self {
        let Inner { user_agent, http, own_ports, .. } = &*self.inner;
        let turns = Arc::new(Semaphore::new(exchanges));
        Self { inner: Arc::new(Inner { user_agent: user_agent.clone(), http: http.clone(), turns, own_ports: own_ports.clone() }) }
    }

    /// Says on which ports this server listens, for [`Reach::NotOurselves`].
    pub fn set_own_ports(&self, ports: Vec<u16>) {
        *self.inner.own_ports.write() = ports;
    }

    /// Sends a request, follows redirects and reads the whole answer. Any status is an answer, not an error.
    ///
    /// # Errors
    /// When there is no complete answer within the limits of the request.
    pub async fn send(&self, request: Request) -> Result<Response, OutboundError> {
        let (timeout, limit) = (request.timeout, request.max_body);
        let exchange = async { self.exchange(request).await?.whole(limit).await };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(OutboundError::Timeout(timeout)),
        }
    }

    /// Sends a request, follows redirects and gives the answer when its head is there, within the time of the request. The body may be endless.
    ///
    /// # Errors
    /// When no answer begins within the limits of the request.
    pub async fn open(&self, request: Request) -> Result<Incoming, OutboundError> {
        let timeout = request.timeout;
        match tokio::time::timeout(timeout, self.exchange(request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(OutboundError::Timeout(timeout)),
        }
    }

    async fn exchange(&self, mut request: Request) -> Result<Incoming, OutboundError> {
        let closed = |_| OutboundError::Connect("the client is closed".to_owned());
        let turn = self.inner.turns.clone().acquire_owned().await.map_err(closed)?;
        let http = self.http().await?;
        let mut asked = vec![request.url.clone()];
        loop {
            if request.reach == Reach::NotOurselves {
                self.refuse_ourselves(&request.url).await?;
            }
            let sent = http
                .request(request.method.clone(), request.url.clone())
                .headers(request.headers.clone())
                .body(request.body.clone())
                .send()
                .await
                .map_err(|error| OutboundError::from_library(&error))?;
            let location = sent.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            match redirect::next(&asked, &request.method, sent.status().as_u16(), location, request.max_redirects)? {
                None => return Ok(Incoming::new(sent, request.url, turn)),
                Some(step) => {
                    follow(&mut request, &step);
                    asked.push(step.url);
                }
            }
        }
    }

    async fn http(&self) -> Result<reqwest::Client, OutboundError> {
        let (user_agent, made) = (self.inner.user_agent.clone(), self.inner.http.clone());
        if let Some(http) = made.get() {
            return Ok(http.clone());
        }
        // Made once, however many ask at the same time: it reads some hundred certificates from the disk. It goes on when the caller's time is over,
        // so that the next one finds it: on a busy board that may take longer than a short limit.
        let making = tokio::spawn(async move {
            let build = async || tokio::task::spawn_blocking(move || build(&user_agent)).await.map_err(|error| error.to_string());
            let build = async || build().await?.map_err(|error| error.to_string());
            made.get_or_try_init(build).await.cloned()
        });
        making.await.map_err(|error| error.to_string()).flatten().map_err(OutboundError::Connect)
    }

    async fn refuse_ourselves(&self, url: &Url) -> Result<(), OutboundError> {
        let port = url.port_or_known_default().unwrap_or(0);
        if !self.inner.own_ports.read().contains(&port) {
            return Ok(());
        }
        let host = url.host_str().unwrap_or("").trim_matches(['[', ']']);
        let addresses: Vec<IpAddr> = match host.parse() {
            Ok(address) => vec![address],
            Err(_) => {
                let found = tokio::net::lookup_host((host, port)).await.map_err(|error| OutboundError::Connect(error.to_string()))?;
                found.map(|address| address.ip()).collect()
            }
        };
        if addresses.into_iter().any(own::is_own) { Err(OutboundError::Ourselves) } else { Ok(()) }
    }
}

fn build(user_agent: &str) -> Result<reqwest::Client, reqwest::Error> {
    // Another part of the process may have chosen it already: the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        reqwest::Client::builder()
            .user_agent(user_agent)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(KEPT_CONNECTIONS)
            .pool_idle_timeout(KEEP_FOR)
    };
    // A machine without certificates can still talk to its neighbours over HTTP.
    builder().build().or_else(|_| builder().tls_certs_only([]).build())
}

/// Turns a request into the one that a redirect asks for.
fn follow(request: &mut Request, step: &redirect::Step) {
    request.method = step.method.clone();
    request.url = step.url.clone();
    if !step.keeps_body {
        request.body = Bytes::new();
        [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING].iter().for_each(|name| drop(request.headers.remove(name)));
    }
    if !step.keeps_credentials {
        [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE].iter().for_each(|name| drop(request.headers.remove(name)));
    }
}

#[cfg(test)]
mod tests;
