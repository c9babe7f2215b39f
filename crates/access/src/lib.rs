//! Who may call: users and their tokens, API keys, trusted networks, configured proxies and cross-origin rules.
//!
//! Deny by default: nobody is let in by address alone unless the owner configured that address, and an address that a header claims counts only
//! when a configured proxy sent the header. Document 1 *Authentication*, wire/1-core.md section 6, design.md section 7 (forwarded addresses).

pub mod audit;
mod gate;
mod network;
mod origin;
pub mod password;
#[allow(dead_code, unused_imports, reason = "the service that uses the rest follows")]
mod random;
#[allow(dead_code, unused_imports, reason = "the service that uses the rest follows")]
mod tables;

pub use audit::AuditLog;
pub use gate::{Admission, Facts, Gate, Settings};
pub use password::PasswordHash;
pub use tables::{SCHEMA, SECRET_TABLES, StoredUser, Users};
