//! Which addresses are this machine's own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

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
    fn loopback_is_own_and_addresses_for_documentation_are_not() {
        for own in ["127.0.0.1", "127.8.9.1", "::1", "0.0.0.0", "::ffff:127.0.0.1"] {
            assert!(is_own(own.parse().unwrap()), "{own}");
        }
        for foreign in ["192.0.2.1", "2001:db8::1", "224.0.0.1", "255.255.255.255"] {
            assert!(!is_own(foreign.parse().unwrap()), "{foreign}");
        }
    }
}
