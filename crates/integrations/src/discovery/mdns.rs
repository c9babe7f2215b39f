//! Service discovery by multicast DNS: the services that we are found as.

use std::net::IpAddr;
use std::time::Duration;

use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};
use tokio_util::sync::CancellationToken;

/// The services: one that existing clients look for (wire/1-core.md section 8.12), and ours.
pub const SERVICES: [&str; 2] = ["_moonraker._tcp.local.", "_bowsprit._tcp.local."];

/// Time to say goodbye.
const GOODBYE_TIMEOUT: Duration = Duration::from_millis(500);

/// Longest name of an instance in bytes (RFC 6763 section 4.1.1).
const MAX_INSTANCE: usize = 63;

/// What is told.
#[derive(Debug, Clone)]
pub struct Announcement {
    /// Name of this server, such as `Bowsprit`.
    pub instance: String,
    /// Name of the machine.
    pub host: String,
    /// Port of HTTP.
    pub port: u16,
    /// Port of HTTPS, if there is one.
    pub https_port: Option<u16>,
    /// Id of the installation.
    pub uuid: String,
    /// Version that clients compare.
    pub version: String,
    /// Prefix of all routes.
    pub route_prefix: String,
}

impl Announcement {
    /// The records of one service. `addresses` are followed by the library when there are none.
    fn service(&self, service: &str, addresses: &[IpAddr]) -> Result<ServiceInfo, mdns_sd::Error> {
        let https_port = self.https_port.map(|port| port.to_string()).unwrap_or_default();
        let properties =
            [("uuid", self.uuid.as_str()), ("https_port", &https_port), ("version", &self.version), ("route_prefix", &self.route_prefix)];
        let info = ServiceInfo::new(service, &self.name(), &format!("{}.local.", self.host), addresses, self.port, &properties[..])?;
        Ok(if addresses.is_empty() { info.enable_addr_auto() } else { info })
    }

    fn name(&self) -> String {
        let mut name = format!("{} @ {}", self.instance, self.host);
        while name.len() > MAX_INSTANCE {
            name.pop();
        }
        name
    }
}

/// Tells of us; the library has a thread of its own for it.
pub(super) struct Mdns {
    daemon: ServiceDaemon,
    names: Vec<String>,
}

impl Mdns {
    /// Starts to tell, on the interfaces with these addresses or, when there are none, on all but loopback.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub(super) fn start(announcement: &Announcement, interfaces: &[IpAddr], port: u16) -> Result<Self, mdns_sd::Error> {
        let daemon = ServiceDaemon::new_with_port(port)?;
        Self::tell(&daemon, announcement, interfaces).map(|names| Self { daemon: daemon.clone(), names }).inspect_err(|_| {
            // Its thread does not end by itself.
            let _ = daemon.shutdown();
        })
    }

    /// The names of the services that are told.
    fn tell(daemon: &ServiceDaemon, announcement: &Announcement, interfaces: &[IpAddr]) -> Result<Vec<String>, mdns_sd::Error> {
        if interfaces.is_empty() {
            daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
        } else {
            daemon.disable_interface(IfKind::All)?;
            daemon.enable_interface(interfaces.iter().copied().map(IfKind::Addr).collect::<Vec<_>>())?;
        }
        let mut names = Vec::new();
        for service in SERVICES {
            let info = announcement.service(service, interfaces)?;
            names.push(info.get_fullname().to_owned());
            daemon.register(info)?;
        }
        Ok(names)
    }

    /// Waits for `stop`, then says goodbye.
    pub(super) async fn run(self, stop: CancellationToken) {
        stop.cancelled().await;
        let ending = tokio::task::spawn_blocking(move || {
            for name in &self.names {
                if let Ok(done) = self.daemon.unregister(name) {
                    let _ = done.recv_timeout(GOODBYE_TIMEOUT);
                }
            }
            let _ = self.daemon.shutdown();
        });
        let _ = ending.await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Instant;

    use mdns_sd::ServiceEvent;

    use super::*;

    fn announcement() -> Announcement {
        Announcement {
            instance: "Bowsprit".into(),
            host: "printer".into(),
            port: 7125,
            https_port: Some(7130),
            uuid: "0f1e2d3c".into(),
            version: "v1.2.3".into(),
            route_prefix: String::new(),
        }
    }

    #[test]
    fn records_as_clients_read_them() {
        let info = announcement().service(SERVICES[0], &[]).unwrap();
        assert_eq!(info.get_fullname(), "Bowsprit @ printer._moonraker._tcp.local.");
        assert_eq!((info.get_hostname(), info.get_port()), ("printer.local.", 7125));
        for (key, value) in [("uuid", "0f1e2d3c"), ("https_port", "7130"), ("version", "v1.2.3"), ("route_prefix", "")] {
            assert_eq!(info.get_property_val_str(key), Some(value), "{key}");
        }
        let plain = Announcement { https_port: None, ..announcement() };
        assert_eq!(plain.service(SERVICES[1], &[]).unwrap().get_property_val_str("https_port"), Some(""));
    }

    #[test]
    fn long_names_are_cut_between_letters() {
        let long = Announcement { host: "ü".repeat(60), ..announcement() };
        assert!(long.name().len() <= MAX_INSTANCE && long.name().starts_with("Bowsprit @ ü"));
    }

    /// Over the loopback interface and a port that nobody else uses for this.
    #[tokio::test]
    async fn we_are_found_and_leave() {
        const PORT: u16 = 45_353;
        let here = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let finder = ServiceDaemon::new_with_port(PORT).unwrap();
        finder.disable_interface(IfKind::All).unwrap();
        finder.enable_interface(IfKind::LoopbackV4).unwrap();
        let mdns = Mdns::start(&announcement(), &here, PORT).unwrap();
        let events = finder.browse(SERVICES[1]).unwrap();
        let stop = CancellationToken::new();
        let running = tokio::spawn(mdns.run(stop.clone()));
        let found = tokio::task::spawn_blocking(move || {
            let wait = |wanted: fn(&ServiceEvent) -> bool| {
                let deadline = Instant::now() + Duration::from_secs(20);
                loop {
                    let event = events.recv_deadline(deadline).expect("nothing is found in time");
                    if wanted(&event) {
                        return event;
                    }
                }
            };
            let found = wait(|event| matches!(event, ServiceEvent::ServiceResolved(_)));
            stop.cancel();
            wait(|event| matches!(event, ServiceEvent::ServiceRemoved(..)));
            found
        });
        let ServiceEvent::ServiceResolved(service) = found.await.unwrap() else { unreachable!() };
        assert_eq!(service.get_port(), 7125);
        assert_eq!(service.get_property_val_str("uuid"), Some("0f1e2d3c"));
        running.await.unwrap();
        let _ = finder.shutdown();
    }
}
