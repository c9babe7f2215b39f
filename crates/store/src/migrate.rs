//! Migrations: each part of the program owns tables and a numbered list of steps that make and change them.
//!
//! Parts are numbered apart from each other, so that a new step in one crate never collides with another crate's.
//! The table `schema_version` remembers how far each part has come. Each step and its record are one transaction.

use rusqlite::{Connection, OptionalExtension, params};

use crate::StoreError;

/// The tables of one part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// The part's name, for example `jobs`. Stored: never rename it.
    pub part: &'static str,
    /// Steps with ascending versions from 1 on. Released steps are never edited, only followed by new ones.
    pub migrations: &'static [Migration],
}

/// One step of a [`Schema`].
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Number within the part, from 1 on.
    pub version: u32,
    /// What the step does, in a few words; for the log and the ledger.
    pub name: &'static str,
    /// Statements, without transaction control.
    pub sql: &'static str,
}

const LEDGER: &str = "
    CREATE TABLE IF NOT EXISTS schema_version (
        part TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        name TEXT NOT NULL
    ) STRICT";

/// Refuses lists with gaps or repetitions (a mistake of ours, found by every test that opens a store).
pub(crate) fn validate(schemas: &[Schema]) -> Result<(), StoreError> {
    for (index, schema) in schemas.iter().enumerate() {
        if schemas[..index].iter().any(|earlier| earlier.part == schema.part) {
            return Err(StoreError::Internal(format!("two schemas are named '{}'", schema.part)));
        }
        for (expected, step) in (1u32..).zip(schema.migrations) {
            if step.version != expected {
                let text = format!("schema '{}': version {} where {expected} was due", schema.part, step.version);
                return Err(StoreError::Internal(text));
            }
        }
    }
    Ok(())
}

/// Refuses a database that a newer version of the program has written. Changes nothing.
pub(crate) fn refuse_newer(conn: &Connection, schemas: &[Schema]) -> Result<(), StoreError> {
    if !has_ledger(conn)? {
        return Ok(());
    }
    for schema in schemas {
        let found = version_of(conn, schema.part)?;
        let known = newest(schema);
        if found > known {
            return Err(StoreError::Newer { part: schema.part.to_owned(), found, known });
        }
    }
    Ok(())
}

/// Runs the steps that the database has not seen yet.
pub(crate) fn run(conn: &mut Connection, schemas: &[Schema]) -> Result<(), StoreError> {
    if !has_ledger(conn)? {
        conn.execute_batch(LEDGER)?;
    }
    for schema in schemas {
        let present = version_of(conn, schema.part)?;
        for step in schema.migrations.iter().filter(|step| step.version > present) {
            apply(conn, schema.part, step).map_err(|error| failed(schema.part, step, error))?;
        }
    }
    Ok(())
}

fn apply(conn: &mut Connection, part: &str, step: &Migration) -> Result<(), StoreError> {
    let tx = conn.transaction()?;
    tx.execute_batch(step.sql)?;
    tx.execute(
        "INSERT INTO schema_version (part, version, name) VALUES (?1, ?2, ?3)
         ON CONFLICT (part) DO UPDATE SET version = excluded.version, name = excluded.name",
        params![part, step.version, step.name],
    )?;
    tx.commit()?;
    tracing::debug!(part, version = step.version, name = step.name, "database migrated");
    Ok(())
}

/// Names the step, unless the cause is the disk or the file, which callers treat in their own ways.
fn failed(part: &str, step: &Migration, error: StoreError) -> StoreError {
    match error {
        StoreError::Internal(reason) | StoreError::Conflict(reason) => {
            StoreError::Migration { part: part.to_owned(), version: step.version, reason }
        }
        other => other,
    }
}

fn has_ledger(conn: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version')";
    Ok(conn.query_row(sql, [], |row| row.get(0))?)
}

fn version_of(conn: &Connection, part: &str) -> Result<u32, StoreError> {
    let sql = "SELECT version FROM schema_version WHERE part = ?1";
    Ok(conn.query_row(sql, [part], |row| row.get(0)).optional()?.unwrap_or(0))
}

fn newest(schema: &Schema) -> u32 {
    schema.migrations.last().map_or(0, |step| step.version)
}
