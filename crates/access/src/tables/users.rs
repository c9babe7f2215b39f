//! The table of users.

use protocol::Form;
use rpc::{Role, UserSource};
use store::rusqlite::{Row, params};
use store::{Store, StoreError};

use crate::password::PasswordHash;

/// A user as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredUser {
    /// Login name.
    pub name: String,
    /// Where the password is checked.
    pub source: UserSource,
    /// What the user may do.
    pub role: Role,
    /// The password; [`PasswordHash::nothing`] for users of a directory.
    pub password: PasswordHash,
    /// Unix seconds.
    pub created_on: f64,
}

/// Access to the table. For imports; while a server runs, it alone changes its users.
#[derive(Clone)]
pub struct Users {
    store: Store,
}

impl Users {
    /// The users in `store`, which was opened with [`SCHEMA`](crate::SCHEMA).
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// All users by name.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn all(&self) -> Result<Vec<StoredUser>, StoreError> {
        self.store
            .read(|conn| {
                let mut statement =
                    conn.prepare_cached("SELECT name, source, role, password, created_on FROM access_users ORDER BY name")?;
                let rows = statement.query_map([], user)?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }

    /// Adds a user of another installation unless one of that name is there. True when it was added.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn import(&self, user: StoredUser) -> Result<bool, StoreError> {
        self.insert(user, "INSERT OR IGNORE").await
    }

    /// Takes over the API key of another installation, unless there is one already. True when it was taken.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn import_api_key(&self, key: String, created_on: f64) -> Result<bool, StoreError> {
        let sql = "INSERT OR IGNORE INTO access_api_key (id, key, created_on) VALUES (1, ?1, ?2)";
        self.store.write(move |conn| Ok(conn.execute(sql, params![key, created_on])? > 0)).await
    }

    /// Adds a user or changes the one of that name; sessions stay.
    pub(crate) async fn put(&self, user: StoredUser) -> Result<(), StoreError> {
        let StoredUser { name, source, role, password, created_on } = user;
        self.store
            .write(move |conn| {
                let sql = "INSERT INTO access_users (name, source, role, password, created_on) VALUES (?1, ?2, ?3, ?4, ?5)
                           ON CONFLICT (name) DO UPDATE SET source = ?2, role = ?3, password = ?4";
                conn.prepare_cached(sql)?.execute(params![
                    name,
                    source.as_str(Form::Neutral),
                    role.as_str(),
                    password.to_string(),
                    created_on
                ])?;
                Ok(())
            })
            .await
    }

    /// Removes a user with all sessions.
    pub(crate) async fn remove(&self, name: String) -> Result<(), StoreError> {
        self.store
            .write(move |conn| {
                conn.execute("DELETE FROM access_sessions WHERE user_name = ?1", params![name])?;
                conn.execute("DELETE FROM access_users WHERE name = ?1", params![name])?;
                Ok(())
            })
            .await
    }

    async fn insert(&self, user: StoredUser, verb: &'static str) -> Result<bool, StoreError> {
        let StoredUser { name, source, role, password, created_on } = user;
        self.store
            .write(move |conn| {
                let sql = format!("{verb} INTO access_users (name, source, role, password, created_on) VALUES (?1, ?2, ?3, ?4, ?5)");
                let values = params![name, source.as_str(Form::Neutral), role.as_str(), password.to_string(), created_on];
                Ok(conn.execute(&sql, values)? > 0)
            })
            .await
    }
}

/// A role or source that nobody knows was written by something else; it must not make anybody an administrator.
fn user(row: &Row<'_>) -> store::rusqlite::Result<StoredUser> {
    let (source, role, password): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
    Ok(StoredUser {
        name: row.get(0)?,
        source: UserSource::parse(&source).unwrap_or_default(),
        role: Role::parse(&role).unwrap_or(Role::Viewer),
        password: PasswordHash::parse(&password),
        created_on: row.get(4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SCHEMA;

    #[tokio::test]
    async fn users_are_kept_and_imports_replace_nobody() {
        let users = Users::new(Store::in_memory(&[SCHEMA]).unwrap());
        let password = PasswordHash::from_pbkdf2_hex(&"07".repeat(32), &"ab".repeat(32)).unwrap();
        let anna = StoredUser { name: "anna".into(), source: UserSource::Core, role: Role::Operator, password, created_on: 1.5 };
        assert!(users.import(anna.clone()).await.unwrap());
        assert!(!users.import(StoredUser { role: Role::Admin, ..anna.clone() }).await.unwrap());
        assert_eq!(users.all().await.unwrap(), std::slice::from_ref(&anna));
        let ldap = StoredUser { source: UserSource::Ldap, password: PasswordHash::nothing(), ..anna };
        users.put(ldap.clone()).await.unwrap();
        assert_eq!(users.all().await.unwrap(), [ldap]);
        users.remove("anna".into()).await.unwrap();
        assert!(users.all().await.unwrap().is_empty());
        assert!(users.import_api_key("k".into(), 1.0).await.unwrap() && !users.import_api_key("l".into(), 1.0).await.unwrap());
    }
}
