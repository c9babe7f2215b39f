//! The table of sessions: one key pair each.

use store::rusqlite::{Row, params};
use store::{Store, StoreError};

/// A session as stored.
#[derive(Clone)]
pub(crate) struct StoredSession {
    /// Key id in the tokens of the session.
    pub(crate) id: String,
    pub(crate) user_name: String,
    /// Private key. Never logged, never sent.
    pub(crate) seed: [u8; 32],
    /// Times in Unix seconds.
    pub(crate) created_on: f64,
    pub(crate) last_used: f64,
    /// End of the refresh token.
    pub(crate) expires_on: f64,
    /// Where the login came from.
    pub(crate) address: Option<String>,
    /// How the program behind the login called itself.
    pub(crate) client: Option<String>,
}

#[derive(Clone)]
pub(crate) struct SessionTable {
    store: Store,
}

const COLUMNS: &str = "id, user_name, seed, created_on, last_used, expires_on, address, client";

impl SessionTable {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    pub(crate) async fn all(&self) -> Result<Vec<StoredSession>, StoreError> {
        self.store
            .read(|conn| {
                let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM access_sessions ORDER BY created_on"))?;
                let rows = statement.query_map([], session)?;
                // A row whose seed is no seed is no session.
                Ok(rows.filter_map(Result::ok).collect())
            })
            .await
    }

    pub(crate) async fn add(&self, session: StoredSession) -> Result<(), StoreError> {
        self.store
            .write(move |conn| {
                let sql = format!("INSERT INTO access_sessions ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
                let StoredSession { id, user_name, seed, created_on, last_used, expires_on, address, client } = session;
                conn.prepare_cached(&sql)?.execute(params![id, user_name, seed, created_on, last_used, expires_on, address, client])?;
                Ok(())
            })
            .await
    }

    pub(crate) async fn remove(&self, ids: Vec<String>) -> Result<(), StoreError> {
        self.store
            .write(move |conn| {
                let mut statement = conn.prepare_cached("DELETE FROM access_sessions WHERE id = ?1")?;
                for id in ids {
                    statement.execute(params![id])?;
                }
                Ok(())
            })
            .await
    }

    /// Notes when sessions were used.
    pub(crate) async fn touch(&self, used: Vec<(String, f64)>) -> Result<(), StoreError> {
        self.store
            .write(move |conn| {
                let mut statement = conn.prepare_cached("UPDATE access_sessions SET last_used = ?2 WHERE id = ?1")?;
                for (id, time) in used {
                    statement.execute(params![id, time])?;
                }
                Ok(())
            })
            .await
    }
}

fn session(row: &Row<'_>) -> store::rusqlite::Result<StoredSession> {
    Ok(StoredSession {
        id: row.get(0)?,
        user_name: row.get(1)?,
        seed: row.get(2)?,
        created_on: row.get(3)?,
        last_used: row.get(4)?,
        expires_on: row.get(5)?,
        address: row.get(6)?,
        client: row.get(7)?,
    })
}
