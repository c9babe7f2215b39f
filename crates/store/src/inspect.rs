//! Looking at tables of any shape, for debugging.

use std::collections::HashSet;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::value::RawValue;

use crate::StoreError;
use crate::namespace::MAX_WHOLE_BYTES;

/// All tables, sorted by name.
///
/// # Errors
/// Those of the database.
pub fn tables(conn: &Connection) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name";
    let mut select = conn.prepare(sql)?;
    let names = select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(names)
}

/// All rows of a table as a JSON array of objects: every column, and the row id under the name `rowid` or under that of the column
/// that stands for it. Bytes are shown in hexadecimal digits.
///
/// # Errors
/// [`StoreError::NotFound`] without such a table, [`StoreError::TooLarge`] beyond [`MAX_WHOLE_BYTES`].
pub fn rows(conn: &Connection, table: &str) -> Result<Box<RawValue>, StoreError> {
    if !tables(conn)?.iter().any(|known| known == table) {
        return Err(StoreError::NotFound(format!("Table '{table}' not found")));
    }
    let quoted = format!("\"{}\"", table.replace('"', "\"\""));
    // Some tables have no row ids.
    let select = conn.prepare(&format!("SELECT rowid, * FROM {quoted}"));
    let mut select = select.or_else(|_| conn.prepare(&format!("SELECT * FROM {quoted}")))?;
    let columns = columns(select.column_names());
    let mut found = select.query([])?;
    let mut json = String::from("[");
    while let Some(row) = found.next()? {
        json.push_str(if json.len() > 1 { ",{" } else { "{" });
        for (position, (index, name)) in columns.iter().enumerate() {
            json.push_str(if position > 0 { "," } else { "" });
            json.push_str(&format!("{}:{}", encoded(name), value(row.get_ref(*index)?)));
        }
        json.push('}');
        if json.len() > MAX_WHOLE_BYTES {
            return Err(StoreError::TooLarge(format!("Table '{table}' is larger than {MAX_WHOLE_BYTES} bytes")));
        }
    }
    json.push(']');
    RawValue::from_string(json).map_err(|error| StoreError::Internal(error.to_string()))
}

/// Indexes and names of columns, each name once: the row id comes twice when a column stands for it.
fn columns<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(usize, String)> {
    let mut seen = HashSet::new();
    names.enumerate().filter(|(_, name)| seen.insert(*name)).map(|(index, name)| (index, name.to_owned())).collect()
}

fn value(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "null".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => serde_json::Value::from(number).to_string(),
        ValueRef::Text(bytes) => encoded(&String::from_utf8_lossy(bytes)),
        ValueRef::Blob(bytes) => encoded(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

fn encoded(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str, table: &str) -> Result<String, StoreError> {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(sql).unwrap();
        rows(&conn, table).map(|json| json.get().to_owned())
    }

    #[test]
    fn every_value_is_shown_with_the_row_id() {
        let sql = "CREATE TABLE t (a, \"b\"\"c\"); INSERT INTO t VALUES (NULL, 1.5), ('ü\"', x'00ff')";
        assert_eq!(shown(sql, "t").unwrap(), r#"[{"rowid":1,"a":null,"b\"c":1.5},{"rowid":2,"a":"ü\"","b\"c":"00ff"}]"#);
    }

    #[test]
    fn a_column_may_stand_for_the_row_id() {
        let sql = "CREATE TABLE t (name TEXT, id INTEGER PRIMARY KEY); INSERT INTO t VALUES ('x', 7)";
        assert_eq!(shown(sql, "t").unwrap(), r#"[{"id":7,"name":"x"}]"#);
        let without = "CREATE TABLE t (id TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO t VALUES ('k')";
        assert_eq!(shown(without, "t").unwrap(), r#"[{"id":"k"}]"#);
    }

    #[test]
    fn names_of_tables_are_names_only() {
        let sql = "CREATE TABLE \"a\"\"; DROP TABLE b\" (x); CREATE TABLE b (x)";
        assert_eq!(shown(sql, "a\"; DROP TABLE b").unwrap(), "[]");
        for missing in ["c", "sqlite_schema", "b; DROP TABLE b", ""] {
            assert!(matches!(shown(sql, missing), Err(StoreError::NotFound(_))), "{missing}");
        }
    }
}
