//! Server administration (document 1): what the server is and how it does, its configuration, restart, logs, who a connection is, and the
//! key-value database of the clients.

mod administration;
mod config_report;
mod database;
mod identity;
mod logs;
mod warnings;

pub use administration::{Administration, Authenticate, Credential, Parts, RollOver, ServerInfo};
pub use config_report::{ConfigFile, ConfigReport};
pub use database::{Database, DatabaseOptions, DatabaseParts, Printing};
pub use logs::{LogApplication, RolledOver};
pub use warnings::Warnings;
