//! What is told of this server in the local network.

use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use integrations::discovery::{Discovery, Facts};
use machine::Machine;
use protocol::version::{CORE_VERSION, UPSTREAM_VERSION};
use uuid::Uuid;

use crate::settings::Settings;

/// Discovery, if it is configured.
pub fn discovery(
    settings: &Settings,
    installation: Uuid,
    machine: &Machine,
    https_port: Option<u16>,
    route_prefix: &str,
) -> Option<Discovery> {
    let options = settings.discovery.as_ref()?;
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let facts = Facts {
        host: crate::host_name(),
        service: machine.own_unit(),
        uuid: installation.simple().to_string(),
        version: UPSTREAM_VERSION.to_owned(),
        own_version: CORE_VERSION.to_owned(),
        https_port,
        only: settings.server.host.parse::<IpAddr>().ok().filter(|address| !address.is_unspecified()),
        route_prefix: route_prefix.to_owned(),
        description: transport::http::DESCRIPTION,
        started: u32::try_from(started).unwrap_or(u32::MAX),
    };
    Some(Discovery::new(options, facts))
}
