//! What other programs add to the server.
//!
//! [`Agents`] are programs that stay connected and offer methods to clients and to macros of the printer (document 1 *Extensions*).

pub mod agents;

pub use agents::{Agents, MacroHost};
