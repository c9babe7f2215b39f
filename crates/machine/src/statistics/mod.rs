//! Process statistics: once a second, from files that stay open.

pub mod parse;
mod sampler;
mod service;
mod temperature;
mod throttle;

pub(crate) use service::Statistics;
