//! The tables of users, sessions and keys. What they hold is in memory while the server runs; every change is on disk before it is answered.

mod keys;
mod sessions;
mod users;

pub(crate) use keys::{KeyTable, StoredKey};
pub(crate) use sessions::{SessionTable, StoredSession};
pub use users::{StoredUser, Users};

use store::{Migration, Schema};

/// The tables; whoever opens the store passes this.
pub const SCHEMA: Schema = Schema {
    part: "access",
    migrations: &[Migration {
        version: 1,
        name: "users, sessions, API keys",
        sql: "CREATE TABLE access_users (
                name TEXT NOT NULL PRIMARY KEY,
                source TEXT NOT NULL,
                role TEXT NOT NULL,
                password TEXT NOT NULL,
                created_on REAL NOT NULL
              ) STRICT, WITHOUT ROWID;
              CREATE TABLE access_sessions (
                id TEXT NOT NULL PRIMARY KEY,
                user_name TEXT NOT NULL REFERENCES access_users (name) ON DELETE CASCADE,
                seed BLOB NOT NULL,
                created_on REAL NOT NULL,
                last_used REAL NOT NULL,
                expires_on REAL NOT NULL,
                address TEXT,
                client TEXT
              ) STRICT, WITHOUT ROWID;
              CREATE INDEX access_sessions_by_user ON access_sessions (user_name);
              CREATE TABLE access_keys (
                name TEXT NOT NULL PRIMARY KEY,
                role TEXT NOT NULL,
                digest BLOB NOT NULL UNIQUE,
                created_on REAL NOT NULL,
                expires_on REAL,
                last_used REAL
              ) STRICT, WITHOUT ROWID;
              CREATE TABLE access_api_key (
                id INTEGER PRIMARY KEY CHECK (id = 1),
                key TEXT NOT NULL,
                created_on REAL NOT NULL
              ) STRICT",
    }],
};

/// Tables whose rows hold keys, hashes or seeds: no client may read them, debug features or not.
pub const SECRET_TABLES: &[&str] = &["access_users", "access_sessions", "access_keys", "access_api_key"];
