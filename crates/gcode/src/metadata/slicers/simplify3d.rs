//! Simplify3D: a settings summary of `; key,value` lines at the head, a build summary at the end.

use crate::metadata::area::{Area, Areas, float, text};
use crate::metadata::fields::{Metadata, Number};
use crate::metadata::pattern::Pattern;

/// Fills the fields; the way temperatures are written changed with version 5.
pub(super) fn fill(areas: &Areas<'_>, version: &str, out: &mut Metadata) {
    let Areas { head, tail } = *areas;
    out.object_height = tail.largest("G1·Z⟨F⟩·");
    out.estimated_time = build_time(tail).map(Number::Int);
    out.nozzle_diameter = earlier(head, ";·+extruderDiameter,⟨F⟩", ";·+nozzleDiameter,⟨F⟩");
    out.layer_height = head.float(";·+layerHeight,⟨F⟩");
    out.first_layer_height = head.smallest("G1·Z⟨F⟩·");
    if version.starts_with('5') {
        out.first_layer_extr_temp = controller_temperature(head, ";·+temperatureType,extruder");
        out.first_layer_bed_temp = controller_temperature(head, ";·+temperatureType,platform");
    } else {
        out.first_layer_extr_temp = listed_temperature(head, "Extruder 1");
        out.first_layer_bed_temp = listed_temperature(head, "Heated Bed");
    }
    out.filament_name = head.string(";·+printMaterial,⟨S⟩");
    out.filament_type = tail.string(";·+makerBotModelMaterial,⟨S⟩");
    out.filament_total = earlier(tail, ";·+Filament·length:·⟨F⟩·mm", ";·+Material·Length:·⟨F⟩·mm");
    out.filament_weight_total = earlier(tail, ";·+Plastic·weight:·⟨F⟩·g", ";·+Material·Weight:·⟨F⟩·g");
}

/// Names of settings differ between versions; the one that stands first counts.
fn earlier(area: Area<'_>, one: &str, other: &str) -> Option<f64> {
    let found = [one, other].iter().filter_map(|pattern| area.find(pattern)).min_by_key(|found| found.end)?;
    float(&area.0[found.captured])
}

/// Longest part of the build time's line that is looked at, in bytes: a line of digits shall stay cheap.
const MAX_TIME: usize = 256;

/// Seconds of `Build time: 1 hour 31 minutes 5 sec`.
fn build_time(tail: Area<'_>) -> Option<u64> {
    let line = tail.captured(";·+Build time:⟨S⟩").or_else(|| tail.captured(";·+Build Time:⟨S⟩"))?;
    let line = &line[..line.len().min(MAX_TIME)];
    let mut total = None;
    for (unit, seconds) in [("⟨D⟩·hour", 3600), ("⟨D⟩·min", 60), ("⟨D⟩·sec", 1)] {
        let Some(count) = number_before(line, unit) else { continue };
        total = Some(count.checked_mul(seconds)?.checked_add(total.unwrap_or(0))?);
    }
    total
}

fn number_before(line: &[u8], pattern: &str) -> Option<u64> {
    let found = Pattern::new(pattern).find(line, 0)?;
    text(&line[found.captured]).parse().ok()
}

/// Before version 5: names and temperatures are two lists, paired by position.
fn listed_temperature(head: Area<'_>, heater: &str) -> Option<f64> {
    let names = text(head.captured("temperatureName⟨S⟩")?);
    let temperatures = text(head.captured("temperatureSetpointTemperatures⟨S⟩")?);
    let (_, temperature) = names.split(',').zip(temperatures.split(',')).find(|(name, _)| name.trim() == heater)?;
    float(temperature.trim().as_bytes())
}

/// From version 5 on: one block per controller, its type before its setpoints.
fn controller_temperature(head: Area<'_>, heater: &str) -> Option<f64> {
    head.after(";·+temperatureController,")?.after(heater)?.float(";·+temperatureSetpoints,⟨D+⟩|⟨D⟩")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, version: &str) -> Metadata {
        let area = Area(text.as_bytes());
        let mut out = Metadata::default();
        fill(&Areas { head: area, tail: area }, version, &mut out);
        out
    }

    #[test]
    fn temperatures_by_version() {
        let lists = ";   temperatureName,Heated Bed,Extruder 1\n;   temperatureSetpointTemperatures,65,220\n";
        let found = filled(lists, "4.1.2");
        assert_eq!((found.first_layer_extr_temp, found.first_layer_bed_temp), (Some(220.0), Some(65.0)));
        let blocks = ";   temperatureController,T0\n;   temperatureType,extruder\n;   temperatureSetpoints,1|215\n\
                      ;   temperatureController,Bed\n;   temperatureType,platform\n;   temperatureSetpoints,1|60\n";
        let found = filled(blocks, "5.1.0");
        assert_eq!((found.first_layer_extr_temp, found.first_layer_bed_temp), (Some(215.0), Some(60.0)));
    }

    #[test]
    fn build_summary() {
        let found = filled(
            ";   Build time: 2 hours 1 minute 5 sec\n;   Filament length: 12.5 mm (0.01 m)\n;   Plastic weight: 3.5 g (0.01 lb)\n",
            "4",
        );
        assert_eq!(found.estimated_time, Some(Number::Int(7265)));
        assert_eq!((found.filament_total, found.filament_weight_total), (Some(12.5), Some(3.5)));
        assert_eq!(filled(";   Build Time: 1 hour\n;  Material Length: 2 mm\n", "5").estimated_time, Some(Number::Int(3600)));
    }

    #[test]
    fn layer_heights_from_moves() {
        let found = filled("G1 Z5.0 F100\nG1 Z0.3 F100\nG1 Z9.25 F100\n", "4");
        assert_eq!((found.first_layer_height, found.object_height), (Some(0.3), Some(9.25)));
    }
}
