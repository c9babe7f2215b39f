//! Buttons and switches at pins of this machine, and the templates that say what they do.
//!
//! ```text
//! line (gpio) ─► listener (one task per button) ─► debounce (pure) ─► queue ─► actions: one template after another
//! ```
//!
//! The line is read on while a template is at work. Source: wire/3-devices.md sections 1.1, 1.8 and 10.7.

mod actions;
mod debounce;
mod listener;
mod options;
mod service;
#[cfg(test)]
mod tests;

pub use actions::{MAX_AUX, MAX_MEMORY, MAX_TIME};
pub use debounce::{MAX_BOUNCES, NOISE_WINDOW};
pub use listener::MAX_WAITING;
pub use options::{ButtonKind, ButtonOptions, ConfiguredButton, MAX_BUTTONS};
pub use service::{Buttons, Parts, Warn};
