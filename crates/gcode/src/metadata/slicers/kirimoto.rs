//! Kiri:Moto and SimplyPrint, which is built on it.

use crate::metadata::area::{Area, Areas};
use crate::metadata::fields::{Metadata, Number};
use crate::metadata::pattern::Pattern;

/// Fills the fields.
pub(super) fn fill(areas: &Areas<'_>, out: &mut Metadata) {
    let Areas { head, tail } = *areas;
    out.layer_count = last_layer(tail).and_then(|last| last.checked_add(1));
    let heights = [tail.largest("G1 Z⟨F⟩ ; z-hop end"), tail.largest("G1 Z⟨F⟩ F⟨D+⟩¶")];
    out.object_height = heights.into_iter().flatten().reduce(f64::max);
    out.estimated_time = tail.integer("; --- print time: ⟨D⟩s").map(Number::Int);
    out.layer_height = head.float("; sliceHeight = ⟨F⟩");
    out.first_layer_height = head.float("; firstSliceHeight = ⟨F⟩");
    out.first_layer_extr_temp = head.float("; firstLayerNozzleTemp = ⟨F⟩");
    out.first_layer_bed_temp = head.float("; firstLayerBedTemp = ⟨F⟩");
    out.filament_total = tail.float("; --- filament used: ⟨F⟩ mm");
}

/// Layers are counted from 0.
fn last_layer(tail: Area<'_>) -> Option<u64> {
    let found = Pattern::new(";; --- layer ⟨D⟩ (").find_all(tail.0).last()?;
    std::str::from_utf8(&tail.0[found.captured]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_and_heights() {
        let tail = Area(
            b";; --- layer 0 (0.25)\nG1 Z0.45 F300\nG1 Z9 F300 E1\n;; --- layer 1 (0.2)\nG1 Z0.85 ; z-hop end\n; --- print time: 806s\n",
        );
        let mut out = Metadata::default();
        fill(&Areas { head: Area(b""), tail }, &mut out);
        assert_eq!((out.layer_count, out.object_height), (Some(2), Some(0.85)));
        assert_eq!(out.estimated_time, Some(Number::Int(806)));
    }
}
