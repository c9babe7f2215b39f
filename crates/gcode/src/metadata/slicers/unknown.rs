//! Files of no known slicer: what the commands themselves tell.

use crate::metadata::area::Areas;
use crate::metadata::fields::Metadata;

/// Fills the fields.
pub(super) fn fill(areas: &Areas<'_>, out: &mut Metadata) {
    out.object_height = areas.tail.largest("G1·Z⟨F⟩·");
    out.first_layer_height = areas.head.smallest("G1·Z⟨F⟩·");
    out.first_layer_extr_temp = areas.head.float("M109 S⟨F⟩");
    out.first_layer_bed_temp = areas.head.float("M190 S⟨F⟩");
    out.chamber_temp = areas.head.float("M191 S⟨F⟩");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::area::Area;

    #[test]
    fn commands_only() {
        let area = Area(b"M109 S210\nM190 S60\nM191 S35\nG1 Z0.3 F1\nG1 Z4.5 F1\n");
        let mut out = Metadata::default();
        fill(&Areas { head: area, tail: area }, &mut out);
        assert_eq!((out.first_layer_height, out.object_height), (Some(0.3), Some(4.5)));
        assert_eq!((out.first_layer_extr_temp, out.first_layer_bed_temp, out.chamber_temp), (Some(210.0), Some(60.0), Some(35.0)));
    }
}
