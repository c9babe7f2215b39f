//! What stands around the printer.
//!
//! [`Agents`] are programs that stay connected and offer methods to clients and to macros of the printer (document 1 *Extensions*).
//! [`Webcams`] keeps the cameras that front ends show (document 2 *Webcams*).
//! [`Announcements`] gathers news from feeds and from our own components (document 2 *Announcements*).
//! [`SlicerApi`] is the part of another print server's API that slicers and screens know (wire/1-core.md section 10).
//! [`discovery`] lets the printer be found in the local network (document 1 *Network discovery*).
//! [`MqttService`] publishes and waits for messages at a broker (document 1 *MQTT*).

pub mod agents;
pub mod announcements;
pub mod discovery;
mod fault;
pub mod mqtt;
pub mod slicer_api;
pub mod webcams;

pub use agents::{Agents, MacroHost};
pub use announcements::{AnnouncementOptions, Announcements};
pub use discovery::DiscoveryOptions;
pub use mqtt::{MqttSection, MqttService};
pub use slicer_api::{SlicerApi, SlicerApiOptions};
pub use webcams::{WebcamOptions, Webcams};
