//! The sensor that tells the temperature of the processor.

use std::path::PathBuf;

use crate::Roots;

/// Drivers whose first input is the processor.
const DRIVERS: &[&str] = &["coretemp", "k10temp", "cpu_thermal"];

/// The file with thousandths of a degree, if the machine has one.
pub(super) fn file(roots: &Roots) -> Option<PathBuf> {
    let names = roots.names("/sys/class/hwmon");
    let is_processor = |name: &&String| {
        let driver = roots.text(&format!("/sys/class/hwmon/{name}/name"));
        driver.is_some_and(|driver| DRIVERS.contains(&driver.as_str()))
    };
    let sensor = names.iter().find(is_processor).map(|name| roots.path(&format!("/sys/class/hwmon/{name}/temp1_input")));
    sensor.or_else(|| Some(roots.path("/sys/class/thermal/thermal_zone0/temp"))).filter(|file| file.exists())
}

/// Degrees of a text in thousandths.
pub(super) fn degrees(text: &[u8]) -> Option<f64> {
    let thousandths: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    thousandths.is_finite().then_some(thousandths / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;
    use proptest::prelude::*;

    #[test]
    fn the_processors_sensor_is_preferred() {
        let (_keep, roots) = tree(&[
            ("/sys/class/hwmon/hwmon0/name", "nvme\n"),
            ("/sys/class/hwmon/hwmon0/temp1_input", "1"),
            ("/sys/class/hwmon/hwmon1/name", "k10temp\n"),
            ("/sys/class/hwmon/hwmon1/temp1_input", "2"),
            ("/sys/class/thermal/thermal_zone0/temp", "3"),
        ]);
        assert_eq!(file(&roots), Some(roots.path("/sys/class/hwmon/hwmon1/temp1_input")));
        let (_keep, roots) = tree(&[("/sys/class/thermal/thermal_zone0/temp", "3")]);
        assert_eq!(file(&roots), Some(roots.path("/sys/class/thermal/thermal_zone0/temp")));
        assert_eq!(file(&tree(&[]).1), None);
    }

    #[test]
    fn thousandths_become_degrees() {
        assert_eq!((degrees(b"48312\n"), degrees(b"-500"), degrees(b""), degrees(b"nan")), (Some(48.312), Some(-0.5), None, None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_number_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..30), text in " ?-?[0-9.einfa]{0,20}\n?") {
            prop_assert!(degrees(&bytes).is_none_or(f64::is_finite));
            prop_assert!(degrees(text.as_bytes()).is_none_or(f64::is_finite));
        }
    }
}
