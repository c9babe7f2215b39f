//! Network and CAN interfaces that are up, as the `ip` program tells them (pure but for [`read`]).

use indexmap::IndexMap;
use runtime::command::Command;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Interfaces that are told about.
const MAX_INTERFACES: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Interface {
    mac_address: String,
    ip_addresses: Vec<Address>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Address {
    /// `ipv4` or `ipv6`.
    family: &'static str,
    address: String,
    is_link_local: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct CanBus {
    tx_queue_len: i64,
    bitrate: i64,
    driver: String,
}

/// Interfaces by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Interfaces {
    pub(crate) network: IndexMap<String, Interface>,
    pub(crate) canbus: IndexMap<String, CanBus>,
}

/// Nothing where there is no `ip`.
pub(super) async fn read() -> Interfaces {
    match Command::new("ip").args(["-json", "-det", "address"]).text().await {
        Ok(text) => parse(&text),
        Err(error) => {
            tracing::debug!(%error, "the network interfaces are not known");
            Interfaces::default()
        }
    }
}

#[derive(Deserialize)]
#[serde(default)]
struct Link {
    ifname: String,
    operstate: String,
    link_type: String,
    address: String,
    txqlen: i64,
    linkinfo: LinkInfo,
    addr_info: Vec<AddressInfo>,
}

impl Default for Link {
    fn default() -> Self {
        let text = String::new;
        Self {
            ifname: text(),
            operstate: text(),
            link_type: text(),
            address: text(),
            txqlen: -1,
            linkinfo: LinkInfo::default(),
            addr_info: Vec::new(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LinkInfo {
    info_data: InfoData,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InfoData {
    bittiming: BitTiming,
    bittiming_const: BitTimingConst,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BitTiming {
    bitrate: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BitTimingConst {
    name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AddressInfo {
    family: String,
    local: String,
    scope: String,
}

fn parse(text: &str) -> Interfaces {
    // One by one: an interface of a kind that nobody knows must not hide the others.
    let links: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
    let links = links.into_iter().filter_map(|link| serde_json::from_value::<Link>(link).ok());
    let mut found = Interfaces::default();
    for link in links.filter(|link| link.operstate == "UP" && !link.ifname.is_empty()).take(MAX_INTERFACES) {
        match link.link_type.as_str() {
            "can" => {
                let InfoData { bittiming, bittiming_const } = link.linkinfo.info_data;
                let driver = bittiming_const.name.unwrap_or_else(|| "unknown".to_owned());
                found.canbus.insert(link.ifname, CanBus { tx_queue_len: link.txqlen, bitrate: bittiming.bitrate.unwrap_or(-1), driver });
            }
            "ether" => {
                let ip_addresses: Vec<Address> = link.addr_info.into_iter().filter_map(AddressInfo::address).collect();
                if !ip_addresses.is_empty() {
                    found.network.insert(link.ifname, Interface { mac_address: link.address, ip_addresses });
                }
            }
            _ => {}
        }
    }
    found
}

impl AddressInfo {
    fn address(self) -> Option<Address> {
        let family = match self.family.as_str() {
            "inet" => "ipv4",
            "inet6" => "ipv6",
            _ => return None,
        };
        (!self.local.is_empty()).then_some(Address { family, address: self.local, is_link_local: self.scope == "link" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOLD: &str = r#"[
        {"ifname":"lo","operstate":"UNKNOWN","link_type":"loopback","addr_info":[{"family":"inet","local":"127.0.0.1","scope":"host"}]},
        {"ifname":"eth0","operstate":"UP","link_type":"ether","address":"aa:bb","txqlen":1000,"linkinfo":{"info_kind":"veth"},
         "addr_info":[{"family":"inet","local":"10.0.0.2","prefixlen":24,"scope":"global"},{"family":"inet6","local":"fe80::1","scope":"link"}]},
        {"ifname":"eth1","operstate":"DOWN","link_type":"ether","address":"aa:cc","addr_info":[{"family":"inet","local":"10.0.0.3"}]},
        {"ifname":"can0","operstate":"UP","link_type":"can","txqlen":128,
         "linkinfo":{"info_kind":"can","info_data":{"bittiming":{"bitrate":1000000},"bittiming_const":{"name":"gs_usb"}}},"addr_info":[]},
        {"ifname":"can1","operstate":"UP","link_type":"can"}, {"ifname":5}, {}]"#;

    #[test]
    fn only_interfaces_that_are_up_are_told() {
        let found = parse(TOLD);
        let address = |family, address: &str, is_link_local| Address { family, address: address.into(), is_link_local };
        let expected = Interface {
            mac_address: "aa:bb".into(),
            ip_addresses: vec![address("ipv4", "10.0.0.2", false), address("ipv6", "fe80::1", true)],
        };
        assert_eq!(found.network, IndexMap::from([("eth0".to_owned(), expected)]));
        assert_eq!(found.canbus["can0"], CanBus { tx_queue_len: 128, bitrate: 1_000_000, driver: "gs_usb".into() });
        assert_eq!(found.canbus["can1"], CanBus { tx_queue_len: -1, bitrate: -1, driver: "unknown".into() });
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}") {
            let _ = parse(&text);
        }
    }
}
