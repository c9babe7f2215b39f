//! Reading databases of existing installations (wire/1-core.md section 8.4). They are never changed, and may be in use meanwhile.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{StoreError, backup, files, inspect, open};

/// A database of another program, seen in the state that it had when it was opened.
pub struct Foreign {
    conn: Connection,
}

/// A record of a namespace.
#[derive(Debug)]
pub struct ForeignRecord {
    /// Its namespace.
    pub namespace: String,
    /// Its key; dots in it are no separators.
    pub key: String,
    /// Its value; the error says why it cannot be read.
    pub value: Result<Box<RawValue>, String>,
}

impl Foreign {
    /// Opens the file read-only.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is no database, [`StoreError::Busy`] when it is locked or was left by a crash so that
    /// only its own program can mend it; faults of the disk.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = match Connection::open_with_flags(path, flags).map_err(StoreError::from).and_then(begin) {
            // On read-only media SQLite cannot take part in the locking; that is safe when nobody has left unfinished work there.
            Err(StoreError::Io(_)) if !has_unfinished_work(path) => begin(backup::open_unchanging(path)?)?,
            other => other?,
        };
        Ok(Self { conn })
    }

    /// Whether there is a table of this name.
    ///
    /// # Errors
    /// Those of the database.
    pub fn has_table(&self, name: &str) -> Result<bool, StoreError> {
        Ok(inspect::tables(&self.conn)?.iter().any(|table| table == name))
    }

    /// For tables with a meaning of their own.
    pub fn connection(&self) -> &Connection {
        &self.conn
    }

    /// Every record of every namespace, in order.
    ///
    /// # Errors
    /// Those of the database; there is no such table.
    pub fn for_each_record(&self, mut take: impl FnMut(ForeignRecord) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let mut select = self.conn.prepare("SELECT namespace, key, value FROM namespace_store ORDER BY namespace, key")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            take(ForeignRecord { namespace: row.get(0)?, key: row.get(1)?, value: decode(row.get_ref(2)?) })?;
        }
        Ok(())
    }
}

/// Begins to read: everything afterwards is of one moment.
fn begin(conn: Connection) -> Result<Connection, StoreError> {
    conn.busy_timeout(open::BUSY_TIMEOUT)?;
    conn.execute_batch("PRAGMA query_only = ON; BEGIN")?;
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(conn)
}

fn has_unfinished_work(path: &Path) -> bool {
    ["-wal", "-journal"].iter().any(|ending| files::with_suffix(path, ending).metadata().is_ok_and(|about| about.len() > 0))
}

/// The first byte tells the type, except for arrays and objects, which are plain JSON.
fn decode(value: ValueRef<'_>) -> Result<Box<RawValue>, String> {
    let bytes = match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null => &[0],
        ValueRef::Integer(number) => return json(number.to_string()),
        ValueRef::Real(number) => return json(Value::from(number).to_string()),
    };
    let fixed = "the number of bytes is wrong for its type";
    match bytes {
        [b'q', rest @ ..] => json(i64::from_le_bytes(rest.try_into().map_err(|_| fixed)?).to_string()),
        [b'd', rest @ ..] => match f64::from_le_bytes(rest.try_into().map_err(|_| fixed)?) {
            number if number.is_finite() => json(Value::from(number).to_string()),
            number => Err(format!("{number} is no JSON number")),
        },
        [b'?', flag] => json((*flag != 0).to_string()),
        [b's', text @ ..] => json(Value::from(std::str::from_utf8(text).map_err(|error| error.to_string())?).to_string()),
        [0] => json("null".to_owned()),
        [b'[' | b'{', ..] => json(std::str::from_utf8(bytes).map_err(|error| error.to_string())?.to_owned()),
        _ => Err("its type is not known".to_owned()),
    }
}

fn json(text: String) -> Result<Box<RawValue>, String> {
    RawValue::from_string(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<String, String> {
        decode(ValueRef::Blob(bytes)).map(|json| json.get().to_owned())
    }

    #[test]
    fn every_type_is_read() {
        assert_eq!(decoded(&[&b"q"[..], &(-5_i64).to_le_bytes()].concat()).unwrap(), "-5");
        assert_eq!(decoded(&[&b"d"[..], &0.25_f64.to_le_bytes()].concat()).unwrap(), "0.25");
        assert_eq!(decoded(b"?\x01").unwrap(), "true");
        assert_eq!(decoded(b"?\x00").unwrap(), "false");
        assert_eq!(decoded("stext \"ü\"".as_bytes()).unwrap(), "\"text \\\"ü\\\"\"");
        assert_eq!(decoded(b"\x00").unwrap(), "null");
        assert_eq!(decoded(b"{\"a\": 1.50}").unwrap(), "{\"a\": 1.50}");
        assert_eq!(decoded(b"[]").unwrap(), "[]");
        assert_eq!(decode(ValueRef::Null).unwrap().get(), "null");
        assert_eq!(decode(ValueRef::Integer(7)).unwrap().get(), "7");
    }

    #[test]
    fn what_is_damaged_is_told() {
        let infinite = [&b"d"[..], &f64::INFINITY.to_le_bytes()].concat();
        for wrong in [&b""[..], b"q123", b"d", b"?", b"?\x00\x00", b"s\xff", b"{\"a\": NaN}", b"{", b"xyz", b"\x00\x00", &infinite] {
            assert!(decoded(wrong).is_err(), "{wrong:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..24)) {
            if let Ok(json) = decode(ValueRef::Blob(&bytes)) {
                proptest::prop_assert!(serde_json::from_str::<Value>(json.get()).is_ok() || json.get().len() > 1);
            }
        }
    }
}
