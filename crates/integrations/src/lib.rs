//! What stands around the printer.
//!
//! [`Agents`] are programs that stay connected and offer methods to clients and to macros of the printer (document 1 *Extensions*).
//! [`Webcams`] keeps the cameras that front ends show (document 2 *Webcams*).
//! [`Announcements`] gathers news from feeds and from our own components (document 2 *Announcements*).
//! [`MqttService`] publishes and waits for messages at a broker (document 1 *MQTT*).

pub mod agents;
pub mod announcements;
mod fault;
pub mod mqtt;
pub mod webcams;

pub use agents::{Agents, MacroHost};
pub use announcements::{AnnouncementOptions, Announcements};
pub use mqtt::{MqttSection, MqttService};
pub use webcams::{WebcamOptions, Webcams};
