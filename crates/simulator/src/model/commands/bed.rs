//! Bed mesh commands.

use super::{Command, Flow, Ran};
use crate::model::Model;
use crate::model::bed_mesh::{BedMesh, TRAVEL_Z};
use crate::model::job::{Inner, Step};
use crate::model::line::{CommandError, Line};

pub(super) const COMMANDS: &[Command] = &[
    Command::with_help("BED_MESH_CALIBRATE", "Probe the bed", calibrate),
    Command::with_help("BED_MESH_CLEAR", "Use no mesh", clear),
    Command::with_help("BED_MESH_PROFILE", "Save, load or remove a mesh: SAVE=, LOAD= or REMOVE=name", profile),
];

impl Model {
    /// The toolhead visited all points: take over the heights.
    pub(in crate::model) fn mesh_probed(&mut self) {
        self.mesh.measure(&mut self.noise);
        self.respond_info("Mesh Bed Leveling Complete");
        self.respond_info("The mesh was saved as profile [default] for this session.");
    }
}

fn calibrate(model: &mut Model, _: &Line) -> Ran {
    if !model.toolhead.homed.iter().all(|homed| *homed) {
        return Err(CommandError::new("Must home before probe"));
    }
    model.mesh.clear();
    let mut lines = vec!["SAVE_GCODE_STATE NAME=_bed_mesh".to_owned(), "G90".to_owned()];
    for [x, y] in BedMesh::points() {
        lines.push(format!("G1 Z{TRAVEL_Z} F900"));
        lines.push(format!("G1 X{x} Y{y} F12000"));
        lines.push("G1 Z0 F720".to_owned());
    }
    lines.push(format!("G1 Z{TRAVEL_Z} F900"));
    lines.push("RESTORE_GCODE_STATE NAME=_bed_mesh".to_owned());
    let rest = [Inner::Finish, Inner::MeshDone].map(Step::Inner);
    Ok(Flow::Steps(lines.into_iter().map(Step::Text).chain(rest).collect()))
}

fn clear(model: &mut Model, _: &Line) -> Ran {
    model.mesh.clear();
    Ok(Flow::Next)
}

fn profile(model: &mut Model, line: &Line) -> Ran {
    let params = line.params()?;
    if let Some(name) = params.get("SAVE") {
        if !model.mesh.save(name) {
            return Err(CommandError::new("Unable to save to profile: the bed has not been probed"));
        }
    } else if let Some(name) = params.get("LOAD") {
        if !model.mesh.load(name) {
            return Err(CommandError(format!("bed_mesh: Unknown profile [{name}]")));
        }
    } else if let Some(name) = params.get("REMOVE") {
        model.mesh.profiles.remove(name);
    } else {
        return Err(CommandError(format!("Invalid syntax '{}'", line.text)));
    }
    Ok(Flow::Next)
}
