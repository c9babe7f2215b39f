//! Where a device in the network is: the beginning of all its addresses.

use std::net::Ipv6Addr;

use outbound::parse_url;

config::choices! {
    /// Schemes of addresses.
    pub enum Protocol {
        /// Without TLS.
        Http = "http",
        /// With TLS; certificates are verified.
        Https = "https",
    }
}

const EXPECTED: &str = "expected a name or an address, also with port or path, without `http://`";

/// Scheme, host, port and the path that all requests begin with, without a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base(String);

impl Base {
    /// `address` may hold a port, a path, and an IPv6 address with or without brackets.
    pub(crate) fn new(address: &str, protocol: Protocol, port: Option<u16>) -> Result<Self, String> {
        let (host, path) = address.split_once('/').unwrap_or((address, ""));
        if host.is_empty() || host.contains(['@', '?', '#', '\\', '%']) || path.contains(['?', '#']) || path.starts_with('/') {
            return Err(EXPECTED.to_owned());
        }
        let host = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() };
        let mut url = parse_url(&format!("{}://{host}/", protocol.as_str())).map_err(|error| format!("{EXPECTED}: {error}"))?;
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        if !has_port && url.set_port(port).is_err() {
            return Err(EXPECTED.to_owned());
        }
        url.set_path(path);
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// The complete address of a path with query.
    pub(crate) fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// The same without scheme and host.
    pub(crate) fn path(&self, path: &str) -> String {
        let before = self.0.splitn(4, '/').nth(3).map(|before| format!("/{before}")).unwrap_or_default();
        before + path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_carry_ports_paths_and_ipv6() {
        let base = |address: &str, port| Base::new(address, Protocol::Http, port).map(|base| base.0);
        for (address, port, expected) in [
            ("lamp.local", None, "http://lamp.local"),
            ("lamp.local", Some(8080), "http://lamp.local:8080"),
            ("lamp.local:81", Some(8080), "http://lamp.local:81"),
            ("lamp.local:80", Some(8080), "http://lamp.local"),
            ("fe80::1", Some(81), "http://[fe80::1]:81"),
            ("[fe80::1]:82", None, "http://[fe80::1]:82"),
            ("hub/api 1/", None, "http://hub/api%201"),
        ] {
            assert_eq!(base(address, port).as_deref(), Ok(expected));
        }
        for bad in ["", "/x", "http://lamp", "user@lamp", "lamp?x", "lamp/a?b", "la mp", "lamp:99999", "[::", "l\u{e4}mp", "l%41mp"] {
            assert!(base(bad, None).is_err(), "{bad:?}");
        }
        assert_eq!(Base::new("a", Protocol::Https, Some(443)).unwrap().join("/x?y"), "https://a/x?y");
        let paths = ["a", "a/b/c"].map(|address| Base::new(address, Protocol::Http, None).unwrap().path("/x?y"));
        assert_eq!(paths, ["/x?y", "/b/c/x?y"]);
    }

    proptest! {
        #[test]
        fn what_is_taken_can_be_asked(address in "[a-z0-9.:/@?#\\[\\] %-]{0,24}|.{0,12}", port: Option<u16>) {
            if let Ok(base) = Base::new(&address, Protocol::Http, port) {
                let url = outbound::Request::get(&base.join("/x?y=1"));
                prop_assert!(url.is_ok(), "{address:?}: {url:?}");
                prop_assert!(base.path("/x?y=1").starts_with('/'));
            }
        }
    }
}
