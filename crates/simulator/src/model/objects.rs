//! The printer objects that clients query: their names and the present value of every field (shapes as in the recorded sample of the
//! real host's objects).

use serde_json::{Map, Value, json};

use super::commands::{self, MACROS};
use super::motion::E;
use super::run::endstop_names;
use super::toolhead::{AXIS_MAX, AXIS_MIN};
use super::{BARE_WORD, Model, printer_config};
use crate::model::commands::MIN_EXTRUDE_TEMP;

/// Objects except macros.
const OBJECTS: &[&str] = &[
    "gcode",
    "webhooks",
    "configfile",
    "mcu",
    "gcode_move",
    "bed_mesh",
    "heaters",
    "heater_bed",
    "fan",
    "heater_fan hotend_fan",
    "stepper_enable",
    "temperature_sensor chamber",
    "temperature_host host_cpu",
    "temperature_sensor host_cpu",
    "output_pin caselight",
    "pause_resume",
    "idle_timeout",
    "print_stats",
    "virtual_sdcard",
    "display_status",
    "exclude_object",
    "query_endstops",
    "motion_report",
    "toolhead",
    "extruder",
    "system_stats",
];

/// Hot-end temperature at which its fan turns on, °C.
const HOTEND_FAN_FROM: f64 = 50.0;

impl Model {
    /// Names of all objects.
    pub(crate) fn object_names(&self) -> Vec<String> {
        let macros = MACROS.iter().map(|m| format!("gcode_macro {}", m.name));
        OBJECTS.iter().map(|name| (*name).to_owned()).chain(macros).filter(|name| self.has(name)).collect()
    }

    /// Whether the printer has an object (or a config section of that name).
    pub(crate) fn has_object(&self, name: &str) -> bool {
        self.has(name)
    }

    /// All fields of an object, or `None` if there is no such object.
    pub(crate) fn object(&self, name: &str) -> Option<Map<String, Value>> {
        if !self.has(name) {
            return None;
        }
        if let Some(name) = name.strip_prefix("gcode_macro ") {
            return self.variables.get(name).cloned();
        }
        let value = match name {
            "webhooks" => json!({ "state": self.state.as_str(), "state_message": self.message }),
            "gcode" => self.command_list(),
            "configfile" => self.configfile(),
            "mcu" => self.mcu(),
            "system_stats" => self.system_stats(),
            "gcode_move" => self.gcode_move(),
            "toolhead" => self.toolhead_object(),
            "motion_report" => self.motion_report(),
            "stepper_enable" => self.stepper_enable(),
            "query_endstops" => {
                json!({ "last_query": endstop_names().zip(self.endstops.map(u8::from).map(Value::from)).collect::<Map<_, _>>() })
            }
            "bed_mesh" => self.mesh.status(),
            "heaters" => json!({
                "available_heaters": ["heater_bed", "extruder"],
                "available_sensors": ["heater_bed", "temperature_sensor chamber", "temperature_sensor host_cpu", "extruder"],
                "available_monitors": [],
            }),
            "extruder" => self.extruder_object(),
            "heater_bed" => json!({ "temperature": self.bed.reading(), "target": self.bed.target, "power": self.bed.power }),
            "fan" => json!({ "speed": self.fan, "rpm": null }),
            "heater_fan hotend_fan" => {
                let on = self.extruder.target > 0.0 || self.extruder.temperature > HOTEND_FAN_FROM;
                json!({ "speed": if on { 1.0 } else { 0.0 }, "rpm": null })
            }
            "temperature_sensor chamber" => {
                let t = &self.sensors.chamber;
                let reading = if self.settings.non_finite { json!(format!("{BARE_WORD}NaN")) } else { json!(t.reading) };
                json!({ "temperature": reading, "measured_min_temp": t.lowest, "measured_max_temp": t.highest })
            }
            "temperature_host host_cpu" => json!({ "temperature": self.sensors.host.reading }),
            "temperature_sensor host_cpu" => {
                let t = &self.sensors.host;
                json!({ "temperature": t.reading, "measured_min_temp": t.lowest, "measured_max_temp": t.highest })
            }
            "output_pin caselight" => json!({ "value": self.light }),
            "pause_resume" => json!({ "is_paused": self.paused }),
            "idle_timeout" => json!({
                "state": self.idle.word(),
                "printing_time": self.idle.printing_time(),
                "idle_timeout": self.idle.timeout,
            }),
            "print_stats" => self.print_stats(),
            "virtual_sdcard" => self.virtual_sdcard(),
            "display_status" => {
                let progress = self.display_progress.unwrap_or_else(|| self.sd.numbers().0);
                json!({ "progress": progress, "message": self.display_message })
            }
            "exclude_object" => json!({
                "objects": self.exclude.objects,
                "excluded_objects": self.exclude.excluded,
                "current_object": self.exclude.current,
            }),
            _ => return None,
        };
        match value {
            Value::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The answer of `bed_mesh/dump_mesh`.
    pub(crate) fn bed_mesh_dump(&self) -> Value {
        let mut dump = self.mesh.dump();
        dump["axis_minimum"] = axis_limit(AXIS_MIN);
        dump["axis_maximum"] = axis_limit(AXIS_MAX);
        dump
    }

    /// Commands with help text, whatever the state (`gcode/help`).
    pub(crate) fn help(&self) -> Map<String, Value> {
        commands::all(super::HostState::Ready).filter_map(|c| c.help.map(|help| (c.name.to_owned(), json!(help)))).collect()
    }

    fn command_list(&self) -> Value {
        let entry = |help: Option<&str>| help.map_or_else(|| json!({}), |help| json!({ "help": help }));
        let commands: Map<String, Value> = commands::all(self.state).map(|c| (c.name.to_owned(), entry(c.help))).collect();
        json!({ "commands": commands })
    }

    fn configfile(&self) -> Value {
        let keep = |mut sections: Map<String, Value>| {
            sections.retain(|name, _| self.has(name));
            sections
        };
        json!({
            "config": keep(printer_config::config(self.storage.path())),
            "settings": keep(printer_config::settings(self.storage.path())),
            "warnings": [],
            "save_config_pending": false,
            "save_config_pending_items": {},
        })
    }

    fn mcu(&self) -> Value {
        let seconds = self.sensors.seconds;
        json!({
            "mcu_version": super::SOFTWARE_VERSION,
            "mcu_build_versions": "simulated",
            "mcu_constants": { "ADC_MAX": 4095, "CLOCK_FREQ": 50_000_000, "MCU": "simulated", "PWM_MAX": 255, "STEPPER_STEP_BOTH_EDGE": 1 },
            "last_stats": {
                "mcu_awake": 0.002, "mcu_task_avg": 0.000_009, "mcu_task_stddev": 0.000_006,
                "bytes_write": 1500 + seconds * 40, "bytes_read": 6800 + seconds * 90, "bytes_retransmit": 0, "bytes_invalid": 0,
                "send_seq": 160 + seconds * 3, "receive_seq": 160 + seconds * 3, "retransmit_seq": 0,
                "srtt": 0.001, "rttvar": 0.0, "rto": 0.025, "ready_bytes": 0, "upcoming_bytes": 0, "freq": 50_000_000,
            },
        })
    }

    fn system_stats(&self) -> Value {
        let seconds = self.sensors.seconds;
        json!({ "sysload": self.sensors.load, "cputime": 1.2 + seconds as f64 * 0.02, "memavail": self.settings.memory.saturating_sub(seconds % 97 * 8) })
    }

    fn gcode_move(&self) -> Value {
        let g = &self.gcode;
        json!({
            "speed_factor": g.speed_factor,
            "speed": g.feed * g.speed_factor,
            "extrude_factor": g.extrude_factor,
            "absolute_coordinates": g.absolute_coordinates,
            "absolute_extrude": g.absolute_extrude,
            "homing_origin": g.homing_origin,
            "position": g.last,
            "gcode_position": g.gcode_position(),
            "axis_map": { "X": 0, "Y": 1, "Z": 2, "E": 3 },
        })
    }

    fn toolhead_object(&self) -> Value {
        let t = &self.toolhead;
        json!({
            "homed_axes": t.homed_axes(),
            "axis_minimum": axis_limit(AXIS_MIN),
            "axis_maximum": axis_limit(AXIS_MAX),
            "print_time": t.print_time,
            "stalls": 0,
            "estimated_print_time": self.now,
            "extruder": "extruder",
            "position": t.position,
            "max_velocity": t.limits.max_velocity,
            "max_accel": t.limits.max_accel,
            "minimum_cruise_ratio": t.limits.minimum_cruise_ratio,
            "square_corner_velocity": t.limits.square_corner_velocity,
            "extra_axes": { "extruder": E },
        })
    }

    fn motion_report(&self) -> Value {
        let (position, speed, filament) = self.toolhead.live(self.now);
        json!({
            "live_position": position,
            "live_velocity": speed,
            "live_extruder_velocity": filament,
            "steppers": ["extruder", "stepper_x", "stepper_y", "stepper_z"],
            "trapq": ["extruder", "toolhead"],
        })
    }

    fn stepper_enable(&self) -> Value {
        let [x, y, z, e] = self.toolhead.enabled;
        json!({ "steppers": { "stepper_x": x, "stepper_y": y, "stepper_z": z, "extruder": e } })
    }

    fn extruder_object(&self) -> Value {
        let h = &self.extruder;
        json!({
            "temperature": h.reading(),
            "target": h.target,
            "power": h.power,
            "can_extrude": h.temperature >= MIN_EXTRUDE_TEMP,
            "pressure_advance": self.pressure_advance,
            "smooth_time": 0.04,
            "motion_queue": null,
        })
    }

    fn print_stats(&self) -> Value {
        let p = &self.print;
        json!({
            "filename": p.filename,
            "total_duration": p.total_duration,
            "print_duration": p.print_duration,
            "filament_used": p.filament_used,
            "state": p.state.as_str(),
            "message": p.message,
            "info": { "total_layer": p.total_layer, "current_layer": p.current_layer },
        })
    }

    fn virtual_sdcard(&self) -> Value {
        let (progress, position, size) = self.sd.numbers();
        json!({
            "file_path": self.sd.file.as_ref().map(|f| f.path.to_string_lossy().into_owned()),
            "progress": progress,
            "is_active": self.sd.active,
            "file_position": position,
            "file_size": size,
        })
    }
}

fn axis_limit(limit: [f64; 3]) -> Value {
    json!([limit[0], limit[1], limit[2], 0.0])
}
