//! `[led name]`.

use std::path::PathBuf;
use std::time::Duration;

use config::{Context, OptionValue, Reader};

use crate::base::{Base, Protocol};

/// What an address of a strip is.
const ADDRESS: &str = "expected a name or an address, also with port (`desk.local:8080`) or with `http://` or `https://` before it";

/// LED strips of one configuration.
pub const MAX_STRIPS: usize = 32;

/// LEDs of one strip.
pub const MAX_CHAIN: u32 = 4096;

config::choices! {
    /// How a strip is reached.
    pub enum LedKind {
        /// Over the network.
        Http = "http",
        /// Over a serial line.
        Serial = "serial",
    }
}

config::options! {
    /// An LED strip with a controller that understands the JSON of the WLED firmware. See docs/leds-and-sensors.md.
    pub struct LedOptions: "led <name>" | "wled <name>" {
        /// How it is reached: `http` or `serial`.
        r#type: LedKind = LedKind::Http,
        /// Name or address in the network, also with port (`desk.local:8080`, `[fe80::1]:80`) or with `http://` or `https://` before it; required with `http`.
        address: Option<String> = None,
        /// Its port, unless the address has one. Unset: 80, with `https` 443.
        port: Option<u16> { min 1 } = None,
        /// `http` or `https`, unless the address begins with one.
        protocol: Protocol = Protocol::Http,
        /// Seconds for one exchange with `http`; there are up to three attempts.
        timeout: Duration { above 0, max 30 } = 2.0,
        /// Device file of the serial line; required with `serial`.
        serial: Option<PathBuf> = None,
        /// Bits per second of the serial line.
        baud: u32 { min 1 } = 115_200,
        /// Preset that is shown at the start and when the strip is switched on. -1: none, but the colours that follow.
        initial_preset: i32 { min -1, max 65535 } = -1,
        /// Red part of the colour at the start and when the strip is switched on, from 0 to 1.
        initial_red: f64 { min 0, max 1 } = 0.5,
        /// Green part.
        initial_green: f64 { min 0, max 1 } = 0.5,
        /// Blue part.
        initial_blue: f64 { min 0, max 1 } = 0.5,
        /// White part.
        initial_white: f64 { min 0, max 1 } = 0.5,
        /// LEDs on the chain.
        chain_count: u32 { min 1, max 4096 } = 1,
        /// Once the order of colours.
        color_order: Option<String> { deprecated "the controller knows the order; it is ignored" } = None,
    }
}

impl LedOptions {
    /// All sections that can be used, with the names of their strips. The others are reported to the reader.
    pub fn read(reader: &mut Reader<'_>) -> Vec<(String, Self)> {
        let mut usable: Vec<(String, Self)> = Vec::new();
        for entry in reader.read_all::<Self>() {
            let (section, name) = (entry.section.clone(), entry.name.clone());
            let Ok(options) = entry.sound() else { continue };
            let fault = match options.fault() {
                Some(fault) => Some(fault),
                None if usable.iter().any(|(known, _)| *known == name) => Some(("type", "another section has this strip".to_owned())),
                None if usable.len() >= MAX_STRIPS => Some(("type", format!("more than {MAX_STRIPS} strips"))),
                None => None,
            };
            match fault {
                Some((option, message)) => reader.reject(&section, option, message),
                None => usable.push((name, options)),
            }
        }
        usable
    }

    fn fault(&self) -> Option<(&'static str, String)> {
        match self.r#type {
            LedKind::Http if self.address.is_none() => Some(("address", "expected the name or address of the strip".to_owned())),
            LedKind::Http => self.url().err().map(|error| ("address", error)),
            LedKind::Serial if self.serial.is_none() => Some(("serial", "expected the device file of the serial line".to_owned())),
            LedKind::Serial => None,
        }
    }

    /// Where commands go with `http`. People copy addresses out of their browsers: what such a one says itself counts.
    ///
    /// # Errors
    /// A sentence for people.
    pub(super) fn url(&self) -> Result<String, String> {
        let address = self.address.as_deref().unwrap_or_default().trim();
        let (protocol, host) = match address.split_once("://") {
            Some((scheme, rest)) => {
                (Protocol::parse(scheme, &Context::default()).map_err(|_| ADDRESS.to_owned())?, rest.strip_suffix('/').unwrap_or(rest))
            }
            None => (self.protocol, address),
        };
        if host.contains('/') {
            return Err(ADDRESS.to_owned());
        }
        let base = Base::new(host, protocol, self.port).map_err(|_| ADDRESS.to_owned())?;
        Ok(base.join("/json"))
    }

    /// Red, green, blue, white.
    pub(super) fn initial_color(&self) -> [u8; 4] {
        [self.initial_red, self.initial_green, self.initial_blue, self.initial_white].map(channel)
    }
}

/// A part of a colour from 0 to 1 as a byte.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255 after the clamp")]
pub(super) fn channel(part: f64) -> u8 {
    (part.clamp(0.0, 1.0) * 255.0 + 0.5) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<(String, LedOptions)>, Vec<String>) {
        crate::reading::options(text, LedOptions::read)
    }

    #[test]
    fn both_names_of_the_section_are_strips() {
        let text =
            "[led desk]\naddress: desk.local\n[wled back side]\ntype: SERIAL\nserial: /dev/ttyUSB0\nchain_count: 30\ninitial_white: 1\n";
        let (strips, problems) = read(text);
        assert_eq!(problems, [""; 0]);
        assert_eq!((strips[0].0.as_str(), strips[0].1.url()), ("desk", Ok("http://desk.local/json".to_owned())));
        assert_eq!((strips[1].0.as_str(), strips[1].1.initial_color()), ("back side", [128, 128, 128, 255]));
    }

    #[test]
    fn addresses_carry_ports_and_schemes() {
        for (lines, expected) in [
            ("desk.local", "http://desk.local/json"),
            ("desk.local\nport: 81", "http://desk.local:81/json"),
            ("127.0.0.1:7510", "http://127.0.0.1:7510/json"),
            ("127.0.0.1:7510\nport: 81", "http://127.0.0.1:7510/json"),
            ("http://127.0.0.1", "http://127.0.0.1/json"),
            ("http://127.0.0.1:7510/\nprotocol: https", "http://127.0.0.1:7510/json"),
            ("HTTPS://desk.local\nport: 8443", "https://desk.local:8443/json"),
            ("fe80::1\nprotocol: https", "https://[fe80::1]/json"),
            ("[fe80::1]:82", "http://[fe80::1]:82/json"),
            ("fe80::1\nport: 82", "http://[fe80::1]:82/json"),
        ] {
            let (strips, problems) = read(&format!("[led a]\naddress: {lines}\n"));
            assert!(problems.is_empty() && strips[0].1.url().as_deref() == Ok(expected), "{lines}: {problems:?}");
        }
        for bad in ["http://", "ftp://a", "http://http://a", "a/b", "http://a/b", "user@a", "a?b", "a:99999", "[::", "l%41mp", "://a"] {
            let (strips, problems) = read(&format!("[led a]\naddress: {bad}\n"));
            assert!(strips.is_empty() && problems[0].contains("expected a name or an address"), "{bad}: {problems:?}");
        }
    }

    #[test]
    fn faulty_strips_are_left_out_and_named() {
        for (lines, expected) in [
            ("", "[led a] address: expected the name or address of the strip"),
            ("type: serial", "[led a] serial: expected the device file"),
            ("address: a b", "[led a] address: "),
            ("address: a/b@c:", "[led a] address: "),
            ("address: a\ninitial_red: 1.1", "[led a] initial_red: expected a number, at least 0, at most 1"),
            ("address: a\nchain_count: 0", "[led a] chain_count: expected"),
            ("type: wifi\naddress: a", "[led a] type: expected one of `http`, `serial`"),
        ] {
            let (strips, problems) = read(&format!("[led a]\n{lines}\n"));
            assert!(strips.is_empty() && problems[0].contains(expected), "{lines}: {problems:?}");
        }
        let (strips, problems) = read("[led a]\naddress: a\ncolor_order: RGB\n[wled a]\naddress: b\n");
        assert_eq!((strips.len(), problems.len()), (1, 2), "{problems:?}");
    }
}
