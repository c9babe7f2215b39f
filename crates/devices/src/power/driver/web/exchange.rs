//! Requests to one device: authentication, repeated attempts, and answers that are none.

use std::time::Duration;

use data_encoding::BASE64;
use outbound::{Client, OutboundError, Request, Response, header};
use serde_json::Value;

use super::digest::{Challenge, Digest};
use super::{Ask, Fault};
use crate::base::Base;

/// Attempts of one request to a power device.
const ATTEMPTS: u32 = 3;

/// Pause between attempts of a request to a power device.
const PAUSE: Duration = Duration::from_secs(1);

/// Time for one attempt of a request to a power device.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of an answer of a power device.
const MAX_ANSWER: usize = 256 * 1024;

/// How requests are authenticated. `Debug` hides it.
#[derive(Clone)]
pub(crate) enum Auth {
    /// Not at all, or within the address.
    None,
    /// A header that is always the same.
    Header(String),
    /// Digest with SHA-256.
    Digest(Digest),
}

impl Auth {
    /// Basic authentication, unless name or password is empty.
    pub(crate) fn basic(user: &str, password: &str) -> Self {
        if user.is_empty() || password.is_empty() {
            return Self::None;
        }
        Self::Header(format!("Basic {}", BASE64.encode(format!("{user}:{password}").as_bytes())))
    }

    pub(crate) fn bearer(token: &str) -> Self {
        Self::Header(format!("Bearer {token}"))
    }
}

/// A way to one device; it has its own place among the requests of the server, so that it keeps nobody waiting.
pub(crate) struct Exchange {
    client: Client,
    auth: Auth,
}

impl Exchange {
    pub(crate) fn new(client: &Client, auth: Auth) -> Self {
        Self { client: client.lane(1), auth }
    }

    /// The answer to a request, as JSON.
    pub(crate) async fn json(&mut self, base: &Base, ask: &Ask) -> Result<Value, Fault> {
        let mut attempt = 1;
        loop {
            let outcome = self.once(base, ask).await;
            let (fault, may_pass) = match outcome {
                Ok(response) if response.is_success() => return read_json(&response.body),
                Ok(response) => (failing_status(response.status), response.status >= 500),
                Err(error) => (reason(&error), error.is_passing()),
            };
            if !may_pass || attempt >= ATTEMPTS {
                return Err(fault);
            }
            attempt += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn once(&mut self, base: &Base, ask: &Ask) -> Result<Response, OutboundError> {
        let request = request(base, ask)?;
        let uri = &base.path(&ask.path);
        let sent = match &mut self.auth {
            Auth::None => request.clone(),
            Auth::Header(value) => request.clone().header(header::AUTHORIZATION.as_str(), value)?,
            Auth::Digest(digest) => match digest.answer(ask.method.as_str(), uri) {
                Some(value) => request.clone().header(header::AUTHORIZATION.as_str(), &value)?,
                None => request.clone(),
            },
        };
        let response = self.client.send(sent).await?;
        let Auth::Digest(digest) = &mut self.auth else { return Ok(response) };
        let challenge = response.header(&header::WWW_AUTHENTICATE).filter(|_| response.status == 401).and_then(Challenge::parse);
        let Some(challenge) = challenge else { return Ok(response) };
        digest.challenged(challenge);
        match digest.answer(ask.method.as_str(), uri) {
            Some(value) => self.client.send(request.header(header::AUTHORIZATION.as_str(), &value)?).await,
            None => Ok(response),
        }
    }
}

fn request(base: &Base, ask: &Ask) -> Result<Request, OutboundError> {
    let request = Request::new(ask.method.clone(), &base.join(&ask.path))?.timeout(ATTEMPT_TIMEOUT).max_body(MAX_ANSWER).max_redirects(0);
    match &ask.body {
        Some(body) => Ok(request.header(header::CONTENT_TYPE.as_str(), "application/json")?.body(body.to_string())),
        None => Ok(request),
    }
}

fn read_json(body: &[u8]) -> Result<Value, Fault> {
    serde_json::from_slice(body).map_err(|_| {
        let is_page = body.trim_ascii_start().starts_with(b"<");
        Fault::new(match (body.is_empty(), is_page) {
            (true, _) => "the device answered with nothing",
            (_, true) => "the device answered with a web page instead of JSON",
            _ => "the answer of the device is no JSON",
        })
    })
}

/// Why a status is no success.
pub(crate) fn failing_status(status: u16) -> Fault {
    Fault::new(match status {
        401 | 403 => format!("the device refused the login (status {status})"),
        404 => "the device does not know the address that was asked (status 404)".to_owned(),
        _ => format!("the device answered with status {status}"),
    })
}

/// Why there is no answer, in words that fit a device.
pub(crate) fn reason(error: &OutboundError) -> Fault {
    match error {
        OutboundError::Redirect(_) => Fault::new("the device redirects to another address"),
        other => Fault::new(other),
    }
}
