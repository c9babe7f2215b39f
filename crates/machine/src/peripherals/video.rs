//! Cameras that the kernel's video interface (V4L2) offers, with what they can deliver.
//!
//! ```text
//! names in /sys/class/video4linux ─► probe (asks the device) ─► describe (pure)
//! ```

use std::panic::catch_unwind;
use std::path::Path;

use linuxvideo::format::FrameSizes;
use linuxvideo::{BufType, Device};
use schemars::JsonSchema;
use serde::Serialize;

use super::{MAX_DEVICES, links};
use crate::Roots;

/// Formats of a device, and sizes of a format, that are listed.
const MAX_MODES: usize = 128;

/// A camera.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct VideoDevice {
    device_name: String,
    device_path: String,
    camera_name: String,
    driver_name: String,
    hardware_bus: String,
    modes: Vec<Mode>,
    capabilities: Vec<&'static str>,
    /// Three numbers.
    version: String,
    path_by_hardware: Option<String>,
    path_by_id: Option<String>,
    alt_name: Option<String>,
    usb_location: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct Mode {
    format: String,
    description: String,
    flags: Vec<&'static str>,
    /// `WIDTHxHEIGHT`.
    resolutions: Vec<String>,
}

/// What a device says about itself.
#[derive(Debug, Clone, Default)]
struct Facts {
    driver: String,
    card: String,
    bus: String,
    capabilities: u32,
    formats: Vec<Format>,
}

#[derive(Debug, Clone, Default)]
struct Format {
    code: [u8; 4],
    description: String,
    flags: u32,
    sizes: Vec<(u32, u32)>,
}

const VIDEO_CAPTURE: u32 = 1;

const CAPABILITIES: &[(u32, &str)] = &[
    (VIDEO_CAPTURE, "VIDEO_CAPTURE"),
    (0x2, "VIDEO_OUTPUT"),
    (0x4, "VIDEO_OVERLAY"),
    (0x10, "VBI_CAPTURE"),
    (0x20, "VBI_OUTPUT"),
    (0x40, "SLICED_VBI_CAPTURE"),
    (0x80, "SLICED_VBI_OUTPUT"),
    (0x100, "RDS_CAPTURE"),
    (0x200, "VIDEO_OUTPUT_OVERLAY"),
    (0x400, "HW_FREQ_SEEK"),
    (0x800, "RDS_OUTPUT"),
    (0x1000, "VIDEO_CAPTURE_MPLANE"),
    (0x2000, "VIDEO_OUTPUT_MPLANE"),
    (0x4000, "VIDEO_M2M_MPLANE"),
    (0x8000, "VIDEO_M2M"),
    (0x1_0000, "TUNER"),
    (0x2_0000, "AUDIO"),
    (0x4_0000, "RADIO"),
    (0x8_0000, "MODULATOR"),
    (0x10_0000, "SDR_CAPTURE"),
    (0x20_0000, "EXT_PIX_FORMAT"),
    (0x40_0000, "SDR_OUTPUT"),
    (0x80_0000, "META_CAPTURE"),
    (0x100_0000, "READWRITE"),
    (0x400_0000, "STREAMING"),
    (0x800_0000, "META_OUTPUT"),
    (0x1000_0000, "TOUCH"),
    (0x2000_0000, "IO_MC"),
    (0x8000_0000, "SET_DEVICE_CAPS"),
];

const FORMAT_FLAGS: &[(u32, &str)] = &[(1, "COMPRESSED"), (2, "EMULATED")];

const FOLDER: &str = "/sys/class/video4linux";

pub(super) fn list(roots: &Roots) -> Vec<VideoDevice> {
    let mut names = roots.names(FOLDER);
    names.sort_by_key(|name| name.trim_start_matches(|character: char| !character.is_ascii_digit()).parse::<u32>().unwrap_or(u32::MAX));
    let devices = names.iter().filter_map(|name| describe(roots, name, &probe(&roots.path(&format!("/dev/{name}")))?));
    devices.take(MAX_DEVICES).collect()
}

/// Asks the device. A name that is no text makes the library panic: such a device is left out.
fn probe(path: &Path) -> Option<Facts> {
    catch_unwind(|| ask(path)).unwrap_or_else(|_| Err(std::io::ErrorKind::InvalidData.into())).ok()
}

fn ask(path: &Path) -> std::io::Result<Facts> {
    let device = Device::open(path)?;
    let about = device.capabilities()?;
    let formats = device.formats(BufType::VIDEO_CAPTURE).take(MAX_MODES).filter_map(Result::ok).map(|format| {
        let sizes = match device.frame_sizes(format.pixel_format()) {
            Ok(FrameSizes::Discrete(sizes)) => sizes.iter().take(MAX_MODES).map(|size| (size.width(), size.height())).collect(),
            _ => Vec::new(),
        };
        let (code, flags) = (format.pixel_format().as_fourcc(), format.flags().bits());
        Format { code, description: format.description().to_owned(), flags, sizes }
    });
    Ok(Facts {
        driver: about.driver().to_owned(),
        card: about.card().to_owned(),
        bus: about.bus_info().to_owned(),
        capabilities: about.device_capabilities().bits(),
        formats: formats.collect(),
    })
}

/// None for devices that deliver no pictures.
fn describe(roots: &Roots, name: &str, facts: &Facts) -> Option<VideoDevice> {
    if facts.capabilities & VIDEO_CAPTURE == 0 {
        return None;
    }
    let modes = facts.formats.iter().filter(|format| !format.sizes.is_empty()).map(|format| Mode {
        format: format.code.iter().map(|byte| char::from(*byte)).collect::<String>().trim_end().to_owned(),
        description: format.description.clone(),
        flags: named(FORMAT_FLAGS, format.flags),
        resolutions: format.sizes.iter().map(|(width, height)| format!("{width}x{height}")).collect(),
    });
    Some(VideoDevice {
        device_name: name.to_owned(),
        device_path: format!("/dev/{name}"),
        camera_name: facts.card.clone(),
        driver_name: facts.driver.clone(),
        hardware_bus: facts.bus.clone(),
        modes: modes.collect(),
        capabilities: named(CAPABILITIES, facts.capabilities),
        version: kernel_version(roots),
        path_by_hardware: links::to(roots, "/dev/v4l/by-path", name),
        path_by_id: links::to(roots, "/dev/v4l/by-id", name),
        alt_name: roots.text(&format!("{FOLDER}/{name}/name")),
        usb_location: links::usb_location(&roots.path(&format!("{FOLDER}/{name}/device"))),
    })
}

/// Drivers of the kernel have the kernel's version.
fn kernel_version(roots: &Roots) -> String {
    let release = roots.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let numbers = release.split(|character: char| !character.is_ascii_digit()).take(3);
    numbers.map(|number| if number.is_empty() { "0" } else { number }).collect::<Vec<_>>().join(".")
}

fn named(names: &[(u32, &'static str)], bits: u32) -> Vec<&'static str> {
    names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;

    #[test]
    fn cameras_are_described() {
        let (_keep, roots) = tree(&[
            ("/sys/class/video4linux/video0/name", "HD Camera: HD\n"),
            ("/sys/class/video4linux/video0/device/x", ""),
            ("/sys/class/video4linux/busnum", "3"),
            ("/sys/class/video4linux/devnum", "9"),
            ("/proc/sys/kernel/osrelease", "6.1.21-v8+\n"),
            ("/dev/v4l/by-id/keep", ""),
        ]);
        std::os::unix::fs::symlink("../../video0", roots.path("/dev/v4l/by-id/usb-HD-index0")).unwrap();
        let format =
            |code: &[u8; 4], flags, sizes: &[(u32, u32)]| Format { code: *code, description: "d".into(), flags, sizes: sizes.into() };
        let facts = Facts {
            driver: "uvcvideo".into(),
            card: "HD Camera".into(),
            capabilities: 0x0420_0001,
            formats: vec![format(b"MJPG", 1, &[(1920, 1080), (640, 480)]), format(b"Y16 ", 0, &[]), format(b"Y16 ", 0, &[(1, 2)])],
            ..Facts::default()
        };
        let camera = describe(&roots, "video0", &facts).unwrap();
        assert_eq!(camera.capabilities, ["VIDEO_CAPTURE", "EXT_PIX_FORMAT", "STREAMING"]);
        assert_eq!(
            (camera.modes.len(), camera.modes[0].resolutions.join(" "), camera.modes[0].flags.as_slice()),
            (2, "1920x1080 640x480".to_owned(), &["COMPRESSED"][..])
        );
        assert_eq!(
            (camera.modes[1].format.as_str(), camera.version.as_str(), camera.alt_name.as_deref()),
            ("Y16", "6.1.21", Some("HD Camera: HD"))
        );
        assert_eq!((camera.path_by_id.as_deref(), camera.usb_location.as_deref()), (Some("/dev/v4l/by-id/usb-HD-index0"), Some("3:9")));
        assert_eq!(describe(&roots, "video1", &Facts { capabilities: 0x80_0000, ..facts }), None);
    }

    #[test]
    fn files_that_are_no_cameras_are_left_out() {
        let (_keep, roots) = tree(&[("/sys/class/video4linux/video0/name", "x"), ("/dev/video0", "no camera")]);
        assert_eq!(list(&roots), []);
        assert_eq!(list(&tree(&[]).1), []);
    }
}
