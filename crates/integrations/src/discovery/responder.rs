//! Answers questions of the simple service discovery protocol, and tells from time to time that we are there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use outbound::chance::below;
use outbound::own::{self, Network};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::ssdp::{self, Allowance, Device, MAX_MESSAGE};

/// Where questions are asked.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 255, 250), 1900);

/// Answers in one second at most.
pub const MAX_ANSWERS: u32 = 30;

/// Questions whose answers wait for their time.
pub const MAX_WAITING: usize = 32;

/// Pause between two announcements: at random between these.
const ANNOUNCE: std::ops::Range<Duration> = Duration::from_secs(300)..Duration::from_secs(600);

/// Pause before an announcement in a new network is said again: datagrams get lost there. Section 1.1.2 recommends to repeat them.
const AGAIN: Duration = Duration::from_secs(1);

/// Pause between two looks whether the machine has another address.
const LOOK: Duration = Duration::from_secs(30);

/// An answer that waits.
struct Waiting {
    due: Instant,
    to: SocketAddr,
    target: String,
}

/// Answers on one port.
pub(super) struct Responder {
    device: Device,
    port: u16,
    /// Path of our description.
    description: String,
    /// Where we are told of; `None` for wherever this machine has an address.
    fixed: Option<Vec<Ipv4Addr>>,
    /// Where we are.
    interfaces: Vec<Ipv4Addr>,
    /// Who sits beside us, whatever numbers that network has: public ones in universities, 100.64.0.0/10 of providers.
    networks: Vec<Network>,
    socket: UdpSocket,
}

impl Responder {
    /// Opens the port, for the given interfaces or all.
    ///
    /// # Errors
    /// When it cannot be had.
    pub(super) fn open(device: Device, port: u16, description: String, fixed: Option<Vec<Ipv4Addr>>) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        // Others on this machine answer, too.
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, GROUP.port()).into())?;
        // Otherwise it hears what others on this machine have joined.
        socket.set_multicast_all_v4(false)?;
        // Two hops, as section 1.1.2 recommends.
        socket.set_multicast_ttl_v4(2)?;
        Ok(Self {
            device,
            port,
            description,
            fixed,
            interfaces: Vec::new(),
            networks: Vec::new(),
            socket: UdpSocket::from_std(socket.into())?,
        })
    }

    /// Answers until `stop`, then says goodbye.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let start = Instant::now();
        let mut allowance = Allowance::new(MAX_ANSWERS);
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut announce_at = start + pause();
        let mut look_at = start;
        let mut datagram = [0; MAX_MESSAGE];
        loop {
            let next = waiting.iter().map(|waiting| waiting.due).min();
            tokio::select! {
                received = self.socket.recv_from(&mut datagram) => match received {
                    Ok((size, from)) => {
                        let search = ssdp::search(&datagram[..size]).filter(|search| is_near(from.ip(), &self.networks) && self.device.matches(&search.target));
                        if let Some(search) = search && waiting.len() < MAX_WAITING {
                            let delay = below(search.delay);
                            waiting.push(Waiting { due: Instant::now() + delay, to: from, target: search.target });
                        }
                    }
                    // An answer that could not be delivered is told here.
                    Err(error) => tracing::debug!(%error, "discovery"),
                },
                () = sleep_until(next.unwrap_or(announce_at)), if next.is_some() => {
                    let now = Instant::now();
                    for due in waiting.extract_if(.., |waiting| waiting.due <= now).collect::<Vec<_>>() {
                        self.answer(&due, &mut allowance, start.elapsed().as_secs()).await;
                    }
                }
                () = sleep_until(announce_at) => {
                    self.announce(&self.interfaces).await;
                    announce_at = Instant::now() + pause();
                }
                () = sleep_until(look_at) => {
                    let new = self.join_new();
                    if !new.is_empty() {
                        self.announce(&new).await;
                        announce_at = Instant::now() + AGAIN;
                    }
                    look_at = Instant::now() + LOOK;
                }
                () = stop.cancelled() => break,
            }
        }
        for interface in &self.interfaces {
            self.tell(*interface, self.device.goodbye()).await;
        }
    }

    async fn answer(&self, waiting: &Waiting, allowance: &mut Allowance, second: u64) {
        let Some(address) = own::address_towards(waiting.to) else { return };
        let is_told_there = |fixed: &Vec<Ipv4Addr>| as_v4(address).is_some_and(|address| fixed.contains(&address));
        if !self.fixed.as_ref().is_none_or(is_told_there) {
            return;
        }
        let answers = self.device.answers(&waiting.target, &self.location(address));
        if allowance.take(u32::try_from(answers.len()).unwrap_or(u32::MAX), second) {
            for answer in answers {
                let _ = self.socket.send_to(answer.as_bytes(), waiting.to).await;
            }
        }
    }

    /// Follows the addresses of this machine; gives those that are new.
    fn join_new(&mut self) -> Vec<Ipv4Addr> {
        self.networks = own::networks();
        let now = self.fixed.clone().unwrap_or_else(|| own::addresses().into_iter().filter_map(as_v4).collect());
        let new: Vec<Ipv4Addr> = now.iter().filter(|address| !self.interfaces.contains(address)).copied().collect();
        let mut joined = Vec::new();
        for interface in new {
            match self.socket.join_multicast_v4(*GROUP.ip(), interface) {
                // A second address of an interface is heard already.
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    tracing::debug!(%error, %interface, "questions cannot be heard on an interface; tried again");
                }
                _ => joined.push(interface),
            }
        }
        self.interfaces.retain(|interface| now.contains(interface));
        self.interfaces.extend(&joined);
        joined
    }

    async fn announce(&self, interfaces: &[Ipv4Addr]) {
        for interface in interfaces {
            self.tell(*interface, self.device.alive(&self.location(IpAddr::V4(*interface)))).await;
        }
    }

    async fn tell(&self, interface: Ipv4Addr, texts: Vec<String>) {
        if socket2::SockRef::from(&self.socket).set_multicast_if_v4(&interface).is_err() {
            return;
        }
        for text in texts {
            let _ = self.socket.send_to(text.as_bytes(), GROUP).await;
        }
    }

    fn location(&self, address: IpAddr) -> String {
        format!("http://{}{}", SocketAddr::new(address, self.port), self.description)
    }
}

/// Who asks from the local network. Answers are longer than questions and go where a datagram says that it came from.
fn is_near(address: IpAddr, networks: &[Network]) -> bool {
    let is_beside_us = |address| networks.iter().any(|network| network.contains(address));
    as_v4(address).is_some_and(|address| address.is_private() || address.is_link_local() || address.is_loopback() || is_beside_us(address))
}

pub(super) fn as_v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

fn pause() -> Duration {
    ANNOUNCE.start + below(ANNOUNCE.end - ANNOUNCE.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_answered_whatever_numbers_their_network_has() {
        let near = |address: &str, networks: &[Network]| is_near(address.parse().unwrap(), networks);
        for address in ["192.168.1.2", "10.0.0.1", "169.254.3.4", "127.0.0.1"] {
            assert!(near(address, &[]), "{address}");
        }
        let campus = Network::of(Ipv4Addr::new(100, 64, 3, 7), 16);
        assert!(near("100.64.200.1", &[campus]) && !near("100.64.200.1", &[]));
        assert!(!near("100.65.0.1", &[campus]) && !near("203.0.113.1", &[campus]) && !near("fe80::1", &[campus]));
    }
}
