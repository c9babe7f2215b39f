//! The table of the audit log: rows are added, and the oldest go.

use rpc::{Deed, Identity};
use store::rusqlite::{Connection, params};
use store::{Migration, Schema, Store, StoreError};

/// Entries that are kept.
const MAX_ENTRIES: i64 = 20_000;

/// Of these, entries about strangers: they must not crowd out the others.
const MAX_STRANGER_ENTRIES: i64 = 2_000;

/// Seconds for which entries are kept: half a year.
const MAX_AGE: f64 = 183.0 * 86_400.0;

/// The table; whoever opens the store passes this.
pub const SCHEMA: Schema = Schema {
    part: "audit",
    migrations: &[Migration {
        version: 1,
        name: "audit log",
        sql: "CREATE TABLE audit_log (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                time REAL NOT NULL,
                caller TEXT NOT NULL,
                user TEXT,
                address TEXT,
                way TEXT NOT NULL,
                method TEXT NOT NULL,
                arguments TEXT NOT NULL,
                status INTEGER NOT NULL,
                error TEXT
              ) STRICT;
              CREATE INDEX audit_log_strangers ON audit_log (id) WHERE caller = 'stranger';
              CREATE TRIGGER audit_log_is_not_changed BEFORE UPDATE ON audit_log BEGIN
                SELECT RAISE(ABORT, 'the audit log is append-only');
              END",
    }],
};

/// One entry.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Unix seconds.
    pub(super) time: f64,
    /// What kind of caller.
    pub(super) caller: String,
    /// Login name, or the name of a key.
    pub(super) user: Option<String>,
    pub(super) address: Option<String>,
    pub(super) way: String,
    pub(super) method: String,
    /// JSON object.
    pub(super) arguments: String,
    pub(super) status: u16,
    pub(super) error: Option<String>,
}

impl Row {
    pub(super) fn of(deed: Deed, time: f64) -> Self {
        let (caller, user) = match &deed.identity {
            Identity::Stranger => ("stranger", None),
            Identity::Trusted => ("trusted", None),
            Identity::Local => ("local", None),
            Identity::Internal => ("internal", None),
            Identity::User(user) => ("user", Some(user.name.clone())),
            Identity::Key(key) => ("key", key.name.clone()),
        };
        Self {
            time,
            caller: caller.to_owned(),
            user,
            address: deed.address.map(|address| address.to_string()),
            way: deed.way.to_owned(),
            method: deed.method,
            arguments: deed.arguments,
            status: deed.status,
            error: deed.error,
        }
    }
}

/// Which entries are wanted.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// Only entries before this one.
    pub(super) before: i64,
    /// At most so many.
    pub(super) limit: u32,
    /// Only those of this user.
    pub(super) user: Option<String>,
}

impl Default for Filter {
    fn default() -> Self {
        Self { before: i64::MAX, limit: 100, user: None }
    }
}

/// Access to the table.
pub(super) struct Table(Store);

impl Table {
    pub(super) fn new(store: Store) -> Self {
        Self(store)
    }

    /// Adds rows, and lets the oldest go.
    pub(super) async fn append(&self, rows: Vec<Row>, now: f64) -> Result<(), StoreError> {
        self.0
            .write(move |conn| {
                let sql = "INSERT INTO audit_log (time, caller, user, address, way, method, arguments, status, error)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
                let mut insert = conn.prepare_cached(sql)?;
                for row in &rows {
                    insert.execute(params![
                        row.time,
                        row.caller,
                        row.user,
                        row.address,
                        row.way,
                        row.method,
                        row.arguments,
                        row.status,
                        row.error
                    ])?;
                }
                prune(conn, now)
            })
            .await
    }

    pub(super) async fn read(&self, filter: Filter) -> Result<Vec<(i64, Row)>, StoreError> {
        self.0
            .read(move |conn| {
                let sql = "SELECT id, time, caller, user, address, way, method, arguments, status, error FROM audit_log
                           WHERE id < ?1 AND (?2 IS NULL OR user = ?2) ORDER BY id DESC LIMIT ?3";
                let mut select = conn.prepare_cached(sql)?;
                let rows = select.query_map(params![filter.before, filter.user, filter.limit], |row| {
                    let entry = Row {
                        time: row.get(1)?,
                        caller: row.get(2)?,
                        user: row.get(3)?,
                        address: row.get(4)?,
                        way: row.get(5)?,
                        method: row.get(6)?,
                        arguments: row.get(7)?,
                        status: row.get(8)?,
                        error: row.get(9)?,
                    };
                    Ok((row.get(0)?, entry))
                })?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }
}

fn prune(conn: &Connection, now: f64) -> Result<(), StoreError> {
    let run = |sql: &str, limit: i64| conn.prepare_cached(sql)?.execute([limit]);
    run("DELETE FROM audit_log WHERE id <= (SELECT max(id) FROM audit_log) - ?1", MAX_ENTRIES)?;
    run(
        "DELETE FROM audit_log WHERE caller = 'stranger' AND id <= (
           SELECT id FROM audit_log WHERE caller = 'stranger' ORDER BY id DESC LIMIT 1 OFFSET ?1)",
        MAX_STRANGER_ENTRIES,
    )?;
    // The oldest entry tells whether the others have to be looked at.
    let oldest: f64 =
        conn.prepare_cached("SELECT coalesce((SELECT time FROM audit_log ORDER BY id LIMIT 1), ?1)")?.query_row([now], |row| row.get(0))?;
    if oldest < now - MAX_AGE {
        conn.prepare_cached("DELETE FROM audit_log WHERE time < ?1")?.execute([now - MAX_AGE])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(caller: &str, time: f64) -> Row {
        Row {
            time,
            caller: caller.into(),
            user: (caller == "user").then(|| "anna".into()),
            address: None,
            way: "http".into(),
            method: "m".into(),
            arguments: "{}".into(),
            status: 200,
            error: None,
        }
    }

    fn table() -> Table {
        Table::new(Store::in_memory(&[SCHEMA]).unwrap())
    }

    async fn count(table: &Table, caller: &'static str) -> usize {
        let filter = Filter { limit: u32::MAX, ..Filter::default() };
        table.read(filter).await.unwrap().iter().filter(|(_, row)| row.caller == caller).count()
    }

    #[tokio::test]
    async fn the_oldest_go_and_strangers_first() {
        let table = table();
        table.append(vec![row("trusted", 1.0); 10], 1.0).await.unwrap();
        table.append(vec![row("stranger", 1.0); MAX_STRANGER_ENTRIES as usize + 500], 1.0).await.unwrap();
        assert_eq!(count(&table, "stranger").await, MAX_STRANGER_ENTRIES as usize);
        assert_eq!(count(&table, "trusted").await, 10);
        table.append(vec![row("trusted", 1.0); MAX_ENTRIES as usize], 1.0).await.unwrap();
        assert_eq!((count(&table, "stranger").await, count(&table, "trusted").await), (0, MAX_ENTRIES as usize));
    }

    #[tokio::test]
    async fn age_counts_too() {
        let table = table();
        table.append(vec![row("trusted", 1.0), row("user", MAX_AGE)], MAX_AGE).await.unwrap();
        assert_eq!(count(&table, "trusted").await, 1);
        table.append(vec![row("user", MAX_AGE + 5.0)], MAX_AGE + 5.0).await.unwrap();
        assert_eq!((count(&table, "trusted").await, count(&table, "user").await), (0, 2));
    }

    #[tokio::test]
    async fn pages_follow_each_other_and_users_can_be_picked() {
        let table = table();
        table.append((0..5).map(|n| row(if n == 2 { "user" } else { "trusted" }, f64::from(n))).collect(), 5.0).await.unwrap();
        let first = table.read(Filter { limit: 2, ..Filter::default() }).await.unwrap();
        assert_eq!(first.iter().map(|(_, row)| row.time).collect::<Vec<_>>(), [4.0, 3.0]);
        let second = table.read(Filter { limit: 2, before: first[1].0, user: None }).await.unwrap();
        assert_eq!(second.iter().map(|(_, row)| row.time).collect::<Vec<_>>(), [2.0, 1.0]);
        let annas = table.read(Filter { user: Some("anna".into()), ..Filter::default() }).await.unwrap();
        assert_eq!(annas.len(), 1);
    }

    #[tokio::test]
    async fn nothing_is_changed_afterwards() {
        let store = Store::in_memory(&[SCHEMA]).unwrap();
        Table::new(store.clone()).append(vec![row("user", 1.0)], 1.0).await.unwrap();
        let changed = store.write(|conn| Ok(conn.execute("UPDATE audit_log SET status = 200", [])?)).await;
        assert!(changed.is_err());
    }
}
