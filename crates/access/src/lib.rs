//! Who may call: users and their tokens, API keys, trusted networks, configured proxies and cross-origin rules.
//!
//! Deny by default: nobody is let in by address alone unless the owner configured that address, and an address that a header claims counts only
//! when a configured proxy sent the header. Document 1 *Authentication*, wire/1-core.md section 6, design.md section 7 (forwarded addresses).
//!
//! ```text
//! headers, peer ─► Gate::admit (by address) ─► Accounts::admit (by what is shown) ─► Identity
//! ```

pub mod accounts;
mod api;
pub mod audit;
mod credentials;
mod directory;
mod gate;
mod hasher;
mod ldap;
mod lockout;
mod names;
mod network;
mod oneshot;
mod origin;
pub mod password;
mod random;
mod tables;
pub mod token;
mod verified;

pub use accounts::{Accounts, Credential, Options};
pub use audit::AuditLog;
pub use credentials::Shown;
pub use directory::{Directory, DirectoryError};
pub use gate::{Admission, Facts, Gate, Settings};
pub use ldap::{Faulty, LdapDirectory, LdapOptions, MembershipAttribute};
pub use names::Names;
pub use password::PasswordHash;
pub use tables::{SCHEMA, SECRET_TABLES, StoredUser, Users};
