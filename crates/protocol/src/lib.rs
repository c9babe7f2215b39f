//! Pure wire types: the RPC envelope, error kinds, events, printer status and the two vocabularies.
//!
//! This crate is the bottom of the house: it does no I/O, knows no transport and no component. Whatever two crates must agree on about bytes
//! that a client or the firmware host sees stands here.

pub mod announcement;
pub mod button;
pub mod dual;
pub mod envelope;
pub mod error;
pub mod event;
pub mod jobs;
pub mod led;
pub mod machine;
pub mod power;
pub mod raw;
pub mod sensor;
pub mod state;
pub mod status;
pub mod version;
pub mod vocabulary;
pub mod webcam;

pub use error::{ApiError, ErrorKind};
pub use event::Event;
pub use state::FwhostState;
pub use vocabulary::Form;

/// A finished message: UTF-8 JSON text without any transport framing, shared between all connections that get it.
pub type Frame = bytes::Bytes;
