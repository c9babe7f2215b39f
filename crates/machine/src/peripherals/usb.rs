//! USB devices.

use schemars::JsonSchema;
use serde::Serialize;

use super::MAX_DEVICES;
use super::usb_ids::UsbIds;
use crate::Roots;

/// A device on a USB bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct UsbDevice {
    device_num: u32,
    bus_num: u32,
    vendor_id: String,
    product_id: String,
    /// `bus:device`.
    usb_location: String,
    manufacturer: Option<String>,
    product: Option<String>,
    serial: Option<String>,
    class: Option<String>,
    subclass: Option<String>,
    protocol: Option<String>,
    description: Option<String>,
}

const FOLDER: &str = "/sys/bus/usb/devices";

pub(super) fn list(roots: &Roots, ids: &UsbIds) -> Vec<UsbDevice> {
    roots.names(FOLDER).iter().filter_map(|name| device(roots, name, ids)).take(MAX_DEVICES).collect()
}

fn device(roots: &Roots, name: &str, ids: &UsbIds) -> Option<UsbDevice> {
    let text = |file: &str| roots.text(&format!("{FOLDER}/{name}/{file}")).filter(|text| !text.is_empty());
    let class = text("bDeviceClass")?;
    let (device_num, bus_num) = (text("devnum")?.parse().ok()?, text("busnum")?.parse().ok()?);
    let (vendor_id, product_id) = (text("idVendor")?.to_lowercase(), text("idProduct")?.to_lowercase());
    let (subclass, protocol) = (text("bDeviceSubClass").unwrap_or_default(), text("bDeviceProtocol").unwrap_or_default());
    // Class 00: each interface of the device has its own.
    let named = |path: &[&str]| if class == "00" { None } else { ids.class(path) };
    let (known_vendor, known_product) = (ids.vendor(&vendor_id), ids.product(&vendor_id, &product_id));
    let description = match (&known_vendor, &known_product) {
        (Some(vendor), Some(product)) => Some(format!("{vendor} {product}")),
        (vendor, product) => product.clone().or_else(|| vendor.clone()),
    };
    Some(UsbDevice {
        device_num,
        bus_num,
        usb_location: format!("{bus_num}:{device_num}"),
        manufacturer: text("manufacturer").or(known_vendor),
        product: text("product").or(known_product),
        serial: text("serial"),
        class: named(&[&class]),
        subclass: named(&[&class, &subclass]),
        protocol: named(&[&class, &subclass, &protocol]),
        description,
        vendor_id,
        product_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;

    #[test]
    fn devices_are_described_by_themselves_and_by_the_list() {
        let (_keep, roots) = tree(&[
            ("/sys/bus/usb/devices/1-1/bDeviceClass", "02\n"),
            ("/sys/bus/usb/devices/1-1/bDeviceSubClass", "02\n"),
            ("/sys/bus/usb/devices/1-1/bDeviceProtocol", "01\n"),
            ("/sys/bus/usb/devices/1-1/devnum", "7\n"),
            ("/sys/bus/usb/devices/1-1/busnum", "1\n"),
            ("/sys/bus/usb/devices/1-1/idVendor", "0483\n"),
            ("/sys/bus/usb/devices/1-1/idProduct", "5740\n"),
            ("/sys/bus/usb/devices/1-1/manufacturer", "Klipper\n"),
            ("/sys/bus/usb/devices/1-1:1.0/bInterfaceClass", "02\n"),
            ("/sys/bus/usb/devices/usb1/bDeviceClass", "00\n"),
            ("/sys/bus/usb/devices/usb1/devnum", "1\n"),
            ("/sys/bus/usb/devices/usb1/busnum", "1\n"),
            ("/sys/bus/usb/devices/usb1/idVendor", "1D6B\n"),
            ("/sys/bus/usb/devices/usb1/idProduct", "0002\n"),
        ]);
        let found =
            list(&roots, &UsbIds::parse("0483  STMicroelectronics\n\t5740  Virtual COM Port\nC 02  Communications\nC 00  (Interface)\n"));
        assert_eq!(found.len(), 2);
        let board = serde_json::to_value(&found[0]).unwrap();
        assert_eq!(
            (&board["manufacturer"], &board["product"], &board["serial"]),
            (&"Klipper".into(), &"Virtual COM Port".into(), &serde_json::Value::Null)
        );
        assert_eq!(
            (&board["class"], &board["usb_location"], &board["description"]),
            (&"Communications".into(), &"1:7".into(), &"STMicroelectronics Virtual COM Port".into())
        );
        let hub = &found[1];
        assert_eq!((hub.vendor_id.as_str(), hub.class.as_ref(), hub.manufacturer.as_ref()), ("1d6b", None, None));
    }
}
