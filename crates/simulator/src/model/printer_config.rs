//! The simulated printer's configuration: as text for a file, as the strings of `configfile.config`, and typed as `configfile.settings`.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::commands::MACROS;
use super::literal;

type Section = (&'static str, &'static [(&'static str, &'static str)]);

/// The hardware sections, as a person would write them.
const SECTIONS: &[Section] = &[
    ("mcu", &[("serial", "/dev/serial/by-id/simulated"), ("restart_method", "command")]),
    (
        "printer",
        &[
            ("kinematics", "cartesian"),
            ("max_velocity", "300"),
            ("max_accel", "3000"),
            ("max_z_velocity", "15"),
            ("max_z_accel", "300"),
            ("square_corner_velocity", "5.0"),
        ],
    ),
    ("stepper_x", &stepper("PB0", "PB1", "!PB2", "^PB3", "60")),
    ("stepper_y", &stepper("PC0", "PC1", "!PC2", "^PC3", "60")),
    (
        "stepper_z",
        &[
            ("step_pin", "PD0"),
            ("dir_pin", "PD1"),
            ("enable_pin", "!PD2"),
            ("endstop_pin", "^PD3"),
            ("microsteps", "16"),
            ("rotation_distance", "8"),
            ("position_endstop", "0"),
            ("position_min", "-5"),
            ("position_max", "350"),
            ("homing_speed", "12"),
        ],
    ),
    (
        "extruder",
        &[
            ("step_pin", "PE0"),
            ("dir_pin", "PE1"),
            ("enable_pin", "!PE2"),
            ("microsteps", "16"),
            ("rotation_distance", "33.5"),
            ("nozzle_diameter", "0.4"),
            ("filament_diameter", "1.75"),
            ("heater_pin", "PE4"),
            ("sensor_type", "Generic 3950"),
            ("sensor_pin", "PF0"),
            ("control", "pid"),
            ("pid_kp", "18"),
            ("pid_ki", "2"),
            ("pid_kd", "20"),
            ("min_temp", "0"),
            ("max_temp", "350"),
            ("min_extrude_temp", "170"),
            ("max_extrude_only_distance", "500"),
            ("pressure_advance", "0.04"),
        ],
    ),
    (
        "heater_bed",
        &[
            ("heater_pin", "PG0"),
            ("sensor_type", "Generic 3950"),
            ("sensor_pin", "PF1"),
            ("control", "watermark"),
            ("min_temp", "0"),
            ("max_temp", "130"),
        ],
    ),
    ("verify_heater extruder", &[]),
    ("verify_heater heater_bed", &[]),
    ("fan", &[("pin", "PG1")]),
    ("heater_fan hotend_fan", &[("pin", "PG2"), ("heater", "extruder"), ("heater_temp", "50.0")]),
    (
        "temperature_sensor chamber",
        &[("sensor_type", "Generic 3950"), ("sensor_pin", "PF2"), ("min_temp", "0"), ("max_temp", "120"), ("gcode_id", "C")],
    ),
    ("temperature_sensor host_cpu", &[("sensor_type", "temperature_host"), ("min_temp", "0"), ("max_temp", "120")]),
    ("output_pin caselight", &[("pin", "PG3"), ("pwm", "False")]),
    ("bed_mesh", &[("speed", "200"), ("horizontal_move_z", "3"), ("mesh_min", "20,20"), ("mesh_max", "200,200"), ("probe_count", "3,3")]),
    ("idle_timeout", &[("timeout", "1800")]),
    ("virtual_sdcard", &[]),
    ("display_status", &[]),
    ("pause_resume", &[]),
    ("respond", &[]),
    ("exclude_object", &[]),
    ("gcode_arcs", &[]),
];

/// Options that the real host adds by itself to the typed settings.
const DEFAULTS: &[Section] = &[
    ("mcu", &[("baud", "250000")]),
    ("printer", &[("minimum_cruise_ratio", "0.5")]),
    ("stepper_x", &[("second_homing_speed", "30.0"), ("homing_retract_dist", "5.0"), ("full_steps_per_rotation", "200")]),
    ("stepper_y", &[("second_homing_speed", "30.0"), ("homing_retract_dist", "5.0"), ("full_steps_per_rotation", "200")]),
    ("stepper_z", &[("second_homing_speed", "6.0"), ("homing_retract_dist", "5.0"), ("full_steps_per_rotation", "200")]),
    (
        "extruder",
        &[("max_power", "1.0"), ("smooth_time", "1.0"), ("max_extrude_only_velocity", "80.0"), ("pressure_advance_smooth_time", "0.04")],
    ),
    ("heater_bed", &[("max_power", "1.0"), ("smooth_time", "1.0"), ("max_delta", "2.0")]),
    ("verify_heater extruder", &[("hysteresis", "5.0"), ("max_error", "120.0"), ("check_gain_time", "20.0"), ("heating_gain", "2.0")]),
    ("verify_heater heater_bed", &[("hysteresis", "5.0"), ("max_error", "120.0"), ("check_gain_time", "60.0"), ("heating_gain", "2.0")]),
    ("fan", &[("max_power", "1.0"), ("kick_start_time", "0.1"), ("off_below", "0.0"), ("cycle_time", "0.01")]),
    ("heater_fan hotend_fan", &[("max_power", "1.0"), ("fan_speed", "1.0")]),
    ("output_pin caselight", &[("value", "0.0"), ("shutdown_value", "0.0")]),
    (
        "bed_mesh",
        &[("fade_start", "1.0"), ("fade_end", "0.0"), ("algorithm", "'lagrange'"), ("bicubic_tension", "0.2"), ("mesh_pps", "[2, 2]")],
    ),
    ("pause_resume", &[("recover_velocity", "50.0")]),
    ("respond", &[("default_type", "'echo'"), ("default_prefix", "'echo:'")]),
    ("gcode_arcs", &[("resolution", "1.0")]),
];

/// Options that are whole numbers in the typed settings; all other numbers are floats.
const WHOLE: [&str; 3] = ["microsteps", "full_steps_per_rotation", "baud"];

const fn stepper(
    step: &'static str,
    dir: &'static str,
    enable: &'static str,
    endstop: &'static str,
    speed: &'static str,
) -> [(&'static str, &'static str); 10] {
    [
        ("step_pin", step),
        ("dir_pin", dir),
        ("enable_pin", enable),
        ("endstop_pin", endstop),
        ("microsteps", "16"),
        ("rotation_distance", "40"),
        ("position_endstop", "0"),
        ("position_max", "300"),
        ("position_min", "-10"),
        ("homing_speed", speed),
    ]
}

/// The configuration as sections of strings (`configfile.config`).
pub(super) fn config(gcodes: &Path) -> Map<String, Value> {
    let mut sections = Map::new();
    for m in MACROS {
        let mut options = Map::new();
        options.insert("description".to_owned(), json!(m.description));
        if let Some(original) = m.renames {
            options.insert("rename_existing".to_owned(), json!(original));
        }
        for (name, value) in m.variables {
            options.insert(format!("variable_{name}"), json!(value));
        }
        options.insert("gcode".to_owned(), json!(format!("\n{}", m.gcode)));
        sections.insert(format!("gcode_macro {}", m.name), Value::Object(options));
    }
    for (section, options) in SECTIONS {
        let mut options: Map<String, Value> = options.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect();
        if *section == "virtual_sdcard" {
            options.insert("path".to_owned(), json!(gcodes.to_string_lossy()));
        }
        sections.insert((*section).to_owned(), Value::Object(options));
    }
    sections
}

/// The configuration with types and defaults (`configfile.settings`); section names are in small letters.
pub(super) fn settings(gcodes: &Path) -> Map<String, Value> {
    let mut sections = Map::new();
    for (section, options) in config(gcodes) {
        let Value::Object(options) = options else { continue };
        let mut typed: Map<String, Value> =
            options.into_iter().map(|(k, v)| (k.clone(), v.as_str().map_or(Value::Null, |v| typed(&k, v)))).collect();
        let defaults = DEFAULTS.iter().find(|(name, _)| *name == section).map_or(&[][..], |(_, defaults)| defaults);
        for (key, value) in defaults {
            typed.entry(*key).or_insert_with(|| literal::parse(value).unwrap_or(Value::Null));
        }
        sections.insert(section.to_lowercase(), Value::Object(typed));
    }
    sections
}

fn typed(key: &str, text: &str) -> Value {
    if WHOLE.contains(&key) {
        return text.parse::<i64>().map_or(Value::Null, Value::from);
    }
    if key.starts_with("variable_") {
        return json!(text);
    }
    let numbers: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match (numbers.as_deref(), text) {
        (Some([one]), _) => json!(one),
        (Some(many), _) => json!(many),
        (None, "True") => json!(true),
        (None, "False") => json!(false),
        (None, text) => json!(text),
    }
}

/// The configuration as the text of a file, for users who want to look at it in an editor.
pub fn printer_cfg(gcodes: &Path) -> String {
    let mut text = String::from("# The printer that Bowsprit simulates. Changing this file changes nothing.\n");
    for (section, options) in config(gcodes) {
        text.push_str(&format!("\n[{section}]\n"));
        for (key, value) in options.as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or("").replace('\n', "\n  ");
            text.push_str(&format!("{key}: {value}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_typed_and_have_defaults() {
        let gcodes = Path::new("/data/gcodes");
        let settings = settings(gcodes);
        assert_eq!(settings["stepper_x"]["position_max"], json!(300.0));
        assert_eq!(settings["stepper_x"]["microsteps"], json!(16));
        assert_eq!(settings["bed_mesh"]["probe_count"], json!([3.0, 3.0]));
        assert_eq!(settings["output_pin caselight"]["pwm"], json!(false));
        assert_eq!(settings["pause_resume"]["recover_velocity"], json!(50.0));
        assert_eq!(config(gcodes)["virtual_sdcard"]["path"], json!("/data/gcodes"));
        assert_eq!(config(gcodes)["gcode_macro PAUSE"]["rename_existing"], json!("PAUSE_BASE"));
        assert!(settings.contains_key("gcode_macro start_print"));
        assert!(printer_cfg(gcodes).contains("\n[virtual_sdcard]\npath: /data/gcodes\n"));
    }
}
