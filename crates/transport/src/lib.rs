//! The edge: loops and codecs that carry calls in and answers out. No business rule lives here; every operation is found in the registry.
//!
//! | way in | module |
//! |---|---|
//! | HTTP, JSON-RPC over HTTP, uploads, downloads | [`http`] |
//! | primary websocket, unix socket | [`socket`] |
//! | bridge websocket to the firmware host | [`bridge`] |
//! | MQTT | [`mqtt`] |

pub mod bridge;
pub mod gateway;
pub mod http;
pub mod limits;
pub mod mqtt;
pub mod socket;
mod wire;

pub use bridge::BridgeTarget;
pub use gateway::{Gateway, Settings};
