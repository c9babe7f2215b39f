//! Being found in the local network: by multicast DNS, and by the discovery of UPnP. wire/1-core.md section 8.12.

pub mod mdns;
mod responder;
pub mod ssdp;

use std::net::{IpAddr, Ipv4Addr};

use config::Reader;
use runtime::Supervisor;

use mdns::{Announcement, Mdns};
use responder::Responder;
pub use responder::{MAX_ANSWERS, MAX_WAITING};
use ssdp::Device;

/// Port of multicast DNS.
const MDNS_PORT: u16 = 5353;

config::options! {
    /// Being found in the local network: apps and desktops list the printer by its name. Only with this section.
    pub struct DiscoveryOptions: "zeroconf" | "discovery" {
        /// Name of the machine, without `.local`. Unset: as it is.
        mdns_hostname: Option<String> = None,
        /// Whether the printer is also found by the discovery of UPnP, as desktops list devices in their network.
        enable_ssdp: bool = false,
        /// Addresses of the interfaces on which the printer is found, one a line. Unset: all but loopback.
        interfaces: Vec<String> = &[],
    }
}

/// What is told of this server.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Name of the machine.
    pub host: String,
    /// Name of the service that runs us; without one, a name is made from the id.
    pub service: Option<String>,
    /// Id of the installation: 32 hexadecimal digits.
    pub uuid: String,
    /// Version that clients compare.
    pub version: String,
    /// Our own version.
    pub own_version: String,
    /// Port of HTTPS, if there is one.
    pub https_port: Option<u16>,
    /// The address that the server listens on, if it is only one.
    pub only: Option<IpAddr>,
    /// Prefix of all routes.
    pub route_prefix: String,
    /// Path under which clients of UPnP get our description, without the prefix.
    pub description: &'static str,
    /// Seconds since 1970 at the start.
    pub started: u32,
}

/// Bytes of one part of a host name.
const MAX_LABEL: usize = 63;

/// The first part of a host name: what stands before `.local`.
fn label(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// Discovery that is configured.
#[derive(Debug)]
pub struct Discovery {
    facts: Facts,
    interfaces: Vec<IpAddr>,
    has_ssdp: bool,
}

impl DiscoveryOptions {
    /// The section, if it is there and without faults.
    pub fn read_one(reader: &mut Reader<'_>) -> Option<Self> {
        let entry = reader.read::<Self>()?;
        let section = entry.section.clone();
        let options = entry.sound().ok()?;
        if let Err(expected) = options.addresses() {
            reader.reject(&section, "interfaces", expected);
            return None;
        }
        if options.mdns_hostname.as_deref().is_some_and(|name| !(1..=MAX_LABEL).contains(&label(name).len())) {
            reader.reject(&section, "mdns_hostname", format!("expected a name of 1 to {MAX_LABEL} bytes without a dot"));
            return None;
        }
        Some(options)
    }

    /// The addresses that `interfaces` names.
    ///
    /// # Errors
    /// The first that is none.
    fn addresses(&self) -> Result<Vec<IpAddr>, String> {
        let parse = |text: &String| text.parse().map_err(|_| format!("expected addresses of interfaces, found `{text}`"));
        self.interfaces.iter().map(parse).collect()
    }
}

impl Discovery {
    /// Discovery with these options.
    #[must_use]
    pub fn new(options: &DiscoveryOptions, mut facts: Facts) -> Self {
        let mut host = label(options.mdns_hostname.as_deref().unwrap_or(&facts.host)).to_owned();
        host.truncate(host.floor_char_boundary(MAX_LABEL));
        facts.host = host;
        // Who listens on one address only is found there and nowhere else.
        let interfaces = options.addresses().unwrap_or_default();
        let interfaces = if interfaces.is_empty() { facts.only.into_iter().collect() } else { interfaces };
        Self { facts, interfaces, has_ssdp: options.enable_ssdp }
    }

    /// The description to which answers of UPnP lead.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        let name = format!("{} ({})", self.instance(), self.facts.host);
        self.has_ssdp.then(|| self.device().description(&name, &self.facts.route_prefix))
    }

    /// Begins to tell that we are at `port`. Whatever cannot be told is a line in the log.
    pub fn start(self, port: u16, supervisor: &Supervisor) {
        match Mdns::start(&self.announcement(port), &self.interfaces, MDNS_PORT) {
            Ok(mdns) => {
                let stop = supervisor.stop_token().clone();
                supervisor.spawn_once("discovery by DNS", mdns.run(stop));
            }
            Err(error) => tracing::warn!(%error, "[zeroconf] the printer cannot be found by multicast DNS"),
        }
        if !self.has_ssdp {
            return;
        }
        let fixed: Vec<Ipv4Addr> = self.interfaces.iter().copied().filter_map(responder::as_v4).collect();
        let fixed = (!self.interfaces.is_empty()).then_some(fixed);
        match Responder::open(self.device(), port, self.path_of_description(), fixed) {
            Ok(responder) => {
                let stop = supervisor.stop_token().clone();
                supervisor.spawn_once("discovery by UPnP", responder.run(stop));
            }
            Err(error) => tracing::warn!(%error, "[zeroconf] the printer cannot be found by UPnP"),
        }
    }

    fn instance(&self) -> String {
        let Facts { service, uuid, .. } = &self.facts;
        match service.as_deref().map(|service| service.split_at(service.chars().next().map_or(0, char::len_utf8))) {
            Some((first, rest)) if !first.is_empty() => first.to_uppercase() + rest,
            _ => format!("Bowsprit-{}", uuid.get(..8).unwrap_or(uuid)),
        }
    }

    fn announcement(&self, port: u16) -> Announcement {
        let Facts { host, https_port, uuid, version, route_prefix, .. } = self.facts.clone();
        Announcement { instance: self.instance(), host, port, https_port, uuid, version, route_prefix }
    }

    fn path_of_description(&self) -> String {
        let Facts { route_prefix, description, .. } = &self.facts;
        if route_prefix.is_empty() { (*description).to_owned() } else { format!("/{route_prefix}{description}") }
    }

    fn device(&self) -> Device {
        // The id in its usual form, with hyphens.
        let uuid = uuid::Uuid::try_parse(&self.facts.uuid).map_or_else(|_| self.facts.uuid.clone(), |uuid| uuid.to_string());
        Device { uuid, version: self.facts.own_version.clone(), boot_id: self.facts.started }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            host: "printer".into(),
            service: None,
            uuid: "0f1e2d3c4b5a69788796a5b4c3d2e1f0".into(),
            version: "v1".into(),
            own_version: "1.0".into(),
            https_port: None,
            only: None,
            route_prefix: String::new(),
            description: "/about",
            started: 1,
        }
    }

    #[test]
    fn names_follow_the_service() {
        let name = |service: Option<&str>| {
            Discovery::new(&DiscoveryOptions::default(), Facts { service: service.map(Into::into), ..facts() }).instance()
        };
        assert_eq!(name(Some("moonraker")), "Moonraker");
        assert_eq!(name(Some("bowsprit-2")), "Bowsprit-2");
        assert_eq!((name(None).as_str(), name(Some("")).as_str()), ("Bowsprit-0f1e2d3c", "Bowsprit-0f1e2d3c"));
    }

    #[test]
    fn options_decide_where_and_as_what() {
        let options =
            DiscoveryOptions { mdns_hostname: Some("voron.local".into()), interfaces: vec!["192.0.2.1".into()], ..Default::default() };
        let discovery = Discovery::new(&options, facts());
        assert_eq!((discovery.facts.host.as_str(), discovery.description()), ("voron", None));
        assert_eq!(discovery.interfaces, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        let only = Facts { only: Some("192.0.2.9".parse().unwrap()), ..facts() };
        assert_eq!(Discovery::new(&DiscoveryOptions::default(), only).interfaces, ["192.0.2.9".parse::<IpAddr>().unwrap()]);
        let options = DiscoveryOptions { enable_ssdp: true, interfaces: vec!["eth0".into()], ..Default::default() };
        assert!(options.addresses().unwrap_err().contains("eth0"));
        let below = |prefix: &str| Discovery::new(&options, Facts { route_prefix: prefix.into(), ..facts() }).path_of_description();
        assert_eq!((below("").as_str(), below("one").as_str()), ("/about", "/one/about"));
        assert!(Discovery::new(&options, facts()).description().unwrap().contains("<UDN>uuid:0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0</UDN>"));
    }
}
