//! The decision: from what is known of a request to who sent it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use rpc::{Identity, Peer};
use runtime::LogThrottle;

use crate::names::Names;
use crate::network::{Networks, plain};
use crate::origin::{self, Origins};

/// Time between two lines of the log about the same name.
const EXPLAINED_EVERY: Duration = Duration::from_secs(24 * 3600);

/// Longest `Host` that the log explains in bytes: the longest name of the DNS with a port.
const MAX_EXPLAINED: usize = 260;

/// Options of `[authorization]` that this crate uses.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Addresses, networks and host names that need no credentials.
    pub trusted_clients: Vec<String>,
    /// Pages of other origins that may use the API.
    pub cors_domains: Vec<String>,
    /// Proxies whose forwarded addresses are believed.
    pub trusted_proxies: Vec<String>,
    /// True when loopback counts as a proxy (usual installations of the incumbent have one there).
    pub loopback_is_proxy: bool,
    /// The name of this machine. One with a domain is ours although that domain is a public one: whoever runs the machine gave it.
    pub own_name: String,
}

/// What is known of a request before it is answered.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The peer of the TCP connection.
    pub peer: IpAddr,
    /// Header `X-Forwarded-For`, all values joined by commas.
    pub forwarded_for: Option<&'a str>,
    /// Header `X-Real-Ip`.
    pub real_ip: Option<&'a str>,
    /// True when the standard header `Forwarded` is there.
    pub has_forwarded: bool,
    /// Header `Origin`.
    pub origin: Option<&'a str>,
    /// Header `Host`.
    pub host: Option<&'a str>,
    /// Header `Sec-Fetch-Site`.
    pub fetch_site: Option<&'a str>,
    /// Header `Referer`.
    pub referer: Option<&'a str>,
    /// Header `User-Agent`.
    pub user_agent: Option<&'a str>,
}

impl Facts<'_> {
    fn is_browser(&self) -> bool {
        self.user_agent.is_some_and(|agent| agent.starts_with("Mozilla/"))
    }

    fn has_page_of_ours(&self) -> bool {
        let same_host = |url: &str| self.host.is_some() && origin::authority(url).and_then(|rest| rest.split('/').next()) == self.host;
        self.origin.is_some_and(same_host) || self.referer.is_some_and(same_host) || matches!(self.fetch_site, Some("same-origin" | "none"))
    }
}

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// Who.
    pub identity: Identity,
    /// The client's address: the peer, or what a configured proxy says.
    pub address: IpAddr,
    /// True when the owner declared the address trusted.
    pub is_trusted_address: bool,
    /// True when a trusted address is not enough, because the server was asked under a name that somebody else may own.
    pub is_foreign_name: bool,
    /// True when a page of another, not allowed origin made the browser send it.
    pub cross_site: bool,
    /// True when a browser sent it and nothing shows that a page of ours made it do so. Browsers name the page of a GET only to secure servers,
    /// so to a plain one an image on any page looks like this.
    pub unproven_page: bool,
    /// True when the answer may be read by the page that asked.
    pub cors_allowed: bool,
}

impl Admission {
    /// Where the caller sits.
    #[must_use]
    pub fn peer(&self) -> Peer {
        Peer { address: self.address, is_trusted: self.is_trusted_address }
    }
}

/// Decides who sent a request.
#[derive(Debug)]
pub struct Gate {
    trusted: Networks,
    names: Arc<Names>,
    proxies: Networks,
    origins: Origins,
    own_name: String,
    explained: LogThrottle<String>,
}

impl Gate {
    /// Reads the settings; entries that cannot be used become warnings.
    #[must_use]
    pub fn new(settings: &Settings) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let (trusted, names) = Networks::parse_with_names("trusted_clients", &settings.trusted_clients, &mut warnings);
        let names = Arc::new(Names::new(names, &mut warnings));
        let mut proxies = Networks::parse("trusted_proxies", &settings.trusted_proxies, &mut warnings);
        if settings.loopback_is_proxy {
            proxies.push(IpNet::from(IpAddr::from(Ipv4Addr::LOCALHOST)));
            proxies.push(IpNet::from(IpAddr::from(Ipv6Addr::LOCALHOST)));
            // Not a warning of server info: nothing is wrong, and front ends show those until they are gone.
            tracing::info!(
                "loopback counts as a proxy, because the configuration in use is a moonraker.conf without [authorization] trusted_proxies"
            );
        }
        let origins = Origins::parse(&settings.cors_domains, &mut warnings);
        let (own_name, explained) = (settings.own_name.clone(), LogThrottle::new(EXPLAINED_EVERY));
        (Self { trusted, names, proxies, origins, own_name, explained }, warnings)
    }

    /// The trusted clients that are given by name; somebody has to keep them resolved.
    #[must_use]
    pub fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// Decides who sent a request.
    #[must_use]
    pub fn admit(&self, facts: &Facts<'_>) -> Admission {
        let peer = plain(facts.peer);
        let claims = facts.forwarded_for.is_some() || facts.real_ip.is_some() || facts.has_forwarded;
        let by_proxy = claims && self.proxies.contains(peer);
        let claimed = if by_proxy { self.claimed_address(facts) } else { None };
        let address = claimed.unwrap_or(peer);
        // A claim that nobody vouches for grants nothing and takes away the trust in the peer's own address.
        let address_counts = !claims || claimed.is_some();

        let same_origin = facts.origin.is_none_or(|origin| facts.host.is_some() && origin::authority(origin) == facts.host);
        let cors_allowed = facts.origin.is_some_and(|origin| self.allows_origin(origin));
        let foreign_page = !same_origin && !cors_allowed;
        // A name that anybody can register may have been pointed at us by the page behind it (DNS rebinding): same origin, but not ours.
        let ours = facts.host.is_none_or(|host| self.is_our_name(host));
        let is_trusted_address = address_counts && (self.trusted.contains(address) || self.names.contains(address));
        let by_address = is_trusted_address && !foreign_page;
        Admission {
            identity: if by_address && ours { Identity::Trusted } else { Identity::Stranger },
            address,
            is_trusted_address,
            is_foreign_name: by_address && !ours,
            unproven_page: facts.is_browser() && !facts.has_page_of_ours() && !cors_allowed,
            cross_site: foreign_page || (facts.fetch_site == Some("cross-site") && !cors_allowed),
            cors_allowed,
        }
    }

    /// Says in the log why a caller from a trusted address stayed a stranger because of the name in `Host`; nobody could guess that from a 401.
    /// Once a day for each name, as a page that points names at us can make up many. Gives true when it said so.
    pub fn explain(&self, admitted: &Admission, host: Option<&str>) -> bool {
        let Some(host) = host.filter(|host| host.len() <= MAX_EXPLAINED) else { return false };
        let is_news = admitted.is_foreign_name && admitted.identity == Identity::Stranger && self.explained.allow(host.to_owned());
        if is_news {
            tracing::warn!(
                address = %admitted.address,
                "under the name '{host}' a trusted address needs a login, because somebody else may own that name and point it here; if it is yours, add '*://{host}' to [authorization] cors_domains"
            );
        }
        is_news
    }

    /// True for a `Host` that nobody outside can own, for the name of this machine, and for one that the owner listed in `cors_domains`.
    fn is_our_name(&self, host: &str) -> bool {
        origin::is_local_name(host)
            || origin::without_port(host).eq_ignore_ascii_case(&self.own_name)
            || ["http", "https"].iter().any(|scheme| self.origins.allows(&format!("{scheme}://{host}")))
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let literal = || origin::literal_address(origin).is_some_and(|address| self.trusted.contains(address));
        self.origins.allows(origin) || (!self.origins.is_empty() && literal())
    }

    /// True for a configured proxy.
    #[must_use]
    pub fn is_proxy(&self, peer: IpAddr) -> bool {
        self.proxies.contains(peer.to_canonical())
    }

    /// The client behind our proxies, by `X-Forwarded-For` or `X-Real-Ip`. Where both are there they must agree: a proxy that sets one of them
    /// may pass on what the client wrote into the other.
    fn claimed_address(&self, facts: &Facts<'_>) -> Option<IpAddr> {
        let real = facts.real_ip.map(|real| real.trim().parse().ok().map(plain));
        let forwarded = facts.forwarded_for.map(|list| self.forwarded(list));
        match (real, forwarded) {
            (Some(real), Some(forwarded)) => real.filter(|real| Some(*real) == forwarded),
            (one, other) => one.or(other).flatten(),
        }
    }

    /// The last forwarded address that is no proxy of ours, because every proxy writes at the end who asked it. Where all are proxies, the first one if
    /// it is of this machine: a program here asked. Nobody else brings such a list about, as his own address ends it; behind a proxy that others
    /// reach through the address of a third one, the first may be anybody.
    fn forwarded(&self, list: &str) -> Option<IpAddr> {
        let mut first = None;
        for hop in list.rsplit(',') {
            let hop = plain(hop.trim().parse().ok()?);
            if !self.proxies.contains(hop) {
                return Some(hop);
            }
            first = Some(hop);
        }
        first.filter(IpAddr::is_loopback)
    }
}

#[cfg(test)]
mod tests;
