//! Cura: a short header of `;KEY:value` lines, temperatures from the start commands.

use crate::metadata::area::{Areas, floats, sum, text};
use crate::metadata::fields::{Metadata, Number};

/// Metres in the file, millimetres in the answer.
const MILLIMETRES_PER_METRE: f64 = 1000.0;

/// Fills the fields.
pub(super) fn fill(areas: &Areas<'_>, out: &mut Metadata) {
    let head = areas.head;
    out.layer_count = head.integer(";LAYER_COUNT:⟨D⟩");
    out.object_height = head.float(";MAXZ:⟨F⟩");
    out.estimated_time = head.largest(";TIME:⟨F⟩").map(Number::Float);
    out.nozzle_diameter = head.float(";Nozzle·diameter·=·⟨F⟩");
    out.layer_height = head.float(";Layer·height:·⟨F⟩");
    out.first_layer_height = head.float(";MINZ:⟨F⟩");
    out.first_layer_extr_temp = head.float("M109 S⟨F⟩");
    out.first_layer_bed_temp = head.float("M190 S⟨F⟩");
    out.chamber_temp = head.float("M191 S⟨F⟩");
    out.filament_name = head.string(";Filament·name·=·⟨S⟩");
    out.filament_type = head.string(";Filament·type·=·⟨S⟩");
    out.filament_total = head.captured(";Filament·used:·⟨S⟩").and_then(length);
    out.filament_weights = head.captured(";Filament·weight·=·[⟨S⟩").and_then(weights);
    out.filament_weight_total = out.filament_weights.as_deref().and_then(sum);
}

/// Millimetres of `1.25m, 0.5m`. A volume (`4615.03mm3`, volumetric extrusion) is no length.
fn length(line: &[u8]) -> Option<f64> {
    if memchr::memmem::find(line, b"mm3").is_some() {
        return None;
    }
    let lengths: Vec<f64> = floats(line).iter().map(|metres| metres * MILLIMETRES_PER_METRE).collect();
    sum(&lengths)
}

/// Grams of `1.5, 0.25]`.
fn weights(line: &[u8]) -> Option<Vec<f64>> {
    let line = text(line);
    let (inside, _) = line.rsplit_once(']')?;
    Some(floats(inside.as_bytes())).filter(|weights| !weights.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::area::Area;

    fn filled(text: &str) -> Metadata {
        let mut out = Metadata::default();
        fill(&Areas { head: Area(text.as_bytes()), tail: Area(b"") }, &mut out);
        out
    }

    #[test]
    fn largest_time_is_the_total() {
        assert_eq!(filled(";TIME:20\n;TIME_ELAPSED:99\n;TIME:451\n;TIME:3\n").estimated_time, Some(Number::Float(451.0)));
    }

    #[test]
    fn filament_in_metres_but_not_in_volumes() {
        assert_eq!(filled(";Filament used: 1.25m, 0.5m\n").filament_total, Some(1750.0));
        assert_eq!(filled(";Filament used: 4615.03mm3\n").filament_total, None);
    }

    #[test]
    fn weights_are_summed() {
        let found = filled(";Filament weight = [1.5, 0.25]\n");
        assert_eq!((found.filament_weights, found.filament_weight_total), (Some(vec![1.5, 0.25]), Some(1.75)));
        assert_eq!(filled(";Filament weight = [.\n").filament_weights, None);
    }

    #[test]
    fn temperatures_need_a_plain_argument() {
        let found = filled("M104 S1\nM109 T0 S2\nM109 S210\nM190 S60\nM191 S40\n");
        assert_eq!((found.first_layer_extr_temp, found.first_layer_bed_temp, found.chamber_temp), (Some(210.0), Some(60.0), Some(40.0)));
    }
}
