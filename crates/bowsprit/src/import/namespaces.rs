//! Records of namespaces: settings of front ends, webcams and whatever other programs keep there.
//!
//! A record of the source replaces ours of the same name; records that only we have stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::vocabulary::CORE_NAMESPACE;
use serde_json::value::RawValue;
use store::namespace::table;
use store::rusqlite::Connection;
use store::{Foreign, Key, Namespace, Store, StoreError};

/// Namespaces that are left out, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("gcode_metadata", "metadata is read again from the files"),
    ("update_manager", "states of updates are found again"),
    ("authorized_users", "of an older version; its server moves them when it is started once"),
    ("history", "of an older version; its server moves them when it is started once"),
];

/// The source's own records; of these, only the lists of namespaces with restricted access mean something to us.
const DATABASE: &str = "database";
const DATABASE_KEYS: &[&str] = &["protected_namespaces", "forbidden_namespaces"];

/// Records of the server itself that say something about its own process and files only.
const CORE_LEFT_OUT: &[&str] = &["file_manager", "klippy_connection", "validate_install", "usb_id_req_info", "database", "history"];

/// What is to be taken.
pub(super) struct Plan {
    records: Arc<Vec<Record>>,
    left_out: Vec<String>,
}

struct Record {
    namespace: Namespace,
    key: Key,
    value: Box<RawValue>,
}

#[derive(Default)]
struct Count {
    new: usize,
    replaced: usize,
    same: usize,
    refused: Vec<String>,
}

impl Plan {
    /// Reads the source.
    pub(super) fn read(foreign: &Foreign) -> Result<Self, StoreError> {
        let (mut records, mut left_out, mut reasons) = (Vec::new(), Vec::new(), BTreeMap::new());
        foreign.for_each_record(|record| {
            if let Some(reason) = reason_to_leave_out(&record.namespace, &record.key) {
                *reasons.entry((record.namespace, reason)).or_insert(0) += 1;
                return Ok(());
            }
            let name = if CORE_NAMESPACE.is(&record.namespace) { CORE_NAMESPACE.neutral } else { &record.namespace };
            let names = Namespace::parse(name).and_then(|namespace| Ok((namespace, Key::from_parts([record.key.as_str()])?)));
            match (names, record.value) {
                (Ok((namespace, key)), Ok(value)) => records.push(Record { namespace, key, value }),
                (Err(error), _) => left_out.push(format!("{}/{}: {error}", record.namespace, record.key)),
                (_, Err(reason)) => left_out.push(format!("{}/{}: it cannot be read: {reason}", record.namespace, record.key)),
            }
            Ok(())
        })?;
        left_out.extend(reasons.into_iter().map(|((namespace, reason), count)| format!("{namespace} ({count}): {reason}")));
        Ok(Self { records: Arc::new(records), left_out })
    }

    /// Whether a record of ours would get another value.
    pub(super) async fn replaces_something(&self, store: &Store) -> Result<bool, StoreError> {
        let records = self.records.clone();
        let work = move |conn: &Connection| {
            for record in records.iter() {
                if present(conn, record)?.is_some_and(|value| value.get() != record.value.get()) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        store.read(work).await
    }

    /// Takes all records in one transaction.
    pub(super) async fn carry_out(self, store: &Store) -> Result<Vec<String>, StoreError> {
        let records = self.records.clone();
        let counts = store.write(move |conn| take_all(conn, &records)).await?;
        let mut report = Vec::new();
        for (namespace, count) in counts {
            let Count { new, replaced, same, refused } = count;
            report.push(format!("namespace {namespace}: {new} new, {replaced} replaced, {same} as they were"));
            report.extend(refused.into_iter().map(|text| format!("left out: {namespace}/{text}")));
        }
        report.extend(self.left_out.into_iter().map(|text| format!("left out: {text}")));
        Ok(report)
    }
}

fn reason_to_leave_out(namespace: &str, key: &str) -> Option<&'static str> {
    let is_internal =
        CORE_NAMESPACE.is(namespace) && CORE_LEFT_OUT.contains(&key) || namespace == DATABASE && !DATABASE_KEYS.contains(&key);
    if is_internal {
        return Some("of the other server's own process");
    }
    LEFT_OUT.iter().find(|(name, _)| *name == namespace).map(|(_, reason)| *reason)
}

fn take_all(conn: &Connection, records: &[Record]) -> Result<BTreeMap<String, Count>, StoreError> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for record in records {
        let count = counts.entry(record.namespace.to_string()).or_default();
        let before = present(conn, record)?;
        if before.as_ref().is_some_and(|value| value.get() == record.value.get()) {
            count.same += 1;
            continue;
        }
        match table::post(conn, &record.namespace, &record.key, &record.value) {
            Ok(()) if before.is_some() => count.replaced += 1,
            Ok(()) => count.new += 1,
            // Too large, or a number out of range: the rest is worth taking.
            Err(error @ StoreError::BadValue(_)) => count.refused.push(format!("{}: {error}", record.key)),
            Err(error) => return Err(error),
        }
    }
    Ok(counts)
}

fn present(conn: &Connection, record: &Record) -> Result<Option<Box<RawValue>>, StoreError> {
    match table::get(conn, &record.namespace, Some(&record.key)) {
        Err(StoreError::NotFound(_)) => Ok(None),
        other => other.map(Some),
    }
}
