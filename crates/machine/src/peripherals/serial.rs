//! Serial ports.

use schemars::JsonSchema;
use serde::Serialize;

use super::{MAX_DEVICES, links};
use crate::Roots;

/// A serial port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct SerialDevice {
    /// `hardware_uart`, `usb` or `unknown`.
    device_type: &'static str,
    device_path: String,
    device_name: String,
    driver_name: String,
    path_by_hardware: Option<String>,
    path_by_id: Option<String>,
    usb_location: Option<String>,
}

const FOLDER: &str = "/sys/class/tty";

/// The driver that offers ports whether they exist or not.
const PHANTOM_DRIVER: &str = "serial8250";

pub(super) fn list(roots: &Roots) -> Vec<SerialDevice> {
    roots.names(FOLDER).iter().filter_map(|name| device(roots, name)).take(MAX_DEVICES).collect()
}

fn device(roots: &Roots, name: &str) -> Option<SerialDevice> {
    let folder = roots.path(&format!("{FOLDER}/{name}"));
    let hardware = folder.join("device");
    if !hardware.exists() {
        return None;
    }
    let driver_name = links::target_name(&hardware.join("driver"))?;
    let text = |file: &str| roots.text(&format!("{FOLDER}/{name}/{file}"));
    let usb_location = links::usb_location(&hardware);
    let is_uart = text("uartclk").is_some() && text("port").is_some();
    let device_type = if is_uart {
        // A machine without such ports has them nevertheless, at no address.
        let has_address = text("port").is_some_and(|port| port.trim_start_matches("0x").bytes().any(|digit| digit != b'0'));
        let has_memory = text("iomem_base").is_some_and(|base| base.trim_start_matches("0x").bytes().any(|digit| digit != b'0'));
        if driver_name == PHANTOM_DRIVER && !has_address && !has_memory {
            return None;
        }
        "hardware_uart"
    } else if usb_location.is_some() {
        "usb"
    } else {
        "unknown"
    };
    Some(SerialDevice {
        device_type,
        device_path: format!("/dev/{name}"),
        device_name: name.to_owned(),
        driver_name,
        path_by_hardware: links::to(roots, "/dev/serial/by-path", name),
        path_by_id: links::to(roots, "/dev/serial/by-id", name),
        usb_location,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;
    use std::os::unix::fs::symlink;

    #[test]
    fn ports_are_told_apart() {
        let usb = "/sys/devices/pci0/usb1/1-1";
        let (_keep, roots) = tree(&[
            (&format!("{usb}/busnum"), "1\n"),
            (&format!("{usb}/devnum"), "7\n"),
            (&format!("{usb}/1-1:1.0/tty/ttyACM0/dev"), "166:0\n"),
            ("/sys/class/tty/ttyAMA0/device/x", ""),
            ("/sys/class/tty/ttyAMA0/uartclk", "48000000\n"),
            ("/sys/class/tty/ttyAMA0/port", "0x0\n"),
            ("/sys/class/tty/ttyS0/device/x", ""),
            ("/sys/class/tty/ttyS0/uartclk", "1843200\n"),
            ("/sys/class/tty/ttyS0/port", "0x0\n"),
            ("/sys/class/tty/tty0/dev", "4:0\n"),
            ("/dev/serial/by-id/keep", ""),
        ]);
        let link = |target: &str, path: &str| symlink(target, roots.path(path)).unwrap();
        link("../../devices/pci0/usb1/1-1/1-1:1.0/tty/ttyACM0", "/sys/class/tty/ttyACM0");
        symlink(roots.path(&format!("{usb}/1-1:1.0")), roots.path(&format!("{usb}/1-1:1.0/tty/ttyACM0/device"))).unwrap();
        link("/drivers/cdc_acm", &format!("{usb}/1-1:1.0/driver"));
        link("/drivers/uart-pl011", "/sys/class/tty/ttyAMA0/device/driver");
        link("/drivers/serial8250", "/sys/class/tty/ttyS0/device/driver");
        link("../../ttyACM0", "/dev/serial/by-id/usb-Klipper_stm32-if00");
        let found = list(&roots);
        assert_eq!(found.iter().map(|device| device.device_name.as_str()).collect::<Vec<_>>(), ["ttyACM0", "ttyAMA0"]);
        let board = &found[0];
        assert_eq!((board.device_type, board.driver_name.as_str(), board.device_path.as_str()), ("usb", "cdc_acm", "/dev/ttyACM0"));
        assert_eq!(board.path_by_id.as_deref(), Some("/dev/serial/by-id/usb-Klipper_stm32-if00"));
        assert_eq!(
            (board.usb_location.as_deref(), found[1].device_type, found[1].usb_location.is_none()),
            (Some("1:7"), "hardware_uart", true)
        );
    }

    #[test]
    fn a_machine_without_ports_has_an_empty_list() {
        assert_eq!(list(&tree(&[]).1), []);
    }
}
