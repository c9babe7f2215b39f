//! Where the address of a webcam leads, seen from this machine. Source: wire/2-files-jobs.md section 7.
//!
//! Clients see the machine from outside, we from within: an address of this machine where something listens on all interfaces becomes
//! loopback, which works whatever the network does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A complete address, cut into what matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    scheme: String,
    /// `user:password@`, or empty.
    credentials: String,
    /// Name or number, without brackets.
    pub(super) host: String,
    /// Given, or the usual one of the scheme.
    pub(super) port: Option<u16>,
    /// Path, query and fragment as they were written.
    rest: String,
}

impl Address {
    /// Cuts a complete address; `None` when it is none.
    pub(super) fn parse(address: &str) -> Option<Self> {
        let url = outbound::parse_url(address).ok()?;
        let (scheme, after) = address.split_once("://")?;
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (authority, rest) = after.split_at(end);
        let credentials = authority.rfind('@').map_or("", |at| &authority[..=at]);
        let usual = match scheme.to_ascii_lowercase().as_str() {
            "http" => Some(80),
            "https" => Some(443),
            "rtsp" => Some(554),
            _ => None,
        };
        Some(Self {
            scheme: scheme.to_owned(),
            credentials: credentials.to_owned(),
            host: url.host_str()?.trim_matches(['[', ']']).to_owned(),
            port: url.port().or(usual),
            rest: rest.to_owned(),
        })
    }

    /// True when only programs on this machine can open it.
    pub(super) fn is_at_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse().is_ok_and(|host: IpAddr| host.is_loopback())
    }

    /// The same address at loopback, when something listens there on all interfaces.
    pub(super) fn at_loopback(&self, listening: Listening) -> Option<String> {
        let host: IpAddr = match listening {
            Listening::OnAllV4 => Ipv4Addr::LOCALHOST.into(),
            Listening::OnAllV6 => Ipv6Addr::LOCALHOST.into(),
            Listening::Otherwise => return None,
        };
        let host = if host.is_ipv6() { format!("[{host}]") } else { host.to_string() };
        Some(format!("{}://{}{host}:{}{}", self.scheme, self.credentials, self.port?, self.rest))
    }
}

/// On which addresses of this machine something listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listening {
    /// On all of IPv4.
    OnAllV4,
    /// On all of IPv6.
    OnAllV6,
    /// On some, or nowhere.
    Otherwise,
}

/// Reads it from the kernel's tables of TCP sockets (`/proc/net/tcp` and `/proc/net/tcp6`).
pub(super) fn listening(tcp4: &str, tcp6: &str, port: u16) -> Listening {
    if has_listener(tcp4, &format!("{:08}:{port:04X}", 0)) {
        Listening::OnAllV4
    } else if has_listener(tcp6, &format!("{:032}:{port:04X}", 0)) {
        Listening::OnAllV6
    } else {
        Listening::Otherwise
    }
}

/// Lines are `sl local_address rem_address st …`; state 0A listens.
fn has_listener(table: &str, local: &str) -> bool {
    table.lines().any(|line| {
        let mut fields = line.split_whitespace();
        fields.nth(1) == Some(local) && fields.nth(1) == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_rest_stays_as_it_was_written() {
        let local = |address: &str, listening| Address::parse(address).unwrap().at_loopback(listening);
        assert_eq!(local("http://Printer.local/a b?x=%20#f", Listening::OnAllV4).unwrap(), "http://127.0.0.1:80/a b?x=%20#f");
        assert_eq!(local("rtsp://u:p@h/1", Listening::OnAllV6).unwrap(), "rtsp://u:p@[::1]:554/1");
        assert_eq!(local("https://[fd00::1]:8443?x", Listening::OnAllV4).unwrap(), "https://127.0.0.1:8443?x");
        assert_eq!(local("webrtc://h/1", Listening::OnAllV4), None, "the port is not known");
        assert_eq!(local("http://h/", Listening::Otherwise), None);
        assert_eq!(Address::parse("http://[fd00::1]/").unwrap().host, "fd00::1");
    }

    #[test]
    fn the_tables_of_the_kernel() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n";
        let v4 = format!(
            "{head}   0: 0100007F:1F90 00000000:0000 0A 0\n   1: 00000000:0050 00000000:0000 0A 0\n   2: 00000000:0051 00000000:0000 01 0\n"
        );
        let v6 = format!("{head}   0: 00000000000000000000000000000000:1F91 00000000000000000000000000000000:0000 0A 0\n");
        assert_eq!(listening(&v4, &v6, 80), Listening::OnAllV4);
        assert_eq!(listening(&v4, &v6, 8081), Listening::OnAllV6);
        assert_eq!(listening(&v4, &v6, 8080), Listening::Otherwise, "only loopback");
        assert_eq!(listening(&v4, &v6, 81), Listening::Otherwise, "connected, not listening");
    }

    proptest! {
        #[test]
        fn any_text_is_an_address_or_not(text in "(http://)?.{0,60}", port in any::<u16>()) {
            if let Some(address) = Address::parse(&text) {
                let _ = address.at_loopback(listening(&text, &text, port));
            }
        }
    }
}
