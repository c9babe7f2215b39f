//! Where the address of a webcam leads for a relay that runs on the same machine.

use std::net::IpAddr;

use crate::webcams::address::Address;
use crate::webcams::rules::is_scheme;

/// What paths on this machine stand for.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Addresses of the streamers behind `/webcam/`, `/webcam2/` and so on.
    pub streamers: Vec<String>,
    /// Address to which other paths are joined.
    pub base: String,
}

impl Places {
    /// The complete address: whatever does not start with a scheme is a path on this machine. An empty one stays empty.
    pub(in crate::webcams) fn complete(&self, address: &str) -> String {
        let address = address.trim();
        if address.is_empty() || scheme(address).is_some() {
            return address.to_owned();
        }
        let path = address.trim_start_matches('/');
        let streamer = streamer(path).and_then(|(number, rest)| Some((self.streamers.get(number)?, rest)));
        let (place, rest) = streamer.unwrap_or((&self.base, path));
        format!("{}/{rest}", place.trim_end_matches('/'))
    }

    /// The complete address for a client that sees this machine at `machine`. A path that leads to loopback is joined to the machine itself, as
    /// front ends do: the web server there has it.
    pub(in crate::webcams) fn complete_for_others(&self, address: &str, machine: IpAddr) -> String {
        let complete = self.complete(address);
        let is_path = scheme(address.trim()).is_none();
        if !(is_path && Address::parse(&complete).is_some_and(|address| address.is_at_loopback())) {
            return complete;
        }
        let machine = if machine.is_ipv6() { format!("[{machine}]") } else { machine.to_string() };
        format!("http://{machine}/{}", address.trim().trim_start_matches('/'))
    }

    /// The complete address; `None` for what is not fetched by HTTP.
    pub(super) fn fetched(&self, address: &str) -> Option<String> {
        let complete = self.complete(address);
        scheme(&complete).is_some_and(|scheme| ["http", "https"].iter().any(|http| scheme.eq_ignore_ascii_case(http))).then_some(complete)
    }
}

fn scheme(address: &str) -> Option<&str> {
    address.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme))
}

/// Number and rest of a path as it is usual before streamers: `webcam/…` is the first, `webcam2/…` the second.
fn streamer(path: &str) -> Option<(usize, &str)> {
    let after = path.strip_prefix("webcam")?;
    let (number, rest) = match after.as_bytes().first() {
        Some(digit @ b'1'..=b'9') => (usize::from(digit - b'1'), &after[1..]),
        _ => (0, after),
    };
    let is_whole = rest.is_empty() || rest.starts_with(['/', '?']);
    is_whole.then(|| (number, rest.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_addresses_that_they_can_open() {
        let streamers = vec!["http://127.0.0.1:8080".into(), "http://192.0.2.7:8080".into()];
        let places = Places { streamers, base: "http://localhost".into() };
        for (address, expected) in [
            ("/webcam/?action=stream", "http://192.0.2.1/webcam/?action=stream"),
            ("webcam2/?action=stream", "http://192.0.2.7:8080/?action=stream"),
            (" cam ", "http://192.0.2.1/cam"),
            ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x"),
            ("rtsp://cam/1", "rtsp://cam/1"),
            ("", ""),
        ] {
            assert_eq!(places.complete_for_others(address, "192.0.2.1".parse().unwrap()), expected, "{address}");
        }
        assert_eq!(places.complete_for_others("/webcam/", "2001:db8::1".parse().unwrap()), "http://[2001:db8::1]/webcam/");
    }

    #[test]
    fn paths_lead_to_streamers() {
        let places =
            Places { streamers: vec!["http://127.0.0.1:8080".into(), "http://[::1]:8081/".into()], base: "http://127.0.0.1".into() };
        for (address, expected) in [
            ("/webcam/?action=stream", Some("http://127.0.0.1:8080/?action=stream")),
            ("webcam?action=stream", Some("http://127.0.0.1:8080/?action=stream")),
            ("/webcam1/snapshot", Some("http://127.0.0.1:8080/snapshot")),
            ("/webcam2/?action=snapshot", Some("http://[::1]:8081/?action=snapshot")),
            ("/webcam3/x", Some("http://127.0.0.1/webcam3/x")),
            ("/webcams/x", Some("http://127.0.0.1/webcams/x")),
            ("/cam", Some("http://127.0.0.1/cam")),
            (" http://192.0.2.1:8080/?action=stream ", Some("http://192.0.2.1:8080/?action=stream")),
            ("HTTPS://cam/", Some("HTTPS://cam/")),
            ("rtsp://cam/1", None),
            ("", None),
        ] {
            assert_eq!(places.fetched(address).as_deref(), expected, "{address}");
        }
        assert_eq!((places.complete(" rtsp://cam/1"), places.complete(" ")), ("rtsp://cam/1".to_owned(), String::new()));
        assert_eq!(places.complete("/x?u=http://y"), "http://127.0.0.1/x?u=http://y");
    }
}
