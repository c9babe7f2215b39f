//! Slic3r and its Prusa Edition: the rules of the family they began, with their own filament lines.

use super::prusaslicer;
use crate::metadata::area::Areas;
use crate::metadata::fields::Metadata;

/// Metres in the file, millimetres in the answer.
const MILLIMETRES_PER_METRE: f64 = 1000.0;

/// Slic3r writes no time estimate.
pub(super) fn fill(areas: &Areas<'_>, out: &mut Metadata) {
    prusaslicer::fill(areas, areas.tail, out);
    out.estimated_time = None;
    out.filament_total = areas.tail.float(";·filament_length_m·=·⟨F⟩").map(|metres| metres * MILLIMETRES_PER_METRE);
    out.filament_weight_total = areas.tail.float(";·filament·mass_g·=·⟨F⟩");
}

/// The Prusa Edition.
pub(super) fn fill_prusa_edition(areas: &Areas<'_>, out: &mut Metadata) {
    prusaslicer::fill(areas, areas.tail, out);
    out.filament_total = areas.tail.float("filament·used·=·⟨F⟩mm");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::area::Area;
    use crate::metadata::fields::Number;

    #[test]
    fn own_filament_lines() {
        let area = Area(
            b"; estimated printing time = 5s\n; filament_length_m = 0.25\n; filament mass_g = 3.5\n; filament used = 12.5mm (0.1cm3)\n",
        );
        let areas = Areas { head: area, tail: area };
        let (mut plain, mut prusa) = (Metadata::default(), Metadata::default());
        fill(&areas, &mut plain);
        fill_prusa_edition(&areas, &mut prusa);
        assert_eq!((plain.estimated_time, plain.filament_total, plain.filament_weight_total), (None, Some(250.0), Some(3.5)));
        assert_eq!((prusa.estimated_time, prusa.filament_total), (Some(Number::Int(5)), Some(12.5)));
    }
}
