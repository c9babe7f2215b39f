//! From what we know of the printer to the other server's words. Pure. Source: wire/1-core.md section 10.

use std::collections::BTreeMap;

use fwhost::PrintState;
use protocol::FwhostState;
use schemars::JsonSchema;
use serde::Serialize;

/// The object of a heated chamber.
pub(super) const CHAMBER: &str = "heater_generic chamber";

/// How the printer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// There is no firmware host, or it is not ready yet.
    Offline,
    /// It has shut down, or the last job failed.
    Error,
    /// It waits for a job.
    Operational,
    /// It prints.
    Printing,
    /// The job is paused.
    Paused,
}

impl Standing {
    /// From the state of the firmware host and of its job, when that is known.
    pub(super) fn of(host: FwhostState, job: Option<PrintState>) -> Self {
        match (host, job) {
            (FwhostState::Disconnected | FwhostState::Startup, _) => Self::Offline,
            (FwhostState::Error | FwhostState::Shutdown, _) | (FwhostState::Ready, Some(PrintState::Error)) => Self::Error,
            (FwhostState::Ready, Some(PrintState::Printing)) => Self::Printing,
            (FwhostState::Ready, Some(PrintState::Paused)) => Self::Paused,
            (FwhostState::Ready, Some(PrintState::Standby | PrintState::Complete | PrintState::Cancelled) | None) => Self::Operational,
        }
    }

    /// The word for it.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Offline => "Offline",
            Self::Error => "Error",
            Self::Operational => "Operational",
            Self::Printing => "Printing",
            Self::Paused => "Paused",
        }
    }
}

/// A heater that the other server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heater {
    Bed,
    Tool(u16),
}

impl Heater {
    /// The heater behind a printer object.
    pub(super) fn of(object: &str) -> Option<Self> {
        match object.strip_prefix("extruder") {
            Some("") => Some(Self::Tool(0)),
            Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => number.parse().ok().map(Self::Tool),
            _ => (object == "heater_bed").then_some(Self::Bed),
        }
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Bed => "bed".to_owned(),
            Self::Tool(number) => format!("tool{number}"),
        }
    }
}

/// One heater, in degrees Celsius.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct Temperature {
    /// Measured, to two digits.
    actual: f64,
    /// What is added to targets; always 0.
    offset: u8,
    /// Wanted; 0 when off.
    target: f64,
}

impl Temperature {
    pub(super) fn new(actual: f64, target: f64) -> Self {
        Self { actual: (actual * 100.0).round() / 100.0, offset: 0, target }
    }
}

/// The printer.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Printer {
    /// By `bed`, `tool0`, `tool1` …
    pub(super) temperature: BTreeMap<String, Temperature>,
    /// How it stands.
    pub(super) state: PrinterState,
}

/// How the printer stands, as a word and as flags.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PrinterState {
    /// `Offline`, `Error`, `Operational`, `Printing` or `Paused`.
    text: &'static str,
    flags: Flags,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "the shape of the other server's API")]
struct Flags {
    operational: bool,
    paused: bool,
    printing: bool,
    /// Never told: cancelling is over before the printer says so.
    cancelling: bool,
    /// Likewise.
    pausing: bool,
    error: bool,
    ready: bool,
    closed_or_error: bool,
}

impl From<Standing> for PrinterState {
    fn from(standing: Standing) -> Self {
        let closed_or_error = matches!(standing, Standing::Offline | Standing::Error);
        let flags = Flags {
            operational: !closed_or_error,
            paused: standing == Standing::Paused,
            printing: standing == Standing::Printing,
            cancelling: false,
            pausing: false,
            error: standing == Standing::Error,
            ready: standing == Standing::Operational,
            closed_or_error,
        };
        Self { text: standing.text(), flags }
    }
}

/// What is printed and how far it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Job {
    job: JobInfo,
    progress: Progress,
    /// As the text of the printer's state.
    state: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct JobInfo {
    file: JobFile,
    /// Not told.
    estimated_print_time: Option<f64>,
    filament: Filament,
    /// Not told.
    user: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JobFile {
    /// Path relative to the gcode root; null without a job.
    name: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Filament {
    /// Not told.
    length: Option<f64>,
}

/// How far a job is; all null without a job.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Progress {
    /// Percent of the file.
    completion: Option<f64>,
    /// Bytes of the file.
    filepos: Option<u64>,
    /// Whole seconds of printing.
    print_time: Option<u64>,
    /// Not told.
    print_time_left: Option<u64>,
    /// Not told.
    print_time_origin: Option<String>,
}

impl Progress {
    /// From the part of the file (0 to 1), the position in it in bytes, and the seconds of printing.
    pub(super) fn new(part: Option<f64>, position: Option<f64>, seconds: f64) -> Self {
        let completion = part.map(|part| (part.clamp(0.0, 1.0) * 10_000.0).round() / 100.0);
        // Casts of floats saturate.
        Self { completion, filepos: position.map(|position| position as u64), print_time: Some(seconds as u64), ..Self::default() }
    }
}

impl Job {
    pub(super) fn new(file: Option<String>, progress: Progress, standing: Standing) -> Self {
        let job = JobInfo { file: JobFile { name: file }, estimated_print_time: None, filament: Filament { length: None }, user: None };
        Self { job, progress, state: standing.text() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_state_has_a_word_and_flags_that_agree() {
        let job = |state| Some(state);
        for (host, job, text, flags) in [
            (FwhostState::Disconnected, None, "Offline", "closedOrError"),
            (FwhostState::Startup, job(PrintState::Printing), "Offline", "closedOrError"),
            (FwhostState::Error, None, "Error", "closedOrError error"),
            (FwhostState::Shutdown, job(PrintState::Printing), "Error", "closedOrError error"),
            (FwhostState::Ready, job(PrintState::Error), "Error", "closedOrError error"),
            (FwhostState::Ready, None, "Operational", "operational ready"),
            (FwhostState::Ready, job(PrintState::Standby), "Operational", "operational ready"),
            (FwhostState::Ready, job(PrintState::Complete), "Operational", "operational ready"),
            (FwhostState::Ready, job(PrintState::Cancelled), "Operational", "operational ready"),
            (FwhostState::Ready, job(PrintState::Printing), "Printing", "operational printing"),
            (FwhostState::Ready, job(PrintState::Paused), "Paused", "operational paused"),
        ] {
            let told = serde_json::to_value(PrinterState::from(Standing::of(host, job))).unwrap();
            assert_eq!(told["text"], text, "{host:?} {job:?}");
            let set = told["flags"].as_object().unwrap().iter().filter(|(_, value)| **value == true).map(|(name, _)| name.as_str());
            let mut set: Vec<&str> = set.collect();
            set.sort_unstable();
            assert_eq!(set.join(" "), flags, "{host:?} {job:?}");
        }
    }

    #[test]
    fn heaters_have_the_other_servers_names() {
        let name = |object| Heater::of(object).map(Heater::name);
        assert_eq!(name("extruder").as_deref(), Some("tool0"));
        assert_eq!(name("extruder11").as_deref(), Some("tool11"));
        assert_eq!(name("heater_bed").as_deref(), Some("bed"));
        for other in ["extruder_stepper a", "extruder 1", "extruder99999999", "heater_generic chamber", "fan", ""] {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn numbers_are_rounded_and_bounded() {
        let temperature = serde_json::to_value(Temperature::new(21.456_789, 60.0)).unwrap();
        assert_eq!(temperature, json!({"actual": 21.46, "offset": 0, "target": 60.0}));
        let progress = Progress::new(Some(0.123_456), Some(1234.0), 61.9);
        assert_eq!((progress.completion, progress.filepos, progress.print_time), (Some(12.35), Some(1234), Some(61)));
        let odd = Progress::new(Some(7.0), Some(-1.0), f64::NAN);
        assert_eq!((odd.completion, odd.filepos, odd.print_time), (Some(100.0), Some(0), Some(0)));
    }

    #[test]
    fn without_a_job_nothing_is_told_of_one() {
        let job = serde_json::to_value(Job::new(None, Progress::default(), Standing::Operational)).unwrap();
        let nothing = json!({"completion": null, "filepos": null, "printTime": null, "printTimeLeft": null, "printTimeOrigin": null});
        assert_eq!(job["progress"], nothing);
        let info = json!({"file": {"name": null}, "estimatedPrintTime": null, "filament": {"length": null}, "user": null});
        assert_eq!((&job["job"], &job["state"]), (&info, &json!("Operational")));
    }
}
