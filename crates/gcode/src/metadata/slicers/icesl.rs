//! IceSL: `; key : <tab>value` lines at the head.

use crate::metadata::area::Areas;
use crate::metadata::fields::{Metadata, Number};

/// Fills the fields.
pub(super) fn fill(areas: &Areas<'_>, out: &mut Metadata) {
    let head = areas.head;
    let float = |key: &str| head.float(&format!(";·{key}·:·+⟨F⟩"));
    let string = |key: &str| head.string(&format!(";·{key}·:·+⟨S⟩"));
    out.layer_count = head.integer(";·layer_count·:·+⟨D⟩");
    out.object_height = float("print_height_mm");
    out.estimated_time = float("estimated_print_time_s").map(Number::Float);
    out.nozzle_diameter = float("nozzle_diameter_mm_0");
    out.layer_height = float("z_layer_height_mm");
    out.first_layer_height = float("z_layer_height_first_layer_mm");
    out.first_layer_extr_temp = float("extruder_temp_degree_c_0");
    out.first_layer_bed_temp = float("bed_temp_degree_c");
    out.chamber_temp = float("chamber_temp_degree_c");
    out.filament_name = string("filament_name");
    out.filament_type = string("filament_type");
    out.filament_total = float("filament_used_mm");
    out.filament_weight_total = float("filament_used_g");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::area::Area;

    #[test]
    fn keys_and_tabs() {
        let head = Area(b"; layer_count : \t120\n; print_height_mm :  \t24.5\n; filament_name : \tmine\n; bed_temp_degree_c :60\n");
        let mut out = Metadata::default();
        fill(&Areas { head, tail: Area(b"") }, &mut out);
        assert_eq!((out.layer_count, out.object_height, out.filament_name.as_deref()), (Some(120), Some(24.5), Some("mine")));
        assert_eq!(out.first_layer_bed_temp, None, "a white space must follow the colon");
    }
}
