//! Gcode of our own making for the simulated printer.

use std::fmt::Write;

/// A job that homes, moves for a while and ends: `moves` diagonal strokes with a layer each.
pub(crate) fn job(moves: u32) -> String {
    let mut gcode = format!("; a test\nG28\nG90\nM83\nSET_PRINT_STATS_INFO TOTAL_LAYER={moves} CURRENT_LAYER=0\n");
    for layer in 1..=moves {
        let x = if layer % 2 == 0 { 20 } else { 180 };
        let _ = writeln!(gcode, "SET_PRINT_STATS_INFO CURRENT_LAYER={layer}\nG1 X{x} Y{x} Z5 F6000");
    }
    gcode + "M84\n"
}

/// A job so long that no test sees its end.
pub(crate) fn long_job() -> String {
    job(5000)
}

/// A job that fails at its first line.
pub(crate) fn failing_job() -> String {
    "G1 X10 F600\n".to_owned()
}
