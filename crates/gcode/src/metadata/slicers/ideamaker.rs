//! ideaMaker: header and footer of `;Key: value` lines; the weight is computed from lengths and densities.

use std::f64::consts::PI;

use crate::metadata::area::{Area, Areas, float, sum};
use crate::metadata::fields::{Metadata, Number};
use crate::metadata::pattern::{is_space, number_length};

/// Density is in kg/m³ and the volume in mm³: this many make a gram.
const CUBIC_MILLIMETRES_TIMES_DENSITY_PER_GRAM: f64 = 1_000_000.0;

/// Fills the fields.
pub(super) fn fill(areas: &Areas<'_>, out: &mut Metadata) {
    let Areas { head, tail } = *areas;
    out.object_height = head.after(";Bounding Box:").and_then(last_of_run);
    out.estimated_time = tail.float(";Print·Time:·⟨F⟩").map(Number::Float);
    out.nozzle_diameter = head.float(";Dimension:·⟨F+⟩·⟨F+⟩·⟨F+⟩·⟨F⟩");
    out.layer_height = head.float(";LAYER:1·+⟨S+⟩·+;HEIGHT:⟨F⟩");
    out.first_layer_height = head.float(";LAYER:0·+⟨S+⟩·+;HEIGHT:⟨F⟩");
    out.first_layer_extr_temp = head.float("M109 T0 S⟨F⟩");
    out.first_layer_bed_temp = head.float("M190 S⟨F⟩");
    out.chamber_temp = head.float("M191 S⟨F⟩");
    out.filament_name = head.string(";Filament·Name·¿⟨D+⟩:·⟨S⟩").or_else(|| head.string(";Filament·name·=·⟨S⟩"));
    out.filament_type = head.string(";Filament·Type·¿⟨D+⟩:·⟨S⟩").or_else(|| head.string(";Filament·type·=·⟨S⟩"));
    let lengths = tail.every_float(";Material¿⟨D+⟩·Used:·+⟨F⟩");
    out.filament_total = sum(&lengths);
    out.filament_weight_total = weight(head, &lengths);
}

/// The last of the numbers that follow, separated by nothing but white space.
fn last_of_run(area: Area<'_>) -> Option<f64> {
    let mut last = None;
    let mut rest = area.0;
    loop {
        let spaces = rest.iter().take_while(|byte| is_space(**byte)).count();
        rest = &rest[spaces..];
        let digits = rest.strip_prefix(b"-").unwrap_or(rest);
        let length = number_length(digits);
        if spaces == 0 || length == 0 {
            return last;
        }
        last = float(&digits[..length]);
        rest = &digits[length..];
    }
}

/// Grams of all materials; nothing unless every length has a diameter and a density.
fn weight(head: Area<'_>, lengths: &[f64]) -> Option<f64> {
    let diameters = head.every_float(";Filament·Diameter·¿⟨D+⟩:·+⟨F⟩");
    let densities = head.every_float(";Filament·Density·¿⟨D+⟩:·+⟨F⟩");
    if diameters.len() != lengths.len() || densities.len() != lengths.len() {
        return None;
    }
    let weights: Vec<f64> = diameters
        .iter()
        .zip(lengths)
        .zip(&densities)
        .map(|((diameter, length), density)| PI / 4.0 * diameter * diameter * length * density / CUBIC_MILLIMETRES_TIMES_DENSITY_PER_GRAM)
        .collect();
    sum(&weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Metadata {
        let area = Area(text.as_bytes());
        let mut out = Metadata::default();
        fill(&Areas { head: area, tail: area }, &mut out);
        out
    }

    #[test]
    fn weight_needs_all_three_lists() {
        let one = ";Filament Diameter #1: 2\n;Filament Density #1: 1000\n;Material#1 Used: 1000\n";
        assert!((filled(one).filament_weight_total.unwrap() - PI).abs() < 1e-12);
        assert_eq!(filled(&format!("{one};Material#2 Used: 5\n")).filament_weight_total, None);
    }

    #[test]
    fn height_is_the_last_corner() {
        assert_eq!(filled(";Bounding Box: -5.0 123.5\t0.0 9.32\n;x 7\n").object_height, Some(9.32));
        assert_eq!(filled(";Bounding Box:").object_height, None);
    }

    #[test]
    fn layer_heights() {
        let found = filled(";LAYER:0\n;WIDTH:0.4\n;HEIGHT:0.3\n;LAYER:10\n;W\n;HEIGHT:9\n;LAYER:1\n;WIDTH:0.4\n;HEIGHT:0.15\n");
        assert_eq!((found.first_layer_height, found.layer_height), (Some(0.3), Some(0.15)));
    }

    #[test]
    fn both_spellings_of_filaments() {
        assert_eq!(filled(";Filament Name #1: Red\n").filament_name.as_deref(), Some("Red"));
        assert_eq!(filled(";Filament type = PLA\n").filament_type.as_deref(), Some("PLA"));
    }
}
