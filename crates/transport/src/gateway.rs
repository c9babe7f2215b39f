//! What all transports share: where calls go, who is let in, and what is running.

use std::net::IpAddr;
use std::sync::Arc;

use access::{Accounts, Facts, Gate, Shown};
use http::HeaderMap;
use rpc::pictures::Cameras;
use rpc::transfer::FileTransfer;
use rpc::{Connections, Dispatcher};
use tokio_util::sync::CancellationToken;

use crate::bridge::BridgeTarget;
use crate::http::{Page, Site, query_value};

/// How the edge behaves; from `[server]`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Prefix of every route, without slashes at its ends; empty for none.
    pub route_prefix: String,
    /// Websockets, primary and bridge together, that may be open at once.
    pub max_websockets: usize,
    /// Port to which requests that are not secured are sent, if they come from another machine.
    pub https_instead: Option<u16>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { route_prefix: String::new(), max_websockets: 500, https_instead: None }
    }
}

/// Everything that a transport needs.
pub struct Gateway {
    /// Calls operations.
    pub dispatcher: Arc<Dispatcher>,
    /// The persistent connections.
    pub connections: Arc<Connections>,
    /// Decides who is let in by address.
    pub gate: Gate,
    /// Decides who is let in by credentials.
    pub accounts: Arc<Accounts>,
    /// Uploads and downloads.
    pub files: Arc<dyn FileTransfer>,
    /// Pictures of cameras.
    pub cameras: Arc<dyn Cameras>,
    /// Where bridge websockets lead.
    pub bridge: BridgeTarget,
    /// Options.
    pub settings: Settings,
    /// Ends listeners and connections.
    pub stop: CancellationToken,
    /// What a browser gets that opens `/`, when no front end is configured or it cannot be read.
    pub page: Page,
    /// Description of the device for discovery by UPnP, when that is enabled.
    pub description: Option<String>,
    /// The front end of a folder.
    pub site: Option<Site>,
}

impl Gateway {
    /// Who sent a request with these headers and this query string. Uses a oneshot token up.
    #[must_use]
    pub fn admit(&self, peer: IpAddr, headers: &HeaderMap, query: &str) -> access::Admission {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let forwarded: Vec<&str> = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok()).collect();
        let joined = forwarded.join(",");
        let by_address = self.gate.admit(&Facts {
            peer,
            forwarded_for: headers.contains_key("x-forwarded-for").then_some(joined.as_str()),
            real_ip: single(headers, "x-real-ip"),
            has_forwarded: headers.contains_key("forwarded"),
            // An origin that is no text is nobody's origin, and must not count as absent.
            origin: headers.get("origin").map(|value| value.to_str().unwrap_or("null")),
            host: text("host"),
            fetch_site: text("sec-fetch-site"),
            referer: text("referer"),
            user_agent: text("user-agent"),
        });
        // Bytes that are no text are there, but fit nothing.
        let shown = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
        let authorization = headers.get("authorization").map(|value| String::from_utf8_lossy(value.as_bytes()));
        let [access_token, oneshot] = ["access_token", "token"].map(|name| query_value(query, name));
        let admitted = self.accounts.admit(
            by_address,
            &Shown {
                authorization: authorization.as_deref(),
                access_token_header: shown("x-access-token"),
                access_token_query: access_token.as_deref(),
                oneshot: oneshot.as_deref(),
                api_key: shown("x-api-key"),
            },
        );
        self.gate.explain(&admitted, text("host"));
        admitted
    }
}

/// A header that must not stand twice; one that does, or that is no text, is there but says nothing.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    Some(if values.next().is_some() { "given twice" } else { first.to_str().unwrap_or("unreadable") })
}
