//! The SD card that the machine runs from: its identification and size registers, as the SD specification lays them out.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Roots;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub(crate) struct SdCard {
    manufacturer_id: String,
    manufacturer: &'static str,
    oem_id: String,
    product_name: String,
    product_revision: String,
    serial_number: String,
    /// Month and year.
    manufacturer_date: String,
    capacity: String,
    total_bytes: u64,
}

const MANUFACTURERS: &[(u8, &str)] = &[(0x1b, "Samsung"), (0x03, "Sandisk"), (0x74, "PNY")];

/// None when the machine has no card.
pub(super) fn read(roots: &Roots) -> Option<SdCard> {
    let register = |name: &str| register(&roots.text(&format!("/sys/block/mmcblk0/device/{name}"))?);
    let cid = register("cid")?;
    let (capacity, total_bytes) = register("csd").and_then(|csd| size(&csd)).unwrap_or_else(|| ("Unknown".to_owned(), 0));
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let year = 2000 + (u32::from(cid[13] & 0xf) << 4 | u32::from(cid[14] >> 4));
    Some(SdCard {
        manufacturer_id: hexadecimal(&cid[..1]),
        manufacturer: MANUFACTURERS.iter().find(|(id, _)| *id == cid[0]).map_or("Unknown", |(_, name)| name),
        oem_id: hexadecimal(&cid[1..3]),
        product_name: cid[3..8].iter().filter(|byte| byte.is_ascii_graphic() || **byte == b' ').map(|byte| char::from(*byte)).collect(),
        product_revision: format!("{}.{}", cid[8] >> 4, cid[8] & 0xf),
        serial_number: hexadecimal(&cid[9..13]),
        manufacturer_date: format!("{}/{year}", cid[14] & 0xf),
        capacity,
        total_bytes,
    })
}

/// 16 bytes as 32 hexadecimal digits.
fn register(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Capacity as a text, and in bytes; none for layouts that nobody knows.
fn size(csd: &[u8; 16]) -> Option<(String, u64)> {
    let byte = |index: usize| u64::from(csd[index]);
    let (bytes, unit, exponent) = match csd[0] >> 6 {
        0 => {
            let blocks = ((byte(6) & 0x3) << 10 | byte(7) << 2 | byte(8) >> 6) + 1;
            let multiplier = (byte(9) & 0x3) << 1 | byte(10) >> 7;
            (blocks << (multiplier + 2) << (byte(5) & 0xf), "MiB", 20)
        }
        1 => (((byte(7) & 0x3f) << 16 | byte(8) << 8 | byte(9)).saturating_add(1) << 19, "GiB", 30),
        2 => (((byte(6) & 0x0f) << 24 | byte(7) << 16 | byte(8) << 8 | byte(9)).saturating_add(1) << 19, "TiB", 40),
        _ => return None,
    };
    Some((format!("{:.1} {unit}", bytes as f64 / f64::from(1u32 << (exponent - 10)) / 1024.0), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;
    use proptest::prelude::*;

    #[test]
    fn a_card_is_described() {
        let card = read(
            &tree(&[
                ("/sys/block/mmcblk0/device/cid", "035344534333324780a1b2c3d4014700\n"),
                ("/sys/block/mmcblk0/device/csd", "400e00325b590000edc87f800a404000\n"),
            ])
            .1,
        )
        .unwrap();
        assert_eq!((card.manufacturer_id.as_str(), card.manufacturer, card.oem_id.as_str()), ("03", "Sandisk", "5344"));
        assert_eq!((card.product_name.as_str(), card.product_revision.as_str(), card.serial_number.as_str()), ("SC32G", "8.0", "a1b2c3d4"));
        assert_eq!((card.manufacturer_date.as_str(), card.capacity.as_str(), card.total_bytes), ("7/2020", "29.7 GiB", 31_914_983_424));
    }

    #[test]
    fn the_other_layouts_are_known() {
        let sized = |text: &str| size(&register(text).unwrap());
        assert_eq!(sized("00000000005a03b48003000000000000"), Some(("948.8 MiB".to_owned(), 994_836_480)));
        assert_eq!(sized("80000000000000400004000000000000"), Some(("2.0 TiB".to_owned(), 2_199_025_876_992)));
    }

    #[test]
    fn no_card_and_damaged_registers() {
        assert_eq!(read(&tree(&[]).1), None);
        assert_eq!(read(&tree(&[("/sys/block/mmcblk0/device/cid", "03")]).1), None);
        let unknown =
            read(&tree(&[("/sys/block/mmcblk0/device/cid", &"f".repeat(32)), ("/sys/block/mmcblk0/device/csd", &"f".repeat(32))]).1)
                .unwrap();
        assert_eq!((unknown.capacity.as_str(), unknown.total_bytes, unknown.manufacturer), ("Unknown", 0, "Unknown"));
    }

    proptest! {
        #[test]
        fn any_register_is_read_without_panic(csd in any::<[u8; 16]>(), text in ".{0,40}") {
            let _ = (size(&csd), register(&text));
        }
    }
}
