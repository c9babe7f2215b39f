//! The system's list of names of USB vendors, products and classes (`usb.ids`), where it has one.

use std::collections::HashMap;
use std::path::Path;

use crate::Roots;

/// Where the list is, besides `misc/usb.ids` in the data folder.
const PLACES: &[&str] = &["/usr/share/hwdata/usb.ids", "/usr/share/misc/usb.ids", "/var/lib/usbutils/usb.ids"];

/// Largest list that is read.
const MAX_LIST: u64 = 4 * 1024 * 1024;

/// Devices of printers that the list does not know.
const BUILT_IN: &[(&str, Option<&str>, &str)] = &[
    ("1d50", None, "OpenMoko, Inc."),
    ("1d50", Some("614e"), "Klipper 3d-Printer Firmware"),
    ("1d50", Some("6177"), "CanBoot Bootloader (CDC_ACM)"),
];

/// Texts that say nothing.
const EMPTY: &[&str] = &["?", "none", "undefined", "reserved/undefined", "unused", "no subclass"];

/// Names by their hexadecimal numbers.
#[derive(Debug, Default)]
pub struct UsbIds {
    vendors: HashMap<String, String>,
    products: HashMap<(String, String), String>,
    classes: HashMap<Vec<String>, String>,
}

impl UsbIds {
    /// The first list that is there; the built-in names in any case.
    pub(super) fn find(roots: &Roots, data: &Path) -> Self {
        let places = std::iter::once(data.join("misc/usb.ids")).chain(PLACES.iter().map(|place| roots.path(place)));
        let text = places.into_iter().find_map(|path| {
            let is_small = std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_LIST);
            // The list is in Latin-1: every byte is its character.
            is_small.then(|| std::fs::read(path).ok()).flatten().map(|bytes| bytes.into_iter().map(char::from).collect::<String>())
        });
        Self::parse(&text.unwrap_or_default())
    }

    /// Reads a list: `vvvv  name`, a tab before products, `C cc  name` and tabs before subclasses and protocols.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut ids = Self::default();
        let mut path: Vec<String> = Vec::new();
        let mut is_class = false;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let depth = line.bytes().take_while(|byte| *byte == b'\t').count();
            let entry = &line[depth..];
            let entry = if depth == 0 {
                is_class = entry.starts_with("C ");
                path.clear();
                entry.strip_prefix("C ").unwrap_or(entry)
            } else {
                entry
            };
            let Some((number, name)) = entry.split_once("  ") else {
                path.clear();
                continue;
            };
            let digits = if is_class { 2 } else { 4 };
            if depth > path.len() || depth > 2 || number.len() != digits || !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                continue;
            }
            path.truncate(depth);
            path.push(number.to_lowercase());
            let name = name.trim().to_owned();
            match (is_class, path.as_slice()) {
                (true, path) => drop(ids.classes.insert(path.to_vec(), name)),
                (false, [vendor]) => drop(ids.vendors.insert(vendor.clone(), name)),
                (false, [vendor, product]) => drop(ids.products.insert((vendor.clone(), product.clone()), name)),
                _ => {}
            }
        }
        for (vendor, product, name) in BUILT_IN {
            match product {
                None => drop(ids.vendors.insert((*vendor).to_owned(), (*name).to_owned())),
                Some(product) => drop(ids.products.insert(((*vendor).to_owned(), (*product).to_owned()), (*name).to_owned())),
            }
        }
        ids
    }

    pub(super) fn vendor(&self, vendor: &str) -> Option<String> {
        self.vendors.get(vendor).cloned()
    }

    pub(super) fn product(&self, vendor: &str, product: &str) -> Option<String> {
        self.products.get(&(vendor.to_owned(), product.to_owned())).cloned()
    }

    /// Name of a class, subclass or protocol, by the numbers that lead to it; none for texts that say nothing.
    pub(super) fn class(&self, path: &[&str]) -> Option<String> {
        let path: Vec<String> = path.iter().map(|number| (*number).to_owned()).collect();
        self.classes.get(&path).filter(|name| !EMPTY.contains(&name.to_lowercase().as_str())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) const LIST: &str = "# comment\n0483  STMicroelectronics\n\t5740  Virtual COM Port\n1d50  Other\nC 02  Communications\n\t02  Abstract (modem)\n\t\t01  AT-commands (v.25ter)\n\t03  ?\nAT 0100  USB\nHID 21  HID\n\t99  x\n";

    #[test]
    fn names_are_found() {
        let ids = UsbIds::parse(LIST);
        assert_eq!(
            (ids.vendor("0483").as_deref(), ids.product("0483", "5740").as_deref()),
            (Some("STMicroelectronics"), Some("Virtual COM Port"))
        );
        assert_eq!(ids.class(&["02", "02", "01"]).as_deref(), Some("AT-commands (v.25ter)"));
        assert_eq!((ids.class(&["02", "03"]), ids.class(&["09"])), (None, None));
        assert_eq!(ids.product("1d50", "614e").as_deref(), Some("Klipper 3d-Printer Firmware"));
        assert_eq!(UsbIds::parse("").vendor("1d50").as_deref(), Some("OpenMoko, Inc."));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[\t C#0-9a-f\n?é]{0,300}") {
            let _ = UsbIds::parse(&text);
        }
    }
}
