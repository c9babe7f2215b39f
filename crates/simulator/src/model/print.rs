//! The print job as `print_stats`, `virtual_sdcard` and `pause_resume` show it.
//!
//! ```text
//! standby ──start──▶ printing ◀──resume──┐
//!                     │  │ └──pause──▶ paused
//!                     │  ├─end of file─▶ complete      ├─cancel─▶ cancelled
//!                     │  └─gcode error─▶ error   (reset: any ─▶ standby)
//! ```

use super::storage::PrintFile;

/// State of the job (wire document 5, section 5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PrintState {
    /// No job since the last reset.
    #[default]
    Standby,
    /// Lines of the file are being executed.
    Printing,
    /// Stopped for a while.
    Paused,
    /// The whole file was executed.
    Complete,
    /// Ended by the user.
    Cancelled,
    /// Ended by a failing command.
    Error,
}

impl PrintState {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standby => "standby",
            Self::Printing => "printing",
            Self::Paused => "paused",
            Self::Complete => "complete",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

/// The numbers of a job. Times are seconds of model time.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrintStats {
    /// State of the job.
    pub(crate) state: PrintState,
    /// File name relative to the gcodes folder.
    pub(crate) filename: String,
    /// Why the job failed.
    pub(crate) message: String,
    /// Seconds since the start, pauses included.
    pub(crate) total_duration: f64,
    /// Seconds since the first extrusion, pauses excluded.
    pub(crate) print_duration: f64,
    /// Filament pushed, mm.
    pub(crate) filament_used: f64,
    /// Layers in total, if known.
    pub(crate) total_layer: Option<u64>,
    /// Present layer, if known.
    pub(crate) current_layer: Option<u64>,
    /// Layers came by `SET_PRINT_STATS_INFO`, so comments in the file no longer count.
    pub(crate) layers_told: bool,
    extruding: bool,
}

impl PrintStats {
    /// A job begins or goes on.
    pub(crate) fn start(&mut self, filename: &str) {
        if self.state == PrintState::Paused {
            self.state = PrintState::Printing;
            return;
        }
        *self = Self { state: PrintState::Printing, filename: filename.to_owned(), ..Self::default() };
    }

    /// The job leaves `Printing` or `Paused`.
    pub(crate) fn finish(&mut self, state: PrintState, message: &str) {
        if matches!(self.state, PrintState::Printing | PrintState::Paused) {
            self.state = state;
            message.clone_into(&mut self.message);
        }
    }

    /// The job pauses.
    pub(crate) fn pause(&mut self) {
        if self.state == PrintState::Printing {
            self.state = PrintState::Paused;
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, seconds: f64) {
        let printing = self.state == PrintState::Printing;
        if printing || self.state == PrintState::Paused {
            self.total_duration += seconds;
        }
        if printing && self.extruding {
            self.print_duration += seconds;
        }
    }

    /// Filament was pushed (or pulled back, if negative), mm.
    pub(crate) fn extruded(&mut self, length: f64) {
        if self.state == PrintState::Printing {
            self.extruding |= length > 0.0;
            self.filament_used += length;
        }
    }

    /// `SET_PRINT_STATS_INFO`; zero total means unknown, as on the real host.
    pub(crate) fn set_layers(&mut self, total: Option<u64>, current: Option<u64>) {
        self.layers_told = true;
        if let Some(total) = total {
            self.total_layer = (total > 0).then_some(total);
            self.current_layer = (total > 0).then_some(self.current_layer.unwrap_or(0));
        }
        if let (Some(current), Some(total)) = (current, self.total_layer) {
            self.current_layer = Some(current.min(total));
        }
    }

    /// Layer marks that slicers leave in comments.
    pub(crate) fn read_comment(&mut self, comment: &str) {
        if self.layers_told {
            return;
        }
        let comment = comment.trim();
        if comment == "LAYER_CHANGE" || comment == "CHANGE_LAYER" {
            self.current_layer = Some(self.current_layer.unwrap_or(0) + 1);
        } else if let Some((key, value)) = comment.split_once(':') {
            let number = value.trim().parse::<u64>().ok();
            match (key.trim(), number) {
                ("LAYER", Some(index)) => self.current_layer = Some(index + 1),
                ("LAYER_COUNT" | "total layer number" | "TOTAL_LAYER", Some(total)) => self.total_layer = Some(total),
                _ => {}
            }
        }
    }
}

/// The job's file and whether its lines are being executed.
#[derive(Default)]
pub(crate) struct VirtualSd {
    /// The open file.
    pub(crate) file: Option<PrintFile>,
    /// Lines are being executed.
    pub(crate) active: bool,
    /// Progress and size of a file that was printed to its end, which stay visible until the next one.
    pub(crate) last: (f64, u64, u64),
}

impl VirtualSd {
    /// Progress (0–1), position and size in bytes.
    pub(crate) fn numbers(&self) -> (f64, u64, u64) {
        self.file.as_ref().map_or(self.last, |f| (f.progress(), f.position, f.size))
    }

    /// The file was executed to its end: it is closed, its numbers stay.
    pub(crate) fn complete(&mut self) {
        let (_, position, size) = self.numbers();
        *self = Self { last: (1.0, position, size), ..Self::default() };
    }

    /// Closes the file and forgets its numbers.
    pub(crate) fn close(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_count_what_they_say() {
        let mut s = PrintStats::default();
        s.start("a.gcode");
        s.pass(10.0);
        s.extruded(-1.0);
        s.pass(1.0);
        s.extruded(3.0);
        s.pass(5.0);
        s.pause();
        s.pass(100.0);
        s.start("a.gcode");
        s.pass(2.0);
        s.finish(PrintState::Complete, "");
        s.pass(50.0);
        assert_eq!((s.total_duration, s.print_duration, s.filament_used), (118.0, 7.0, 2.0));
        s.finish(PrintState::Error, "too late");
        assert_eq!(s.state, PrintState::Complete);
        s.start("b.gcode");
        assert_eq!((s.total_duration, s.filename.as_str()), (0.0, "b.gcode"));
    }

    #[test]
    fn layers_from_comments_until_told() {
        let mut s = PrintStats::default();
        s.read_comment("LAYER_COUNT:20");
        s.read_comment("LAYER:4");
        assert_eq!((s.total_layer, s.current_layer), (Some(20), Some(5)));
        s.read_comment("LAYER_CHANGE");
        assert_eq!(s.current_layer, Some(6));
        s.set_layers(Some(8), None);
        s.set_layers(None, Some(99));
        s.read_comment("LAYER:1");
        assert_eq!((s.total_layer, s.current_layer), (Some(8), Some(8)));
    }
}
