//! Devices at work: workers, service and drivers against emulators.

pub(crate) mod emulators;
mod rig;

mod behaviour;
mod hostile;
mod klap;
mod over_http;
