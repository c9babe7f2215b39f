//! The model as a whole: scripts in, effects and objects out.

use serde_json::{Value, json};

use super::print::PrintState;
use super::run::Advance;
use super::state::HostState;
use super::storage::memory::MemoryStorage;
use super::*;

/// Steps per call, plenty for every test.
const BUDGET: usize = 100_000;

struct Bench {
    model: Model,
    output: Vec<String>,
    done: Vec<(Ticket, Result<Value, String>)>,
    others: Vec<Effect>,
}

impl Bench {
    fn with(settings: Settings, files: Vec<(&'static str, String)>) -> Self {
        Self { model: Model::new(settings, Box::new(MemoryStorage(files))), output: vec![], done: vec![], others: vec![] }
    }

    fn ready(files: Vec<(&'static str, String)>) -> Self {
        let mut bench = Self::with(Settings::default(), files);
        bench.pass(1.0);
        assert_eq!(bench.output, ["// Klipper state: Ready"]);
        bench.output.clear();
        bench
    }

    fn pass(&mut self, seconds: f64) {
        let result = self.model.advance(seconds, BUDGET);
        self.collect();
        assert!(result == Advance::Reached || !self.others.is_empty());
    }

    fn collect(&mut self) {
        for effect in self.model.take_effects() {
            match effect {
                Effect::Output(line) => self.output.push(line),
                Effect::Done(ticket, result) => self.done.push((ticket, result)),
                other => self.others.push(other),
            }
        }
    }

    /// Runs a script to its end and returns its result.
    fn run(&mut self, script: &str) -> Result<Value, String> {
        let ticket = Ticket(self.done.len() as u64 + 1000);
        self.model.submit_script(ticket, script);
        for _ in 0..1000 {
            self.pass(1.0);
            if let Some((_, result)) = self.done.iter().find(|(t, _)| *t == ticket) {
                return result.clone();
            }
        }
        panic!("script never ends: {script}");
    }

    fn field(&self, object: &str, field: &str) -> Value {
        self.model.object(object).unwrap()[field].clone()
    }

    fn take_output(&mut self) -> Vec<String> {
        std::mem::take(&mut self.output)
    }
}

fn cube() -> String {
    let mut text = String::from(
        ";LAYER_COUNT:10\nM140 S50\nM104 S200\nG28\nM190 S50\nM109 S200\nG90\nM82\nG92 E0\nEXCLUDE_OBJECT_DEFINE NAME=cube CENTER=50,50 POLYGON=[[40,40],[60,40],[60,60]]\n",
    );
    let mut e = 0.0;
    for layer in 0..10 {
        text += &format!(";LAYER:{layer}\nG1 Z{} F600\nEXCLUDE_OBJECT_START NAME=cube\n", 0.2 + 0.2 * f64::from(layer));
        for (x, y) in [(40, 40), (60, 40), (60, 60), (40, 60)] {
            e += 0.7;
            text += &format!("G1 X{x} Y{y} E{e:.3} F2400\n");
        }
        text += "EXCLUDE_OBJECT_END NAME=cube\n";
    }
    text + "M104 S0\nM140 S0\nM84\n"
}

#[test]
fn startup_refuses_and_ready_accepts() {
    let mut bench = Bench::with(Settings { startup: 3.0, ..Settings::default() }, vec![]);
    assert_eq!(bench.run("G28"), Err(state::STARTUP_MESSAGE.to_owned()));
    assert_eq!(bench.run("M105"), Ok(json!({})));
    assert_eq!(bench.run("M21"), Ok(json!({})));
    bench.pass(3.0);
    assert_eq!(bench.model.state(), HostState::Ready);
    assert_eq!(bench.run("G28"), Ok(json!({})));
}

#[test]
fn unhomed_moves_fail_and_unknown_commands_do_not() {
    let mut bench = Bench::ready(vec![]);
    assert_eq!(bench.run("G1 X10").unwrap_err(), "Must home axis first: 10.000 0.000 0.000 [0.000]");
    assert_eq!(bench.take_output(), ["!! Must home axis first: 10.000 0.000 0.000 [0.000]"]);
    let error = bench.run("G28 X0 Y0\nBADCMD2\nG1 X99999\nM117 never").unwrap_err();
    assert_eq!(error, "Move out of range: 99999.000 0.000 0.000 [0.000]");
    assert_eq!(bench.take_output(), ["// Unknown command:\"BADCMD2\"", "!! Move out of range: 99999.000 0.000 0.000 [0.000]"]);
    assert_eq!(bench.field("display_status", "message"), Value::Null);
    assert_eq!(bench.field("toolhead", "homed_axes"), json!("xy"));
    assert_eq!(bench.field("gcode_move", "position"), json!([0.0, 0.0, 0.0, 0.0]));
    assert!(bench.run("G1 X50 Y20 F6000\nG1 E5").unwrap_err().starts_with("Extrude below minimum temp\n"));
}

#[test]
fn moves_take_time_and_show_their_place() {
    let mut bench = Bench::ready(vec![]);
    bench.run("G28").unwrap();
    bench.model.submit_script(Ticket(1), "G1 X200 F3000\nM400");
    bench.pass(2.0);
    let live = bench.model.live_position()[0];
    assert!((80.0..110.0).contains(&live), "{live}");
    assert_eq!(bench.field("toolhead", "position"), json!([200.0, 0.0, 0.0, 0.0]));
    assert_eq!(bench.field("idle_timeout", "state"), json!("Printing"));
    assert!(bench.done.iter().all(|(t, _)| *t != Ticket(1)));
    bench.pass(6.0);
    assert!(bench.done.contains(&(Ticket(1), Ok(json!({})))));
    assert_eq!(bench.field("motion_report", "live_position"), json!([200.0, 0.0, 0.0, 0.0]));
    assert_eq!(bench.field("idle_timeout", "state"), json!("Ready"));
    assert!(!bench.model.take_trapezoids().is_empty());
}

#[test]
fn arcs_end_where_they_should() {
    let mut bench = Bench::ready(vec![]);
    bench.run("G28\nG1 X50 Y50 F6000\nG2 X70 Y50 I10 J0\nG3 X50 Y50 I-10 J0\nG2 X50 Y50 I5 J5").unwrap();
    assert_eq!(bench.field("gcode_move", "position"), json!([50.0, 50.0, 0.0, 0.0]));
    assert!(bench.run("G2 X70 R5").is_err());
}

#[test]
fn heating_waits_and_reports() {
    let mut bench = Bench::ready(vec![]);
    assert_eq!(bench.run("M104 S").unwrap_err(), "Error on 'M104 S': unable to parse ");
    assert_eq!(
        bench.run("SET_HEATER_TEMPERATURE HEATER=extruder TARGET=9999").unwrap_err(),
        "Requested temperature (9999.0) out of range (0.0:350.0)"
    );
    bench.take_output();
    bench.run("M109 S200").unwrap();
    let lines = bench.take_output();
    assert!(lines.len() > 10 && lines.iter().all(|l| l.starts_with("B:") && l.contains("/200.0")), "{lines:?}");
    assert_eq!(bench.field("extruder", "can_extrude"), json!(true));
    bench.run("TURN_OFF_HEATERS\nTEMPERATURE_WAIT SENSOR=extruder MAXIMUM=100").unwrap();
    assert_eq!(bench.field("extruder", "can_extrude"), json!(false));
}

#[test]
fn a_print_runs_pauses_resumes_and_completes() {
    let mut bench = Bench::ready(vec![("sub/cube.gcode", cube())]);
    assert_eq!(bench.run("SDCARD_PRINT_FILE FILENAME=\"nope\"").unwrap_err(), "Unable to open file");
    bench.take_output();
    bench.run("SDCARD_PRINT_FILE FILENAME=\"/sub/cube.gcode\"").unwrap();
    assert_eq!(bench.take_output(), [format!("File opened:sub/cube.gcode Size:{}", cube().len()), "File selected".to_owned()]);
    assert_eq!(bench.model.print_state(), PrintState::Printing);
    assert_eq!(bench.field("virtual_sdcard", "file_path"), json!("/memory/sub/cube.gcode"));
    assert_eq!(bench.run("SDCARD_PRINT_FILE FILENAME=x").unwrap_err(), "SD busy");
    while bench.field("print_stats", "print_duration") == json!(0.0) {
        bench.pass(1.0);
        assert!(bench.model.now() < 300.0);
    }
    bench.run("PAUSE").unwrap();
    assert_eq!(bench.model.print_state(), PrintState::Paused);
    assert_eq!(bench.field("virtual_sdcard", "is_active"), json!(false));
    assert_eq!(bench.field("pause_resume", "is_paused"), json!(true));
    let printed = bench.field("print_stats", "print_duration");
    bench.pass(30.0);
    assert_eq!(bench.field("print_stats", "print_duration"), printed);
    bench.run("RESUME").unwrap();
    assert_eq!(bench.model.print_state(), PrintState::Printing);
    bench.take_output();
    bench.pass(120.0);
    assert_eq!(bench.model.print_state(), PrintState::Complete);
    assert_eq!(bench.take_output(), ["Done printing file"]);
    let stats = bench.model.object("print_stats").unwrap();
    assert!((stats["filament_used"].as_f64().unwrap() - 28.0).abs() < 1e-6, "{stats:?}");
    assert_eq!(stats["info"], json!({"total_layer": 10, "current_layer": 10}));
    let sd = bench.model.object("virtual_sdcard").unwrap();
    assert_eq!((&sd["file_path"], &sd["progress"], &sd["is_active"]), (&Value::Null, &json!(1.0), &json!(false)));
    assert_eq!(bench.field("exclude_object", "objects")[0]["name"], json!("CUBE"));
}

#[test]
fn cancelling_keeps_the_name_and_cools_down() {
    let mut bench = Bench::ready(vec![("cube.gcode", cube())]);
    bench.run("SDCARD_PRINT_FILE FILENAME=cube.gcode").unwrap();
    bench.run("M117").unwrap();
    bench.run("CANCEL_PRINT").unwrap();
    assert_eq!(bench.model.print_state(), PrintState::Cancelled);
    assert_eq!(bench.model.print_file(), "cube.gcode");
    assert_eq!(bench.field("extruder", "target"), json!(0.0));
    assert_eq!(bench.field("virtual_sdcard", "file_size"), json!(0));
    bench.run("SDCARD_RESET_FILE").unwrap();
    assert_eq!(bench.model.print_state(), PrintState::Standby);
    bench.take_output();
    bench.run("CANCEL_PRINT\nRESUME\nPAUSE\nPAUSE\nRESUME").unwrap();
    assert_eq!(
        bench.take_output(),
        ["// action:cancel", "// Print is not paused, resume aborted", "// action:paused", "// Print already paused", "// action:resumed"]
    );
}

#[test]
fn a_failing_line_ends_the_print() {
    let mut bench = Bench::ready(vec![("bad.gcode", "G28\nM104 S50\nG1 X9999\nM117 never\n".to_owned())]);
    bench.run("SDCARD_PRINT_FILE FILENAME=bad.gcode").unwrap();
    bench.pass(60.0);
    assert_eq!(bench.model.print_state(), PrintState::Error);
    assert_eq!(bench.field("print_stats", "message"), json!("Move out of range: 9999.000 0.000 0.000 [0.000]"));
    assert_eq!(bench.field("virtual_sdcard", "is_active"), json!(false));
    assert_eq!(bench.field("extruder", "target"), json!(0.0));
    assert!(bench.output.contains(&"!! Move out of range: 9999.000 0.000 0.000 [0.000]".to_owned()));
}

#[test]
fn scripts_share_one_mutex_with_the_print() {
    let mut bench = Bench::ready(vec![]);
    bench.run("G28").unwrap();
    bench.model.submit_script(Ticket(1), "G4 P3000\nM400\nRESPOND MSG=first");
    bench.model.submit_endstop_query(Ticket(2));
    bench.model.submit_script(Ticket(3), "RESPOND MSG=second");
    bench.pass(2.0);
    assert!(bench.done.iter().all(|(t, _)| t.0 > 3));
    bench.pass(3.0);
    let order: Vec<u64> = bench.done.iter().map(|(t, _)| t.0).filter(|t| *t <= 3).collect();
    assert_eq!(order, [1, 2, 3]);
    let endstops = &bench.done.iter().find(|(t, _)| t.0 == 2).unwrap().1;
    assert_eq!(endstops, &Ok(json!({"stepper_x": "TRIGGERED", "stepper_y": "TRIGGERED", "stepper_z": "TRIGGERED"})));
    assert!(bench.output.ends_with(&["echo: first".to_owned(), "echo: second".to_owned()]));
}

#[test]
fn shutdown_aborts_what_runs_and_only_a_few_commands_are_left() {
    let mut bench = Bench::ready(vec![("cube.gcode", cube())]);
    bench.run("SDCARD_PRINT_FILE FILENAME=cube.gcode").unwrap();
    bench.take_output();
    bench.model.shutdown("Shutdown due to webhooks request");
    bench.pass(0.1);
    assert_eq!(bench.output, ["// Klipper state: Shutdown"]);
    assert_eq!(bench.model.print_state(), PrintState::Printing, "the print notices a little later");
    bench.pass(1.0);
    assert_eq!(bench.model.print_state(), PrintState::Error);
    let error = bench.run("G28").unwrap_err();
    assert!(error.starts_with("Shutdown due to webhooks request\n") && error.ends_with("Printer is shutdown\n"), "{error}");
    bench.take_output();
    bench.run("RESPOND MSG=x").unwrap();
    assert_eq!(bench.take_output(), ["echo: x"]);
    assert!(bench.run("STATUS").unwrap_err().ends_with("\nKlipper state: Not ready"));
    assert_eq!(bench.field("gcode", "commands").as_object().unwrap().len(), 13);
    bench.run("FIRMWARE_RESTART").unwrap();
    assert_eq!(bench.others, [Effect::Restart { firmware: true }]);
}

#[test]
fn an_m112_in_a_script_succeeds() {
    let mut bench = Bench::ready(vec![]);
    assert_eq!(bench.run("M112"), Ok(json!({})));
    assert_eq!(bench.model.state(), HostState::Shutdown);
    assert_eq!(bench.run("RESTART"), Ok(json!({})));
}

#[test]
fn objects_can_be_left_out() {
    let mut bench = Bench::ready(vec![("cube.gcode", cube())]);
    bench.run("SDCARD_PRINT_FILE FILENAME=cube.gcode").unwrap();
    bench.take_output();
    bench.run("EXCLUDE_OBJECT NAME=cube").unwrap();
    assert_eq!(bench.take_output()[0], "// Excluding object CUBE");
    bench.pass(300.0);
    assert_eq!(bench.model.print_state(), PrintState::Complete);
    assert_eq!(bench.field("print_stats", "filament_used"), json!(0.0));
    assert_eq!(bench.field("exclude_object", "excluded_objects"), json!(["CUBE"]));
}

#[test]
fn remote_calls_and_variables() {
    let mut bench = Bench::ready(vec![]);
    bench.run("CALL_REMOTE METHOD=do_it MESSAGE=hi NUM=3 FLAG=true").unwrap();
    let Effect::Remote { method, arguments } = &bench.others[0] else { panic!("{:?}", bench.others) };
    assert_eq!((method.as_str(), Value::Object(arguments.clone())), ("do_it", json!({"message": "hi", "num": 3, "flag": true})));
    bench.run("SET_GCODE_VARIABLE MACRO=START_PRINT VARIABLE=last_bed VALUE=\"{1: 2}\"").unwrap();
    assert_eq!(bench.field("gcode_macro START_PRINT", "last_bed"), json!({"1": 2}));
    let error = bench.run("SET_GCODE_VARIABLE MACRO=START_PRINT VARIABLE=last_bed VALUE=1j").unwrap_err();
    assert!(error.starts_with("Unable to parse '1j' as a literal: "), "{error}");
    assert!(bench.run("RAISE").unwrap_err().contains("custom raised error"));
}

#[test]
fn a_bed_mesh_is_probed_and_keeps_the_coordinate_state() {
    let mut bench = Bench::ready(vec![]);
    assert_eq!(bench.run("BED_MESH_CALIBRATE").unwrap_err(), "Must home before probe");
    bench.run("G28\nG91\nBED_MESH_CALIBRATE").unwrap();
    assert_eq!(bench.field("bed_mesh", "profile_name"), json!("default"));
    assert_eq!(bench.field("gcode_move", "absolute_coordinates"), json!(false));
    assert_eq!(bench.model.bed_mesh_dump()["axis_maximum"][0], json!(300.0));
}

#[test]
fn the_alarm_comes_at_its_time() {
    let settings = Settings { alarm: Some(5.0), ..Settings::default() };
    let mut bench = Bench::with(settings, vec![("cube.gcode", cube())]);
    bench.run("M110").unwrap();
    bench.model.submit_script(Ticket(1), "SDCARD_PRINT_FILE FILENAME=cube.gcode");
    bench.pass(1000.0);
    assert_eq!(bench.others, [Effect::Alarm]);
    let at = bench.field("print_stats", "total_duration").as_f64().unwrap();
    assert!((5.0..5.01).contains(&at), "{at}");
}

#[test]
fn a_budget_bounds_the_work() {
    let file = "G4 P0\n".repeat(10_000);
    let mut bench = Bench::ready(vec![("long.gcode", file)]);
    bench.model.submit_script(Ticket(1), "SDCARD_PRINT_FILE FILENAME=long.gcode");
    assert_eq!(bench.model.advance(1000.0, 100), Advance::Stopped);
    let position = bench.field("virtual_sdcard", "file_position").as_u64().unwrap();
    assert!((100..1000).contains(&position), "{position}");
}

#[test]
fn the_same_seed_gives_the_same_printer() {
    let readings = || {
        let mut bench = Bench::ready(vec![("cube.gcode", cube())]);
        bench.run("SDCARD_PRINT_FILE FILENAME=cube.gcode").unwrap();
        bench.pass(100.0);
        bench.model.object_names().iter().map(|name| json!(bench.model.object(name))).collect::<Vec<_>>()
    };
    assert_eq!(readings(), readings());
}

#[test]
fn every_listed_object_has_a_status_and_missing_ones_vanish() {
    let settings = Settings { without: vec!["virtual_sdcard".to_owned()], ..Settings::default() };
    let bench = Bench::with(settings, vec![]);
    let names = bench.model.object_names();
    assert!(!names.contains(&"virtual_sdcard".to_owned()));
    assert!(names.iter().all(|name| bench.model.object(name).is_some()));
    assert!(bench.model.object("virtual_sdcard").is_none());
    assert!(bench.field("configfile", "config").get("virtual_sdcard").is_none());
    assert!(bench.model.object("nope").is_none());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// No script stops the clock or breaks the model, however senseless.
    #[test]
    fn any_script_is_survived(words in proptest::collection::vec((0_usize..200, "( ?[XYZEFSPIJ]-?[0-9]{0,3}(\\.[0-9])?){0,4}|( [A-Z]{1,8}=\\PC{0,6}){0,3}"), 1..12)) {
        let names: Vec<&str> = commands::all(HostState::Ready).map(|c| c.name).collect();
        let script: Vec<String> = words.iter().map(|(name, rest)| format!("{}{rest}", names[name % names.len()])).collect();
        let mut bench = Bench::ready(vec![("x.gcode", script.join("\n"))]);
        bench.model.submit_script(Ticket(1), "G28\nSDCARD_PRINT_FILE FILENAME=x.gcode");
        bench.model.submit_script(Ticket(2), &script.join("\n"));
        for _ in 0..20 {
            bench.model.advance(10.0, 2000);
            for name in bench.model.object_names() {
                proptest::prop_assert!(bench.model.object(&name).is_some());
            }
        }
        let position = bench.model.live_position();
        proptest::prop_assert!(position.iter().all(|p| p.is_finite()), "{position:?}");
    }
}

/// Where recordings of the real host are, if at hand.
const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");

/// Names and kinds of fields against the recorded sample of the real host, where that is at hand.
#[test]
fn fields_match_the_recorded_sample() {
    let Ok(text) = std::fs::read_to_string(format!("{SHARED}/traffic/sample-objects-status.json")) else { return };
    let sample: Value = serde_json::from_str(&text).unwrap();
    let bench = Bench::ready(vec![]);
    for name in bench.model.object_names() {
        let Some(expected) = sample["status"].get(&name).and_then(Value::as_object) else { continue };
        let mine = bench.model.object(&name).unwrap();
        let names: (Vec<_>, Vec<_>) = (mine.keys().collect(), expected.keys().collect());
        assert_eq!(names.0, names.1, "{name}");
        for (field, value) in expected {
            assert_eq!(std::mem::discriminant(&mine[field]), std::mem::discriminant(value), "{name}.{field}: {}", mine[field]);
        }
    }
}

/// Files of many slicers run to their end (or to an error that the real host would give, too).
#[test]
fn the_memory_left_is_that_of_the_machine() {
    let mut bench = Bench::with(Settings { memory: 8_000_000, ..Settings::default() }, vec![]);
    bench.pass(50.0);
    let left = bench.model.object("system_stats").unwrap()["memavail"].as_u64().unwrap();
    assert!((7_999_000..8_000_000).contains(&left), "{left}");
}

#[test]
fn sliced_files_run_to_an_end() {
    let Ok(folder) = std::fs::read_dir(format!("{SHARED}/gcode-samples")) else { return };
    for entry in folder.flatten().filter(|e| e.path().extension().is_some_and(|e| e == "gcode")) {
        let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
        let mut bench = Bench::ready(vec![("x.gcode", text)]);
        bench.model.submit_script(Ticket(1), "M109 S220\nG28\nSDCARD_PRINT_FILE FILENAME=x.gcode");
        let mut turns = 0;
        while !matches!(bench.model.print_state(), PrintState::Complete | PrintState::Error) {
            bench.model.advance(60.0, BUDGET);
            bench.collect();
            turns += 1;
            assert!(turns < 1000, "{} never ends", entry.path().display());
        }
        let error = bench.field("print_stats", "message");
        println!("{}: {turns} minutes, {} {error}", entry.path().display(), bench.model.print_state().as_str());
        let plausible = ["", "Move out of range", "Extrude", "Invalid", "Machine does not"];
        assert!(plausible.iter().any(|p| error.as_str().unwrap().starts_with(p)), "{error}");
    }
}
