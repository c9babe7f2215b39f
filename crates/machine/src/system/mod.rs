//! What the machine is: one reader per subject, each with its own source, each empty where the machine has nothing to tell.
//! Source: document 1 *System Info*, wire/1-core.md sections 4.5 and 8.8.

mod cpu;
mod distribution;
mod network;
mod python;
mod sd_card;
mod service;
pub(crate) mod unit;
pub(crate) mod virtualization;

pub(crate) use service::{DEFAULT_CORE, InstanceIds, KnownServices, System, SystemInfo};
