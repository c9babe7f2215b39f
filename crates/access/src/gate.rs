//! The decision: from what is known of a request to who sent it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;
use rpc::{Identity, Peer};

use crate::names::Names;
use crate::network::{Networks, plain};
use crate::origin::{self, Origins};

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
        (Self { trusted, names, proxies, origins }, warnings)
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
        let trusted = is_trusted_address && !foreign_page && ours;
        Admission {
            identity: if trusted { Identity::Trusted } else { Identity::Stranger },
            address,
            is_trusted_address,
            unproven_page: facts.is_browser() && !facts.has_page_of_ours() && !cors_allowed,
            cross_site: foreign_page || (facts.fetch_site == Some("cross-site") && !cors_allowed),
            cors_allowed,
        }
    }

    /// True for a `Host` that nobody outside can own, and for one that the owner listed in `cors_domains`.
    fn is_our_name(&self, host: &str) -> bool {
        origin::is_local_name(host) || ["http", "https"].iter().any(|scheme| self.origins.allows(&format!("{scheme}://{host}")))
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

    /// The last forwarded address that is no proxy of ours, because every proxy writes at the end who asked it. Where all are proxies, the first one:
    /// a program on the machine of a proxy asked. Nobody else brings such a list about, as his own address ends it.
    fn forwarded(&self, list: &str) -> Option<IpAddr> {
        let mut client = None;
        for hop in list.rsplit(',') {
            let hop = plain(hop.trim().parse().ok()?);
            client = Some(hop);
            if !self.proxies.contains(hop) {
                break;
            }
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gate() -> Gate {
        let settings = Settings {
            trusted_clients: vec!["192.168.1.0/24".into(), "127.0.0.1".into()],
            cors_domains: vec!["http://good.page".into()],
            trusted_proxies: vec!["10.0.0.1".into()],
            loopback_is_proxy: false,
        };
        let (gate, warnings) = Gate::new(&settings);
        assert!(warnings.is_empty());
        gate
    }

    fn facts(peer: &str) -> Facts<'static> {
        Facts {
            peer: peer.parse().unwrap(),
            forwarded_for: None,
            real_ip: None,
            has_forwarded: false,
            origin: None,
            host: Some("printer:7125"),
            fetch_site: None,
            referer: None,
            user_agent: None,
        }
    }

    #[test]
    fn nobody_is_trusted_unless_configured() {
        let (gate, _) = Gate::new(&Settings::default());
        assert_eq!(gate.admit(&facts("127.0.0.1")).identity, Identity::Stranger);
    }

    /// Header forms against the decision: design.md section 7, forwarded addresses.
    #[test]
    fn forwarded_addresses_count_only_from_configured_proxies() {
        let gate = gate();
        let cases = [
            // peer, X-Forwarded-For, X-Real-Ip, trusted, address
            ("192.168.1.9", None, None, true, "192.168.1.9"),
            ("8.8.8.8", None, None, false, "8.8.8.8"),
            ("8.8.8.8", Some("192.168.1.9"), None, false, "8.8.8.8"),
            ("8.8.8.8", None, Some("127.0.0.1"), false, "8.8.8.8"),
            ("192.168.1.9", Some("192.168.1.10"), None, false, "192.168.1.9"),
            ("10.0.0.1", Some("192.168.1.9"), None, true, "192.168.1.9"),
            ("10.0.0.1", Some("192.168.1.9, 8.8.8.8"), None, false, "8.8.8.8"),
            ("10.0.0.1", Some("8.8.8.8, 192.168.1.9"), None, true, "192.168.1.9"),
            ("10.0.0.1", Some("192.168.1.9, 10.0.0.1"), None, true, "192.168.1.9"),
            ("10.0.0.1", Some("8.8.8.8"), Some("192.168.1.9"), false, "10.0.0.1"),
            ("10.0.0.1", Some("8.8.8.8, 192.168.1.9"), Some("192.168.1.9"), true, "192.168.1.9"),
            ("10.0.0.1", None, Some("192.168.1.9"), true, "192.168.1.9"),
            ("10.0.0.1", Some("rubbish"), None, false, "10.0.0.1"),
            ("10.0.0.1", Some(""), None, false, "10.0.0.1"),
            ("10.0.0.1", None, None, false, "10.0.0.1"),
            ("10.0.0.1", Some("10.0.0.1"), None, false, "10.0.0.1"),
            ("10.0.0.1", Some("192.168.1.9, 10.0.0.1"), Some("10.0.0.1"), false, "10.0.0.1"),
            ("::ffff:192.168.1.9", None, None, true, "192.168.1.9"),
        ];
        for (peer, forwarded_for, real_ip, trusted, address) in cases {
            let admission = gate.admit(&Facts { forwarded_for, real_ip, ..facts(peer) });
            assert_eq!(admission.identity == Identity::Trusted, trusted, "{peer} {forwarded_for:?} {real_ip:?}");
            assert_eq!(admission.address, address.parse::<IpAddr>().unwrap(), "{peer} {forwarded_for:?} {real_ip:?}");
        }
        assert_eq!(gate.admit(&Facts { has_forwarded: true, ..facts("192.168.1.9") }).identity, Identity::Stranger);
    }

    /// The proxy of usual installations: it stands on the same machine and sets both headers.
    fn behind_nginx() -> Gate {
        let trusted_clients = vec!["192.168.1.0/24".into(), "127.0.0.1".into(), "::1".into()];
        Gate::new(&Settings { trusted_clients, loopback_is_proxy: true, ..Settings::default() }).0
    }

    #[test]
    fn programs_on_the_machine_of_the_proxy_are_known_through_it() {
        let gate = behind_nginx();
        for (forwarded_for, real_ip, trusted) in [
            (Some("127.0.0.1"), Some("127.0.0.1"), true),
            (Some("127.0.0.1"), None, true),
            (None, Some("127.0.0.1"), true),
            (Some("::1"), Some("::1"), true),
            (Some("127.0.0.1, 127.0.0.1"), Some("127.0.0.1"), true),
            (Some("rubbish, 127.0.0.1"), Some("127.0.0.1"), false),
            (Some("8.8.8.8, 127.0.0.1"), Some("127.0.0.1"), false),
            (Some("8.8.8.8, 127.0.0.1"), None, false),
            (Some("127.0.0.1"), Some("8.8.8.8"), false),
        ] {
            let admission = gate.admit(&Facts { forwarded_for, real_ip, ..facts("127.0.0.1") });
            assert_eq!(admission.identity == Identity::Trusted, trusted, "{forwarded_for:?} {real_ip:?}");
        }
    }

    proptest! {
        /// Whatever somebody outside writes: the proxy adds his address, with or without the other header.
        #[test]
        fn a_forged_list_gains_nothing(
            forged in prop::collection::vec(prop_oneof![
                Just("127.0.0.1".to_owned()), Just("::1".to_owned()), Just("192.168.1.9".to_owned()), Just("::ffff:127.0.0.1".to_owned()), "[ -~]{0,20}",
            ], 0..5),
            has_real in any::<bool>(),
        ) {
            let list = format!("{}, 8.8.8.8", forged.join(","));
            let real_ip = has_real.then_some("8.8.8.8");
            let admission = behind_nginx().admit(&Facts { forwarded_for: Some(&list), real_ip, ..facts("127.0.0.1") });
            prop_assert_eq!(admission.identity, Identity::Stranger);
            prop_assert_eq!(admission.address, "8.8.8.8".parse::<IpAddr>().unwrap());
        }
    }

    #[test]
    fn names_that_anybody_can_register_carry_no_trust() {
        let gate = gate();
        let with = |host| gate.admit(&Facts { host: Some(host), ..facts("127.0.0.1") }).identity == Identity::Trusted;
        for ours in
            ["127.0.0.1:7125", "[::1]:7125", "localhost", "printer", "printer.local:7125", "printer.fritz.box", "PRINTER.LAN", "good.page"]
        {
            assert!(with(ours), "{ours}");
        }
        for foreign in ["evil.com", "printer.evil.com:7125", "local.evil.com", "127.0.0.1.evil.com", "evil.com."] {
            assert!(!with(foreign), "{foreign}");
        }
        let rebound = gate.admit(&Facts { host: Some("evil.com"), origin: Some("http://evil.com"), ..facts("127.0.0.1") });
        assert_eq!(rebound.identity, Identity::Stranger);
    }

    #[test]
    fn pages_of_other_origins_do_not_borrow_the_trust_of_an_address() {
        let gate = gate();
        let with = |origin| gate.admit(&Facts { origin: Some(origin), ..facts("127.0.0.1") });
        assert_eq!(with("http://printer:7125").identity, Identity::Trusted);
        assert_eq!(with("http://good.page").identity, Identity::Trusted);
        assert!(with("http://good.page").cors_allowed);
        assert_eq!(with("http://192.168.1.7").identity, Identity::Trusted, "an address that is trusted itself");
        let evil = with("http://evil.page");
        assert_eq!(evil.identity, Identity::Stranger);
        assert!(evil.cross_site && !evil.cors_allowed);
        assert_eq!(with("null").identity, Identity::Stranger);
        let image = gate.admit(&Facts { fetch_site: Some("cross-site"), ..facts("127.0.0.1") });
        assert!(image.cross_site && image.identity == Identity::Trusted);
    }

    #[test]
    fn a_browser_must_show_a_page_of_ours() {
        let gate = gate();
        let browser = Facts { user_agent: Some("Mozilla/5.0 (X11)"), ..facts("127.0.0.1") };
        assert!(gate.admit(&browser).unproven_page);
        assert!(gate.admit(&Facts { referer: Some("http://evil.page/printer:7125/"), ..browser }).unproven_page);
        for ours in [
            Facts { referer: Some("http://printer:7125/files/"), ..browser },
            Facts { origin: Some("http://printer:7125"), ..browser },
            Facts { origin: Some("http://good.page"), ..browser },
            Facts { fetch_site: Some("same-origin"), ..browser },
            Facts { user_agent: Some("python-requests/2"), ..browser },
        ] {
            assert!(!gate.admit(&ours).unproven_page, "{ours:?}");
        }
    }
}
