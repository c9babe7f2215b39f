//! Names that the system gives devices by where they are plugged in and by what they are: links in a folder.

use std::path::Path;

use crate::Roots;

/// The link in `folder` that leads to the device file of this name, as an absolute path of the machine.
pub(super) fn to(roots: &Roots, folder: &str, device: &str) -> Option<String> {
    let name = roots.names(folder).into_iter().find(|name| {
        let target = std::fs::read_link(roots.path(&format!("{folder}/{name}")));
        target.is_ok_and(|target| target.file_name().is_some_and(|target| target == device))
    })?;
    Some(format!("{folder}/{name}"))
}

/// `bus:device` of the USB device that a folder of `/sys` belongs to.
pub(super) fn usb_location(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find_map(|parent| {
        let number = |name: &str| crate::roots::text_of(&parent.join(name))?.parse::<u32>().ok();
        Some(format!("{}:{}", number("busnum")?, number("devnum")?))
    })
}

/// Last part of where a link leads.
pub(super) fn target_name(path: &Path) -> Option<String> {
    std::fs::read_link(path).ok()?.file_name()?.to_str().map(str::to_owned)
}
