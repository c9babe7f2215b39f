//! The socket side: connections, requests, status ticks, restarts. One task, the [`host::Host`], owns everything; connection tasks only
//! move bytes.

pub(crate) mod command;
mod connection;
mod endpoints;
mod fault_state;
mod frame;
pub(crate) mod host;
pub(crate) mod listener;
mod orders;
mod outgoing;
mod request;
mod restart;
mod status;
