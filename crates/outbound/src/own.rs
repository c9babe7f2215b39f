//! Which addresses are this machine's own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Interfaces with a shorter prefix stand for no local network, but for whatever is behind a tunnel.
const SHORTEST_PREFIX: u8 = 8;

/// True when `address` belongs to this machine. Asks the kernel, which answers at once and sends nothing.
#[must_use]
pub fn is_own(address: IpAddr) -> bool {
    let address = address.to_canonical();
    // Only own addresses can be bound. The unspecified one leads to this machine when something connects to it.
    address.is_loopback()
        || address.is_unspecified()
        || (!address.is_multicast() && !is_broadcast(address) && UdpSocket::bind((address, 0)).is_ok())
}

/// The kernel lets sockets be bound to broadcast addresses, too; only the general one can be told from the number.
fn is_broadcast(address: IpAddr) -> bool {
    address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// The address of this machine that `peer` sees. Sends nothing.
#[must_use]
pub fn address_towards(peer: SocketAddr) -> Option<IpAddr> {
    let any = if peer.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    source_to(SocketAddr::new(any, 0), peer).filter(|address| !address.is_unspecified())
}

/// The addresses of this machine's interfaces that others may reach: neither loopback nor such that hold on one cable only.
#[must_use]
pub fn addresses() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces.iter().filter(|interface| !interface.is_loopback() && !interface.is_link_local()).map(if_addrs::Interface::ip).collect()
}

/// A network in which this machine has an address: [`networks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: Ipv4Addr,
    prefix: u8,
}

impl Network {
    /// The network of `address` in which the first `prefix` bits are equal.
    #[must_use]
    pub fn of(address: Ipv4Addr, prefix: u8) -> Self {
        Self { address, prefix }
    }

    /// True for addresses in it.
    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        let differing = self.address.to_bits() ^ address.to_bits();
        differing.leading_zeros() >= u32::from(self.prefix)
    }
}

/// The networks of this machine's interfaces, IPv4 only.
#[must_use]
pub fn networks() -> Vec<Network> {
    let network = |interface: if_addrs::Interface| match interface.addr {
        if_addrs::IfAddr::V4(v4) => Some(Network::of(v4.ip, v4.prefixlen)),
        if_addrs::IfAddr::V6(_) => None,
    };
    let networks = if_addrs::get_if_addrs().unwrap_or_default().into_iter().filter_map(network);
    networks.filter(|network| network.prefix >= SHORTEST_PREFIX).collect()
}

fn source_to(from: SocketAddr, to: SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind(from).ok()?;
    // Connecting a datagram socket only chooses a route.
    socket.connect(to).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_what_shares_their_prefix() {
        let network = |prefix| Network::of(Ipv4Addr::new(100, 64, 3, 7), prefix);
        let cases =
            [(24, [100, 64, 3, 255], true), (24, [100, 64, 2, 255], false), (10, [100, 127, 0, 1], true), (10, [100, 128, 0, 1], false)];
        for (prefix, address, is_inside) in cases.into_iter().chain([(32, [100, 64, 3, 7], true), (32, [100, 64, 3, 6], false)]) {
            assert_eq!(network(prefix).contains(address.into()), is_inside, "{address:?}/{prefix}");
        }
        assert!(networks().iter().all(|network| network.prefix >= SHORTEST_PREFIX));
    }

    #[test]
    fn loopback_is_own_and_addresses_for_documentation_are_not() {
        for own in ["127.0.0.1", "127.8.9.1", "::1", "0.0.0.0", "::ffff:127.0.0.1"] {
            assert!(is_own(own.parse().unwrap()), "{own}");
        }
        for foreign in ["192.0.2.1", "2001:db8::1", "224.0.0.1", "255.255.255.255"] {
            assert!(!is_own(foreign.parse().unwrap()), "{foreign}");
        }
    }
}
