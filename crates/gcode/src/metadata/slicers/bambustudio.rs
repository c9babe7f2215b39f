//! BambuStudio: the family's rules on the head, where it keeps its settings, and a header of its own.

use super::prusaslicer;
use crate::metadata::area::Areas;
use crate::metadata::fields::{Metadata, Number};

/// Fills the fields.
pub(super) fn fill(areas: &Areas<'_>, out: &mut Metadata) {
    let head = areas.head;
    prusaslicer::fill(areas, head, out);
    out.layer_count = head.integer("; total layer number: ⟨D⟩");
    out.object_height = head.float("; max_z_height: ⟨F⟩");
    out.first_layer_height = head.float("; initial_layer_print_height = ⟨F⟩");
    out.first_layer_extr_temp = head.float("; nozzle_temperature_initial_layer = ⟨F⟩");
    out.first_layer_bed_temp = head.float("; hot_plate_temp_initial_layer = ⟨F⟩");
    out.chamber_temp = head.float("; chamber_temperatures = ⟨F⟩");
    out.filament_total = head.float("; total filament length [mm] : ⟨F⟩");
    out.filament_weight_total = head.float("; total filament weight [g] : ⟨F⟩");
    out.filament_weights = None;
    if out.estimated_time.is_none() {
        // Up to 01.07 the time stands in the header only.
        out.estimated_time = head.captured("total estimated time:⟨S⟩").and_then(prusaslicer::duration).map(Number::Int);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::area::Area;

    #[test]
    fn time_of_old_versions() {
        let area = Area(b"; model printing time: 3h 31m 41s; total estimated time: 3h 37m 27s\n; max_z_height: 12.00\n");
        let mut out = Metadata::default();
        fill(&Areas { head: area, tail: Area(b"") }, &mut out);
        assert_eq!(out.estimated_time, Some(Number::Int(13_047)));
        assert_eq!(out.object_height, Some(12.0));
    }
}
