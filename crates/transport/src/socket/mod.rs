//! Persistent message connections: the primary websocket and the unix socket share one loop.

pub(crate) mod etx;
mod frames;
mod looped;
mod unix;
mod websocket;

pub use unix::{listen as listen_unix, serve as serve_unix};
pub(crate) use websocket::{Socket, accept, close, refuse_origin, upgrade};
