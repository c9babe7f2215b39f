//! Lists of addresses and networks.

use std::net::IpAddr;

use ipnet::IpNet;

/// Addresses and networks that an option lists.
#[derive(Debug, Clone, Default)]
pub(crate) struct Networks(Vec<IpNet>);

impl Networks {
    /// Reads the entries of `option`; every one that cannot be used becomes a warning.
    pub(crate) fn parse(option: &str, entries: &[String], warnings: &mut Vec<String>) -> Self {
        let mut networks = Vec::new();
        for entry in entries.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()) {
            match network(entry) {
                Ok(network) => networks.push(network),
                Err(reason) => warnings.push(format!("[authorization] {option}: '{entry}' is not used: {reason}")),
            }
        }
        Self(networks)
    }

    /// Like [`Networks::parse`], but host names are entries as well; they are given apart.
    pub(crate) fn parse_with_names(option: &str, entries: &[String], warnings: &mut Vec<String>) -> (Self, Vec<String>) {
        let (names, others): (Vec<String>, Vec<String>) =
            entries.iter().map(|entry| entry.trim().to_lowercase()).partition(|entry| is_host_name(entry));
        (Self::parse(option, &others, warnings), names)
    }

    pub(crate) fn push(&mut self, network: IpNet) {
        self.0.push(network);
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = plain(address);
        self.0.iter().any(|network| network.contains(&address))
    }
}

fn network(entry: &str) -> Result<IpNet, &'static str> {
    if let Ok(address) = entry.parse::<IpAddr>() {
        return Ok(IpNet::from(plain(address)));
    }
    match entry.parse::<IpNet>() {
        Ok(network) if network.addr() != network.network() => Err("the network has host bits set"),
        Ok(network) => Ok(network),
        Err(_) => Err("expected an IP address or a network such as 192.168.1.0/24"),
    }
}

/// Letters, digits, hyphens and dots; the last label has two letters or more (wire/1-core.md section 6.6).
fn is_host_name(entry: &str) -> bool {
    let label =
        |label: &str| !label.is_empty() && label.len() <= 63 && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let last = entry.rsplit('.').next().unwrap_or(entry);
    entry.len() <= 253 && entry.split('.').all(label) && last.len() >= 2 && last.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// An IPv4 address that came over an IPv6 socket, as IPv4.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entries: &[&str]) -> (Networks, Vec<String>) {
        let mut warnings = Vec::new();
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        (Networks::parse("trusted_clients", &entries, &mut warnings), warnings)
    }

    #[test]
    fn addresses_and_networks_match() {
        let (networks, warnings) = parse(&["127.0.0.1", "10.0.0.0/8", "FE80::/10", "::1"]);
        assert!(warnings.is_empty());
        for address in ["127.0.0.1", "10.9.8.7", "fe80::1", "::1", "::ffff:10.0.0.1"] {
            assert!(networks.contains(address.parse().unwrap()), "{address}");
        }
        for address in ["127.0.0.2", "11.0.0.1", "2001:db8::1"] {
            assert!(!networks.contains(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn host_names_are_told_from_addresses() {
        let entries = ["My-PC.lan", "10.0.0.1", "localhost", "a..b", "10.0.0.300", "x_y.lan", "10.0.0.0/8"].map(str::to_owned);
        let mut warnings = Vec::new();
        let (networks, names) = Networks::parse_with_names("trusted_clients", &entries, &mut warnings);
        assert_eq!((names, warnings.len()), (vec!["my-pc.lan".to_owned(), "localhost".to_owned()], 3));
        assert!(networks.contains("10.1.1.1".parse().unwrap()));
    }

    #[test]
    fn unusable_entries_are_named() {
        let (networks, warnings) = parse(&["192.168.1.1/24", "printer.local", "300.1.1.1"]);
        assert_eq!(warnings.len(), 3);
        assert!(warnings[0].contains("192.168.1.1/24") && warnings[0].contains("host bits"));
        assert!(!networks.contains("192.168.1.1".parse().unwrap()));
    }
}
