//! Devices around the printer.
//!
//! [`led`] lights strips (document 3 *LED strips*); [`script`] lets templates in their options call the server.

pub mod led;
pub mod script;
pub mod settings;
