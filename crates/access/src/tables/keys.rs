//! The table of named API keys, and the one key of the specification.

use rpc::Role;
use store::rusqlite::{OptionalExtension, Row, params};
use store::{Store, StoreError};

use crate::random::Digest;

/// A named key as stored: what it is derived from is known to its holder only.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredKey {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) digest: Digest,
    /// Times in Unix seconds.
    pub(crate) created_on: f64,
    pub(crate) expires_on: Option<f64>,
    pub(crate) last_used: Option<f64>,
}

#[derive(Clone)]
pub(crate) struct KeyTable {
    store: Store,
}

const COLUMNS: &str = "name, role, digest, created_on, expires_on, last_used";

impl KeyTable {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    pub(crate) async fn all(&self) -> Result<Vec<StoredKey>, StoreError> {
        self.store
            .read(|conn| {
                let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM access_keys ORDER BY name"))?;
                let rows = statement.query_map([], key)?;
                Ok(rows.filter_map(Result::ok).collect())
            })
            .await
    }

    pub(crate) async fn add(&self, key: StoredKey) -> Result<(), StoreError> {
        self.store
            .write(move |conn| {
                let sql = format!("INSERT INTO access_keys ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
                let StoredKey { name, role, digest, created_on, expires_on, last_used } = key;
                conn.prepare_cached(&sql)?.execute(params![name, role.as_str(), digest, created_on, expires_on, last_used])?;
                Ok(())
            })
            .await
    }

    pub(crate) async fn remove(&self, name: String) -> Result<(), StoreError> {
        self.store.write(move |conn| Ok(conn.execute("DELETE FROM access_keys WHERE name = ?1", params![name]).map(drop)?)).await
    }

    /// Notes when keys were used.
    pub(crate) async fn touch(&self, used: Vec<(String, f64)>) -> Result<(), StoreError> {
        self.store
            .write(move |conn| {
                let mut statement = conn.prepare_cached("UPDATE access_keys SET last_used = ?2 WHERE name = ?1")?;
                for (name, time) in used {
                    statement.execute(params![name, time])?;
                }
                Ok(())
            })
            .await
    }

    /// The one key of the specification and when it was made.
    pub(crate) async fn api_key(&self) -> Result<Option<(String, f64)>, StoreError> {
        let sql = "SELECT key, created_on FROM access_api_key WHERE id = 1";
        self.store.read(move |conn| Ok(conn.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)).await
    }

    pub(crate) async fn set_api_key(&self, key: String, created_on: f64) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO access_api_key (id, key, created_on) VALUES (1, ?1, ?2)";
        self.store.write(move |conn| Ok(conn.execute(sql, params![key, created_on]).map(drop)?)).await
    }
}

fn key(row: &Row<'_>) -> store::rusqlite::Result<StoredKey> {
    let role: String = row.get(1)?;
    Ok(StoredKey {
        name: row.get(0)?,
        role: Role::parse(&role).unwrap_or(Role::Viewer),
        digest: row.get(2)?,
        created_on: row.get(3)?,
        expires_on: row.get(4)?,
        last_used: row.get(5)?,
    })
}
