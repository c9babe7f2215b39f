//! What stands around the printer.
//!
//! [`Agents`] are programs that stay connected and offer methods to clients and to macros of the printer (document 1 *Extensions*).
//! [`Webcams`] keeps the cameras that front ends show (document 2 *Webcams*).
//! [`Announcements`] gathers news from feeds and from our own components (document 2 *Announcements*).

pub mod agents;
pub mod announcements;
mod fault;
pub mod webcams;

pub use agents::{Agents, MacroHost};
pub use announcements::{AnnouncementOptions, Announcements};
pub use webcams::{WebcamOptions, Webcams};
