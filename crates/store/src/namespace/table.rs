//! The table of records, and the operations on it as plain functions over a connection.
//!
//! One row per top-level key; the value is JSON text. Use these functions inside [`Store::write`](crate::Store::write)
//! or [`Store::read`](crate::Store::read) to change records together with tables of your own.

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::value::RawValue;

use super::check::{self, MAX_VALUE_BYTES};
use super::tree;
use crate::{Access, Key, Migration, Namespace, Schema, StoreError};

/// Bytes of a whole namespace in one answer at most; a larger one is to be read key by key.
pub const MAX_WHOLE_BYTES: usize = 64 * 1024 * 1024;

/// The namespace that keeps the store's own records, among them further access rules.
const OWN: Namespace = Namespace::fixed("database");

pub(crate) const SCHEMA: Schema = Schema {
    part: "namespaces",
    migrations: &[Migration {
        version: 1,
        name: "records of namespaces",
        sql: "CREATE TABLE namespace_store (
                  namespace TEXT NOT NULL,
                  key TEXT NOT NULL,
                  value TEXT NOT NULL,
                  PRIMARY KEY (namespace, key)
              ) STRICT",
    }],
};

/// The value at `key`, or the whole namespace as one object (members in the order of their names).
///
/// # Errors
/// [`StoreError::NotFound`]; [`StoreError::TooLarge`] for a namespace beyond [`MAX_WHOLE_BYTES`].
pub fn get(conn: &Connection, namespace: &Namespace, key: Option<&Key>) -> Result<Box<RawValue>, StoreError> {
    let Some(key) = key else { return whole(conn, namespace) };
    let missing = || missing_key(namespace, key);
    let record = fetch(conn, namespace, key.record())?.ok_or_else(missing)?;
    if key.members().is_empty() {
        return Ok(record);
    }
    tree::find(&record, key.members()).map(RawValue::to_owned).ok_or_else(missing)
}

/// Stores `value` at `key`; makes missing parents. Document 1, *Database*, rule 2, and wire/1-core.md section 4.3.
///
/// # Errors
/// [`StoreError::BadKey`] when a parent below the record is no object; [`StoreError::BadValue`] when the value or the
/// resulting record cannot be stored.
pub fn post(conn: &Connection, namespace: &Namespace, key: &Key, value: &RawValue) -> Result<(), StoreError> {
    check::check(value.get())?;
    if key.members().is_empty() {
        return put(conn, namespace, key.record(), value);
    }
    let old = fetch(conn, namespace, key.record())?;
    let new = tree::insert(old.as_deref(), key.members(), value)?;
    check::check(new.get())?;
    put(conn, namespace, key.record(), &new)
}

/// Removes the value at `key` and returns it. A record that becomes empty goes too, and with its last record the
/// namespace.
///
/// # Errors
/// [`StoreError::NotFound`].
pub fn delete(conn: &Connection, namespace: &Namespace, key: &Key) -> Result<Box<RawValue>, StoreError> {
    let missing = || missing_key(namespace, key);
    let record = fetch(conn, namespace, key.record())?.ok_or_else(missing)?;
    if key.members().is_empty() {
        remove(conn, namespace, key.record())?;
        return Ok(record);
    }
    let removed = tree::remove(&record, key.members())?.ok_or_else(missing)?;
    match removed.rest {
        Some(rest) => put(conn, namespace, key.record(), &rest)?,
        None => remove(conn, namespace, key.record())?,
    }
    Ok(removed.value)
}

/// All namespaces, sorted by name.
///
/// # Errors
/// Those of the database.
pub fn list(conn: &Connection) -> Result<Vec<String>, StoreError> {
    let mut select = conn.prepare_cached("SELECT DISTINCT namespace FROM namespace_store ORDER BY namespace")?;
    let names = select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(names)
}

/// What clients may do: the fixed rule and the lists `protected_namespaces` and `forbidden_namespaces` that imported
/// databases keep in the namespace `database` (wire/1-core.md section 8.4).
///
/// # Errors
/// Those of the database.
pub fn access(conn: &Connection, namespace: &Namespace) -> Result<Access, StoreError> {
    let name = namespace.as_str();
    let stored = if names_in(conn, "forbidden_namespaces")?.iter().any(|listed| listed == name) {
        Access::Forbidden
    } else if names_in(conn, "protected_namespaces")?.iter().any(|listed| listed == name) {
        Access::Protected
    } else {
        Access::Free
    };
    Ok(Access::of(name).max(stored))
}

/// A stored list of names; anything else than an array of strings counts as empty.
fn names_in(conn: &Connection, record: &str) -> Result<Vec<String>, StoreError> {
    let stored = fetch(conn, &OWN, record)?;
    Ok(stored.and_then(|names| serde_json::from_str(names.get()).ok()).unwrap_or_default())
}

fn whole(conn: &Connection, namespace: &Namespace) -> Result<Box<RawValue>, StoreError> {
    let mut select = conn.prepare_cached("SELECT key, value FROM namespace_store WHERE namespace = ?1 ORDER BY key")?;
    let mut rows = select.query([namespace.as_str()])?;
    let mut json = String::from("{");
    while let Some(row) = rows.next()? {
        if json.len() > 1 {
            json.push(',');
        }
        json += &serde_json::to_string(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?).map_err(|error| internal(&error))?;
        json.push(':');
        json += row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        if json.len() > MAX_WHOLE_BYTES {
            let text = format!("Namespace '{namespace}' is larger than {MAX_WHOLE_BYTES} bytes: read it key by key");
            return Err(StoreError::TooLarge(text));
        }
    }
    if json.len() == 1 {
        return Err(StoreError::NotFound(format!("Namespace '{namespace}' not found")));
    }
    json.push('}');
    as_json(json)
}

fn fetch(conn: &Connection, namespace: &Namespace, record: &str) -> Result<Option<Box<RawValue>>, StoreError> {
    let mut select = conn.prepare_cached("SELECT value FROM namespace_store WHERE namespace = ?1 AND key = ?2")?;
    let json: Option<String> = select.query_row([namespace.as_str(), record], |row| row.get(0)).optional()?;
    json.map(as_json).transpose()
}

fn put(conn: &Connection, namespace: &Namespace, record: &str, value: &RawValue) -> Result<(), StoreError> {
    debug_assert!(value.get().len() <= MAX_VALUE_BYTES);
    let mut upsert = conn.prepare_cached(
        "INSERT INTO namespace_store (namespace, key, value) VALUES (?1, ?2, ?3)
         ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value",
    )?;
    upsert.execute(params![namespace.as_str(), record, value.get()])?;
    Ok(())
}

fn remove(conn: &Connection, namespace: &Namespace, record: &str) -> Result<(), StoreError> {
    let mut delete = conn.prepare_cached("DELETE FROM namespace_store WHERE namespace = ?1 AND key = ?2")?;
    delete.execute([namespace.as_str(), record])?;
    Ok(())
}

/// Stored text as a value. It was JSON when it was stored, so a failure means damage.
fn as_json(text: String) -> Result<Box<RawValue>, StoreError> {
    RawValue::from_string(text).map_err(|error| StoreError::Corrupt(format!("a record is not JSON: {error}")))
}

fn internal(error: &serde_json::Error) -> StoreError {
    StoreError::Internal(error.to_string())
}

/// Clients compare this text (wire/4-clients.md section 6).
fn missing_key(namespace: &Namespace, key: &Key) -> StoreError {
    StoreError::NotFound(format!("Key '{key}' in namespace '{namespace}' not found"))
}
