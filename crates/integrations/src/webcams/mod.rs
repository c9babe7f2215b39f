//! Webcams: entries that front ends share. The server keeps, checks and tests them, and passes their pictures on ([`relay`]).
//!
//! Entries come from sections `[webcam name]` and from clients. The latter are kept in the namespace `webcams`, in the form that older front
//! ends write themselves ([`record`]). Source: document 2 *Webcams*, wire/2-files-jobs.md section 7.

mod address;
mod api;
mod list;
mod options;
mod probe;
pub mod record;
pub mod relay;
mod rules;
mod service;

pub use options::WebcamOptions;
pub use rules::MAX_WEBCAMS;
pub use service::{Parts, Webcams};
