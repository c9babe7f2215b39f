//! PrusaSlicer and its forks: settings as comments in the tail; the base for Slic3r and BambuStudio.

use crate::metadata::area::{Area, Areas, floats, rounded, sum, text};
use crate::metadata::fields::{Metadata, Number};
use crate::metadata::list;
use crate::metadata::pattern::{Pattern, number_length};

/// Fills all fields of the family; `config` is where this slicer keeps its settings.
pub(super) fn fill(areas: &Areas<'_>, config: Area<'_>, out: &mut Metadata) {
    out.layer_count = config.integer("; total layers count = ⟨D⟩");
    out.object_height = object_height(areas.tail);
    out.estimated_time = config.captured(";·estimated·printing·time⟨S⟩").and_then(duration).map(Number::Int);
    out.nozzle_diameter = config.float(";·nozzle_diameter·=·⟨F⟩");
    out.layer_height = config.float("; layer_height = ⟨F⟩");
    out.first_layer_height = first_layer_height(config, out.layer_height);
    out.first_layer_extr_temp = config.float("; first_layer_temperature = ⟨F⟩");
    out.first_layer_bed_temp = config.float("; first_layer_bed_temperature = ⟨F⟩");
    out.chamber_temp = config.float("; chamber_temperature = ⟨F⟩");
    fill_filaments(config, out);
    fill_profile(areas.tail, out);
}

fn fill_filaments(config: Area<'_>, out: &mut Metadata) {
    out.filament_name = config.list(";·filament_settings_id·=·⟨S⟩").and_then(list::one_or_json);
    out.filament_type = config.list(";·filament_type·=·⟨S⟩").and_then(list::one_or_json);
    // Clients have been tested with empty lists for these four, also when the setting is absent (section 3.4).
    out.filament_colors = Some(config.list(";·filament_colour·=·⟨S⟩").unwrap_or_default());
    out.extruder_colors = Some(config.list(";·extruder_colour·=·⟨S⟩").unwrap_or_default());
    out.filament_temps = list::integers(&temperatures(config));
    out.referenced_tools = list::integers(&config.list(";·referenced_tools·=·⟨S⟩").unwrap_or_default());
    out.mmu_print = config.integer(";·single_extruder_multi_material·=·⟨D⟩");
    out.filament_change_count = config.integer("; total toolchanges = ⟨D⟩").or_else(|| config.integer("; total filament change = ⟨D⟩"));
    out.filament_total = config.floats("filament·used·[mm]·=·⟨S⟩").and_then(|lengths| sum(&lengths));
    out.filament_weight_total = config.float("total·filament·used·[g]·=·⟨F⟩");
    out.filament_weights = config.floats("filament·used·[g]·=·⟨S⟩").filter(|weights| !weights.is_empty());
}

fn fill_profile(tail: Area<'_>, out: &mut Metadata) {
    out.printer_vendor = tail.string("; printer_vendor = ⟨S⟩");
    out.printer_model = tail.string("; printer_model = ⟨S⟩");
    out.printer_variant = tail.string("; printer_variant = ⟨S⟩");
    out.profile_version = tail.string("; profile_version = ⟨S⟩");
}

/// Largest height announced before a layer change; for files without such marks the largest plain Z move.
fn object_height(tail: Area<'_>) -> Option<f64> {
    let marks = Pattern::new(";BEFORE_LAYER_CHANGE¶");
    let heights = marks.find_all(tail.0).filter_map(|mark| height_below(tail.0.get(mark.end + 1..)?));
    heights.reduce(f64::max).or_else(|| tail.largest("G1·Z⟨F⟩·F"))
}

/// The height in a comment on the first line or the one below it.
fn height_below(lines: &[u8]) -> Option<f64> {
    lines.split(|&byte| byte == b'\n').take(2).find_map(|line| {
        let comment = line.strip_prefix(b";")?;
        floats(&comment[..number_length(comment)]).first().copied()
    })
}

/// The first two temperature settings have different names in different slicers; the earlier one counts.
fn temperatures(config: Area<'_>) -> Vec<String> {
    let settings = [";·temperature·=·⟨S⟩", ";·nozzle_temperature·=·⟨S⟩"];
    let found = settings.iter().filter_map(|setting| config.find(setting)).min_by_key(|found| found.captured.start);
    found.map(|found| list::elements(&text(&config.0[found.captured]))).unwrap_or_default()
}

/// A height in millimetres, or a percentage of the layer height.
fn first_layer_height(config: Area<'_>, layer_height: Option<f64>) -> Option<f64> {
    match config.float("; first_layer_height = ⟨F⟩%") {
        Some(percent) => rounded(percent / 100.0 * layer_height?, 6),
        None => config.float("; first_layer_height = ⟨F⟩"),
    }
}

/// Seconds of a text like `1d 3h 25m 7s`; nothing if it has none of the four units.
pub(super) fn duration(line: &[u8]) -> Option<u64> {
    let mut total = None;
    for (unit, seconds) in [(b'd', 86_400), (b'h', 3_600), (b'm', 60), (b's', 1)] {
        let Some(count) = digits_before(line, unit) else { continue };
        total = Some(count.checked_mul(seconds)?.checked_add(total.unwrap_or(0))?);
    }
    total
}

/// The first number directly before a unit.
fn digits_before(line: &[u8], unit: u8) -> Option<u64> {
    memchr::memchr_iter(unit, line).find_map(|end| {
        let digits = line[..end].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        text(&line[end - digits..end]).parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Metadata {
        let area = Area(text.as_bytes());
        let mut out = Metadata::default();
        fill(&Areas { head: area, tail: area }, area, &mut out);
        out
    }

    #[test]
    fn durations() {
        assert_eq!(duration(b" (normal mode) = 1d 2h 3m 4s"), Some(93_784));
        assert_eq!(duration(b" = 4s"), Some(4));
        assert_eq!(duration(b" (silent mode) = soon"), None);
        assert_eq!(duration(b" = 99999999999999999999d"), None);
        assert_eq!(duration(b" = 18446744073709551615d"), None);
    }

    #[test]
    fn normal_mode_counts() {
        let text = "; estimated printing time (normal mode) = 1m 1s\n; estimated printing time (silent mode) = 2m\n";
        assert_eq!(filled(text).estimated_time, Some(Number::Int(61)));
    }

    #[test]
    fn height_of_layers_or_moves() {
        let layers = ";BEFORE_LAYER_CHANGE\n;0.4\nG1 Z9 F1\n;BEFORE_LAYER_CHANGE\nG92 E0\n;12.5\n;BEFORE_LAYER_CHANGE\nA\nB\n;99\n";
        assert_eq!(filled(layers).object_height, Some(12.5));
        assert_eq!(filled("G1 Z3 F1\nG1 Z2.5 F1\nG1 Z8 E1\n").object_height, Some(3.0));
        assert_eq!(filled(";BEFORE_LAYER_CHANGE").object_height, None);
    }

    #[test]
    fn first_layer_in_percent() {
        let both = "; layer_height = 0.3\n; first_layer_height = 66.66%\n";
        assert_eq!(filled(both).first_layer_height, Some(0.199_98));
        assert_eq!(filled("; first_layer_height = 50%\n").first_layer_height, None);
        assert_eq!(filled("; first_layer_height = 0.35\n").first_layer_height, Some(0.35));
    }

    #[test]
    fn four_lists_are_present_even_when_empty() {
        let none = filled("");
        assert_eq!((none.filament_colors, none.extruder_colors), (Some(vec![]), Some(vec![])));
        assert_eq!((none.filament_temps, none.referenced_tools), (Some(vec![]), Some(vec![])));
        assert_eq!(filled("; temperature = 200,x\n").filament_temps, None);
        assert_eq!(filled("; nozzle_temperature = 210\n; temperature = 200\n").filament_temps, Some(vec![210]));
    }

    #[test]
    fn weights_and_lengths() {
        let text =
            "; filament used [mm] = 10.5, 2\n; filament used [g] = 1.5, 0.25\n; total filament used [g] = 1.75\n; total toolchanges = 3\n";
        let found = filled(text);
        assert_eq!(found.filament_total, Some(12.5));
        assert_eq!(found.filament_weights, Some(vec![1.5, 0.25]));
        assert_eq!(found.filament_weight_total, Some(1.75));
        assert_eq!(found.filament_change_count, Some(3));
    }
}
