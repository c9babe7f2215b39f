//! The harness: a real server process with a simulated printer, and a client per transport. Everything has a deadline.

pub(crate) mod broker;
pub(crate) mod bus;
pub(crate) mod form;
pub(crate) mod http;
pub(crate) mod printer;
pub(crate) mod rpc;
pub(crate) mod sandbox;
pub(crate) mod server;
pub(crate) mod slapd;
pub(crate) mod trace;
pub(crate) mod unix;
pub(crate) mod wait;
pub(crate) mod web;
pub(crate) mod ws;

pub(crate) use form::Form;
pub(crate) use http::Http;
pub(crate) use rpc::{Channel, Rpc, RpcError};
pub(crate) use server::{Builder, TestServer};
pub(crate) use slapd::Slapd;
pub(crate) use unix::Unix;
pub(crate) use wait::within;
