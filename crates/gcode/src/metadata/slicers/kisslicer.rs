//! KISSlicer: settings at the head, sums at the end.

use crate::metadata::area::{Areas, floats, rounded};
use crate::metadata::fields::{Metadata, Number};
use crate::metadata::pattern::Pattern;

const SECONDS_PER_MINUTE: f64 = 60.0;

/// Fills the fields.
pub(super) fn fill(areas: &Areas<'_>, out: &mut Metadata) {
    let Areas { head, tail } = *areas;
    out.object_height = tail.largest(";·END_LAYER_OBJECT·z=⟨F⟩");
    out.estimated_time = tail.captured(";·Calculated⟨S⟩").and_then(build_time).map(Number::Float);
    out.layer_height = head.float(";·+max_layer_thickness_mm·=·⟨F⟩");
    out.first_layer_height = head.float(";·+first_layer_thickness_mm·=·⟨F⟩");
    out.first_layer_extr_temp = head.float("; first_layer_C = ⟨F⟩");
    out.first_layer_bed_temp = head.float("; bed_C = ⟨F⟩");
    out.chamber_temp = head.float("; chamber_C = ⟨F⟩");
    out.filament_total = tail.sum(";·+Ext #⟨D+⟩·+=·+⟨F⟩·*mm");
}

/// Seconds of the minutes at the end of the line, to two decimals.
fn build_time(line: &[u8]) -> Option<f64> {
    let found = Pattern::new("Build·Time:·⟨F⟩·minutes").find(line, 0)?;
    let minutes = floats(&line[found.captured]).first().copied()?;
    rounded(minutes * SECONDS_PER_MINUTE, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::area::Area;

    #[test]
    fn sums_and_times() {
        let area = Area(
            b"; Calculated-during-export Build Time: 12.345 minutes\n;   Ext #1  =  10.5 mm\n; Ext #2 = 2mm\n; END_LAYER_OBJECT z=4.75\n",
        );
        let mut out = Metadata::default();
        fill(&Areas { head: Area(b""), tail: area }, &mut out);
        assert_eq!(out.estimated_time, Some(Number::Float(740.7)));
        assert_eq!((out.filament_total, out.object_height), (Some(12.5), Some(4.75)));
    }
}
