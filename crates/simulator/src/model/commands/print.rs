//! Printing from the gcodes folder: start, pause, resume, cancel, and the older `M2x` commands.

use super::{Command, Flow, Ran, accept};
use crate::model::Model;
use crate::model::line::{CommandError, Line};
use crate::model::print::PrintState;

pub(super) const COMMANDS: &[Command] = &[
    Command::with_help("SET_PRINT_STATS_INFO", "Tell the layers of the print", layers),
    Command::with_help("SDCARD_PRINT_FILE", "Print a file of the gcodes folder, also from a subfolder", print_file),
    Command::with_help("SDCARD_RESET_FILE", "Close the file and stop its print", reset_file),
    Command::new("M20", list_files),
    Command::new("M21", card_ok),
    Command::new("M23", select_file),
    Command::new("M24", start_or_resume),
    Command::new("M25", hold),
    Command::new("M26", seek),
    Command::new("M27", show_progress),
    Command::new("M28", accept),
    Command::new("M29", accept),
    Command::new("M30", accept),
    Command::with_help("PAUSE_BASE", "The built-in pause", pause),
    Command::with_help("RESUME_BASE", "The built-in resume", resume),
    Command::with_help("CANCEL_PRINT_BASE", "The built-in cancel", cancel),
    Command::with_help("CLEAR_PAUSE", "Forget that the print was paused", clear_pause),
];

impl Model {
    fn load(&mut self, name: &str) -> Result<(), CommandError> {
        let file = self.storage.open(name.strip_prefix('/').unwrap_or(name)).map_err(|_| CommandError::new("Unable to open file"))?;
        self.reset_job();
        self.respond(format!("File opened:{} Size:{}", file.name, file.size));
        self.respond("File selected");
        self.print.filename.clone_from(&file.name);
        self.sd.file = Some(file);
        Ok(())
    }

    /// Forgets the job and everything that belongs to it.
    fn reset_job(&mut self) {
        self.sd.close();
        self.print = super::super::print::PrintStats::default();
        self.exclude.reset();
        self.display_progress = None;
        self.paused = false;
    }

    fn start_sd(&mut self) -> Ran {
        if self.sd.active {
            return Err(CommandError::new("SD busy"));
        }
        if let Some(file) = &self.sd.file {
            self.print.start(&file.name.clone());
            self.sd.active = true;
        }
        Ok(Flow::Next)
    }

    fn hold_sd(&mut self) {
        if self.sd.active {
            self.sd.active = false;
            self.print.pause();
        }
    }
}

fn layers(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    let whole = |value: Option<f64>| value.map(|v| v as u64);
    model.print.set_layers(whole(params.at_least("TOTAL_LAYER", 0.0)?), whole(params.at_least("CURRENT_LAYER", 0.0)?));
    Ok(Flow::Next)
}

fn print_file(model: &mut Model, line: &Line) -> Ran {
    if model.sd.active {
        return Err(CommandError::new("SD busy"));
    }
    let params = line.params()?;
    model.load(params.required("FILENAME")?)?;
    model.start_sd()
}

fn reset_file(model: &mut Model, _: &Line) -> Ran {
    model.reset_job();
    Ok(Flow::Next)
}

fn list_files(model: &mut Model, _: &Line) -> Ran {
    model.respond("Begin file list");
    for (name, size) in model.storage.list() {
        model.respond(format!("{name} {size}"));
    }
    model.respond("End file list");
    Ok(Flow::Next)
}

fn card_ok(model: &mut Model, _: &Line) -> Ran {
    model.respond("SD card ok");
    Ok(Flow::Next)
}

fn select_file(model: &mut Model, line: &Line) -> Ran {
    if model.sd.active {
        return Err(CommandError::new("SD busy"));
    }
    model.load(line.free_text())?;
    Ok(Flow::Next)
}

fn start_or_resume(model: &mut Model, _: &Line) -> Ran {
    model.start_sd()
}

fn hold(model: &mut Model, _: &Line) -> Ran {
    model.hold_sd();
    Ok(Flow::Next)
}

fn seek(model: &mut Model, line: &Line) -> Ran {
    if model.sd.active {
        return Err(CommandError::new("SD busy"));
    }
    let position = line.params()?.at_least("S", 0.0)?.unwrap_or(0.0) as u64;
    if let Some(file) = &mut model.sd.file {
        file.seek(position).map_err(|e| CommandError(e.to_string()))?;
    }
    Ok(Flow::Next)
}

fn show_progress(model: &mut Model, _: &Line) -> Ran {
    let line = match &model.sd.file {
        Some(file) => format!("SD printing byte {}/{}", file.position, file.size),
        None => "Not SD printing.".to_owned(),
    };
    model.respond(line);
    Ok(Flow::Next)
}

fn pause(model: &mut Model, _: &Line) -> Ran {
    if model.paused {
        model.respond_info("Print already paused");
        return Ok(Flow::Next);
    }
    if model.sd.active {
        model.hold_sd();
    } else {
        model.respond_info("action:paused");
    }
    model.paused = true;
    Ok(Flow::Next)
}

fn resume(model: &mut Model, _: &Line) -> Ran {
    if !model.paused {
        model.respond_info("Print is not paused, resume aborted");
        return Ok(Flow::Next);
    }
    model.paused = false;
    if model.print.state == PrintState::Paused {
        return model.start_sd();
    }
    model.respond_info("action:resumed");
    Ok(Flow::Next)
}

fn cancel(model: &mut Model, _: &Line) -> Ran {
    if model.sd.file.is_some() {
        model.print.finish(PrintState::Cancelled, "");
        model.sd.close();
    } else {
        model.respond_info("action:cancel");
    }
    model.paused = false;
    Ok(Flow::Next)
}

fn clear_pause(model: &mut Model, _: &Line) -> Ran {
    model.paused = false;
    Ok(Flow::Next)
}
