//! Devices around the printer.
//!
//! [`script`] lets templates in their options call the server.

pub mod script;
