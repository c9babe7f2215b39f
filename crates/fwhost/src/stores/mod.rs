//! What is remembered for clients that come later: temperatures and gcode lines. Lost at a restart of the service.

pub(crate) mod gcode;
pub(crate) mod temperature;
