//! Devices around the printer.
//!
//! [`led`] lights strips (document 3 *LED strips*); [`power`] switches things on and off (*Power devices*); [`sensor`] takes down numbers
//! (*Sensors*); [`button`] is for fingers; [`gpio`] is where lines of this machine's GPIO chips come from; [`base`] is where those in the network are;
//! [`script`] lets templates in options of devices call the server.

pub mod base;
pub mod button;
pub mod gpio;
pub mod led;
pub mod power;
#[cfg(test)]
mod reading;
pub mod script;
pub mod sensor;
pub mod settings;
