//! Messages of the simple service discovery protocol (UPnP device architecture 1.1, section 1), as pure functions.

use std::fmt::Write;
use std::time::Duration;

use quick_xml::escape::partial_escape;

/// Type of our device; existing clients look for it (wire/1-core.md section 1.6).
pub const DEVICE_TYPE: &str = "urn:arksine.github.io:device:Moonraker:1";

/// How long others may believe in us without hearing from us.
pub const MAX_AGE: Duration = Duration::from_secs(1800);

/// Largest question that is read, in bytes.
pub const MAX_MESSAGE: usize = 2048;

/// Longest delay that a question may ask for (section 1.3.2).
const MAX_DELAY: u64 = 5;

/// What all our messages say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Id of the installation.
    pub uuid: String,
    /// Version of the server.
    pub version: String,
    /// Grows with each start.
    pub boot_id: u32,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// What is looked for.
    pub target: String,
    /// The answer may be delayed up to this time.
    pub delay: Duration,
}

/// Reads a question; `None` for every other message.
#[must_use]
pub fn search(datagram: &[u8]) -> Option<Search> {
    let text = std::str::from_utf8(datagram).ok().filter(|text| text.len() <= MAX_MESSAGE)?;
    let mut lines = text.split("\r\n");
    let first = lines.next()?;
    if !first.eq_ignore_ascii_case("M-SEARCH * HTTP/1.1") {
        return None;
    }
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let value = |name: &str| headers.iter().find(|(known, _)| known.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
    if value("MAN")?.trim_matches('"') != "ssdp:discover" {
        return None;
    }
    // Without MX a question comes to one address alone, and is answered at once.
    let delay = value("MX").and_then(|delay| delay.parse::<u64>().ok()).unwrap_or(0).min(MAX_DELAY);
    Some(Search { target: value("ST")?.to_owned(), delay: Duration::from_secs(delay) })
}

impl Device {
    /// Everything under which we are found, with the unique name of each.
    fn names(&self) -> [(String, String); 3] {
        let device = format!("uuid:{}", self.uuid);
        [
            ("upnp:rootdevice".to_owned(), format!("{device}::upnp:rootdevice")),
            (device.clone(), device.clone()),
            (DEVICE_TYPE.to_owned(), format!("{device}::{DEVICE_TYPE}")),
        ]
    }

    /// True when a question is for us.
    #[must_use]
    pub fn matches(&self, target: &str) -> bool {
        target == "ssdp:all" || self.names().iter().any(|(name, _)| target == name)
    }

    /// The answers to a question; none when it is not for us.
    #[must_use]
    pub fn answers(&self, target: &str, location: &str) -> Vec<String> {
        let names = self.names().into_iter().filter(|(name, _)| target == "ssdp:all" || target == name);
        names
            .map(|(name, unique)| {
                let mut text = "HTTP/1.1 200 OK\r\nEXT:\r\n".to_owned();
                self.describe(&mut text, location);
                let _ = write!(text, "ST: {name}\r\nUSN: {unique}\r\n\r\n");
                text
            })
            .collect()
    }

    /// What is told to everybody: that we are there, until [`MAX_AGE`].
    #[must_use]
    pub fn alive(&self, location: &str) -> Vec<String> {
        let texts = self.names().map(|(name, unique)| {
            let mut text = notification(&name, &unique, "ssdp:alive");
            self.describe(&mut text, location);
            text.push_str("\r\n");
            text
        });
        texts.into()
    }

    /// What is told to everybody at the end.
    #[must_use]
    pub fn goodbye(&self) -> Vec<String> {
        let ids = format!("BOOTID.UPNP.ORG: {}\r\nCONFIGID.UPNP.ORG: 1\r\n\r\n", self.boot_id);
        self.names().map(|(name, unique)| notification(&name, &unique, "ssdp:byebye") + &ids).into()
    }

    fn describe(&self, text: &mut String, location: &str) {
        let (version, age) = (&self.version, MAX_AGE.as_secs());
        let _ = write!(text, "CACHE-CONTROL: max-age={age}\r\nLOCATION: {location}\r\nSERVER: Linux UPnP/1.1 Bowsprit/{version}\r\n");
        let _ = write!(text, "BOOTID.UPNP.ORG: {}\r\nCONFIGID.UPNP.ORG: 1\r\n", self.boot_id);
    }

    /// The description of the device, to which `LOCATION` leads. Its addresses are relative to its own.
    #[must_use]
    pub fn description(&self, name: &str, route_prefix: &str) -> String {
        let (name, version, uuid) = (partial_escape(name), partial_escape(&self.version), &self.uuid);
        let page = partial_escape(if route_prefix.is_empty() { "/".to_owned() } else { format!("/{route_prefix}/") });
        format!(
            "<?xml version=\"1.0\"?>\n\
             <root xmlns=\"urn:schemas-upnp-org:device-1-0\" configId=\"1\">\
             <specVersion><major>1</major><minor>1</minor></specVersion>\
             <device><deviceType>{DEVICE_TYPE}</deviceType><friendlyName>{name}</friendlyName><manufacturer>Bowsprit</manufacturer>\
             <modelName>Bowsprit</modelName><modelNumber>{version}</modelNumber><modelDescription>API server for 3D printers</modelDescription>\
             <UDN>uuid:{uuid}</UDN><presentationURL>{page}</presentationURL></device></root>\n"
        )
    }
}

fn notification(name: &str, unique: &str, kind: &str) -> String {
    format!("NOTIFY * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nNT: {name}\r\nNTS: {kind}\r\nUSN: {unique}\r\n")
}

/// How many datagrams may be answered: questions can come from anywhere, under any sender's address.
#[derive(Debug)]
pub struct Allowance {
    left: u32,
    per_second: u32,
    second: u64,
}

impl Allowance {
    /// So many in each second.
    #[must_use]
    pub fn new(per_second: u32) -> Self {
        Self { left: per_second, per_second, second: 0 }
    }

    /// Takes `count`, in the given second since the start; false when they are not left.
    pub fn take(&mut self, count: u32, second: u64) -> bool {
        if second != self.second {
            (self.second, self.left) = (second, self.per_second);
        }
        let granted = self.left >= count;
        if granted {
            self.left -= count;
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn device() -> Device {
        Device { uuid: "0f1e2d3c".into(), version: "1.0".into(), boot_id: 7 }
    }

    const QUESTION: &str =
        "M-SEARCH * HTTP/1.1\r\nHost: 239.255.255.250:1900\r\nMan: \"ssdp:discover\"\r\nmx: 3\r\nST: upnp:rootdevice\r\n\r\n";

    #[test]
    fn questions_are_read_and_nothing_else() {
        let read = |text: &str| search(text.as_bytes());
        assert_eq!(read(QUESTION), Some(Search { target: "upnp:rootdevice".into(), delay: Duration::from_secs(3) }));
        assert_eq!(read(&QUESTION.replace("mx: 3", "MX: 900")).unwrap().delay, Duration::from_secs(MAX_DELAY));
        assert_eq!(read(&QUESTION.replace("mx: 3\r\n", "")).unwrap().delay, Duration::ZERO);
        for other in [
            QUESTION.replace("M-SEARCH", "NOTIFY"),
            QUESTION.replace("ssdp:discover", "x"),
            QUESTION.replace("ST:", "S:"),
            QUESTION.replace("\r\n\r\n", &format!("\r\nX: {}\r\n\r\n", "x".repeat(MAX_MESSAGE))),
            String::new(),
        ] {
            assert_eq!(read(&other), None, "{other}");
        }
        assert_eq!(search(b"M-SEARCH * HTTP/1.1\r\n\xff"), None);
    }

    #[test]
    fn answers_to_what_was_asked() {
        let device = device();
        let answer = device.answers("upnp:rootdevice", "http://192.0.2.1:7125/server/zeroconf/ssdp");
        assert_eq!(
            answer,
            ["HTTP/1.1 200 OK\r\nEXT:\r\nCACHE-CONTROL: max-age=1800\r\nLOCATION: http://192.0.2.1:7125/server/zeroconf/ssdp\r\n\
              SERVER: Linux UPnP/1.1 Bowsprit/1.0\r\nBOOTID.UPNP.ORG: 7\r\nCONFIGID.UPNP.ORG: 1\r\nST: upnp:rootdevice\r\n\
              USN: uuid:0f1e2d3c::upnp:rootdevice\r\n\r\n"]
        );
        for (target, count) in [("ssdp:all", 3), ("uuid:0f1e2d3c", 1), (DEVICE_TYPE, 1), ("uuid:other", 0), ("urn:x", 0), ("", 0)] {
            assert_eq!(device.answers(target, "x").len(), count, "{target}");
        }
    }

    #[test]
    fn announcements_and_goodbyes() {
        let (alive, goodbye) = (device().alive("http://x/"), device().goodbye());
        assert_eq!((alive.len(), goodbye.len()), (3, 3));
        for text in alive.iter().chain(&goodbye) {
            assert!(text.starts_with("NOTIFY * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\n") && text.ends_with("\r\n\r\n"), "{text}");
            assert_eq!(text.matches("\r\n\r\n").count(), 1);
        }
        assert!(alive[0].contains("NTS: ssdp:alive\r\n") && alive[0].contains("LOCATION: http://x/\r\n"));
        assert!(goodbye[2].contains("NTS: ssdp:byebye\r\n") && goodbye[2].contains(DEVICE_TYPE));
    }

    #[test]
    fn the_description_is_xml_whatever_the_machine_is_called() {
        let text = device().description("a<b>&c", "one");
        let mut reader = quick_xml::Reader::from_str(&text);
        while reader.read_event().unwrap() != quick_xml::events::Event::Eof {}
        assert!(
            text.contains("<friendlyName>a&lt;b&gt;&amp;c</friendlyName>") && text.contains("<presentationURL>/one/</presentationURL>")
        );
    }

    #[test]
    fn answers_per_second_are_bounded() {
        let mut allowance = Allowance::new(5);
        assert!(allowance.take(3, 0) && !allowance.take(3, 0) && allowance.take(2, 0) && !allowance.take(1, 0));
        assert!(allowance.take(5, 1));
        assert!(!allowance.take(6, 2), "never more than that");
    }

    proptest! {
        #[test]
        fn any_datagram_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = search(&bytes);
        }

        #[test]
        fn any_header_is_survived(rest in "[A-Za-z:\r\n\" ]{0,100}") {
            if let Some(search) = search(format!("M-SEARCH * HTTP/1.1\r\nMAN: ssdp:discover\r\n{rest}").as_bytes()) {
                prop_assert!(search.delay <= Duration::from_secs(MAX_DELAY));
                prop_assert!(device().answers(&search.target, "x").iter().all(|text| !text.trim_end().contains("\r\n\r\n")));
            }
        }
    }
}
