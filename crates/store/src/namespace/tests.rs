//! The operations against the rules of wire/1-core.md section 4.3, and against a model for random sequences.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Map, Value, json};

use super::*;
use crate::ErrorKind;

const FRUIT: Namespace = Namespace::fixed("fruit");

fn connection() -> Connection {
    let mut conn = Connection::open_in_memory().unwrap();
    crate::migrate::run(&mut conn, &[SCHEMA]).unwrap();
    conn
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn tree(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap()
}

fn key(dotted: &str) -> Key {
    Key::parse(dotted).unwrap()
}

fn post(conn: &Connection, at: &str, value: &Value) -> Result<(), StoreError> {
    table::post(conn, &FRUIT, &key(at), &raw(value))
}

fn get(conn: &Connection, at: &str) -> Result<Value, StoreError> {
    table::get(conn, &FRUIT, Some(&key(at))).map(|value| tree(&value))
}

fn delete(conn: &Connection, at: &str) -> Result<Value, StoreError> {
    table::delete(conn, &FRUIT, &key(at)).map(|value| tree(&value))
}

fn all(conn: &Connection) -> Result<Value, StoreError> {
    table::get(conn, &FRUIT, None).map(|value| tree(&value))
}

#[test]
fn missing_things_have_the_texts_that_clients_compare() {
    let conn = connection();
    assert_eq!(all(&conn).unwrap_err().to_string(), "Namespace 'fruit' not found");
    assert_eq!(get(&conn, "a.b").unwrap_err().to_string(), "Key 'a.b' in namespace 'fruit' not found");
    post(&conn, "a", &json!(5)).unwrap();
    for missing in ["z", "a.b"] {
        let text = format!("Key '{missing}' in namespace 'fruit' not found");
        assert_eq!(get(&conn, missing).unwrap_err(), StoreError::NotFound(text.clone()));
        assert_eq!(delete(&conn, missing).unwrap_err(), StoreError::NotFound(text));
    }
}

#[test]
fn nested_posts_make_parents() {
    let conn = connection();
    post(&conn, "a.b.c", &json!([1, {"d": true}])).unwrap();
    assert_eq!(all(&conn).unwrap(), json!({"a": {"b": {"c": [1, {"d": true}]}}}));
    assert_eq!(get(&conn, "a.b.c.1.d").unwrap(), json!(true));
}

#[test]
fn a_scalar_record_gives_way_a_deeper_scalar_does_not() {
    let conn = connection();
    post(&conn, "a", &json!("scalar")).unwrap();
    post(&conn, "a.b", &json!(1)).unwrap();
    let error = post(&conn, "a.b.c", &json!(2)).unwrap_err();
    assert!(matches!(error, StoreError::BadKey(_)));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(all(&conn).unwrap(), json!({"a": {"b": 1}}));
}

#[test]
fn null_is_a_value() {
    let conn = connection();
    post(&conn, "nothing", &json!(null)).unwrap();
    assert_eq!(get(&conn, "nothing").unwrap(), json!(null));
    assert_eq!(all(&conn).unwrap(), json!({"nothing": null}));
    assert_eq!(table::list(&conn).unwrap(), ["fruit"]);
}

#[test]
fn deletes_keep_empty_parents_but_not_empty_records() {
    let conn = connection();
    post(&conn, "a.b.c", &json!(1)).unwrap();
    assert_eq!(delete(&conn, "a.b.c").unwrap(), json!(1));
    assert_eq!(all(&conn).unwrap(), json!({"a": {"b": {}}}));
    assert_eq!(delete(&conn, "a.b").unwrap(), json!({}));
    assert_eq!(table::list(&conn).unwrap(), [""; 0]);
    assert_eq!(all(&conn).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn the_text_of_a_value_stays() {
    let conn = connection();
    let text = r#"{"z": 1.50, "a": 18446744073709551615, "ü": "\u00fc"}"#;
    table::post(&conn, &FRUIT, &key("a"), &RawValue::from_string(text.to_owned()).unwrap()).unwrap();
    assert_eq!(table::get(&conn, &FRUIT, Some(&key("a"))).unwrap().get(), text);
}

#[test]
fn what_cannot_be_read_back_is_refused() {
    let conn = connection();
    for wrong in ["18446744073709551616", r#"{"a":[-9223372036854775809]}"#, r#""\ud800""#] {
        let value = RawValue::from_string(wrong.to_owned()).unwrap();
        let error = table::post(&conn, &FRUIT, &key("a.b"), &value).unwrap_err();
        assert!(matches!(error, StoreError::BadValue(_)), "{wrong}: {error}");
    }
    // Each value fits, the record would not.
    let half = Value::String("x".repeat(MAX_VALUE_BYTES * 2 / 3));
    post(&conn, "a.first", &half).unwrap();
    assert!(matches!(post(&conn, "a.second", &half), Err(StoreError::BadValue(_))));
    assert_eq!(get(&conn, "a").unwrap().as_object().unwrap().len(), 1);
}

#[test]
fn a_namespace_too_large_for_one_answer_is_readable_by_key() {
    let conn = connection();
    // Made by the database itself: quicker than to check 70 MB of JSON here.
    let fill = "INSERT INTO namespace_store VALUES ('fruit', ?1, '[\"' || replace(hex(zeroblob(?2)), '0', 'x') || '\"]')";
    for record in ["a", "b", "c", "d", "e", "f", "g"] {
        conn.execute(fill, (record, i64::try_from(MAX_VALUE_BYTES / 2 - 2).unwrap())).unwrap();
    }
    assert!(matches!(table::get(&conn, &FRUIT, None), Err(StoreError::TooLarge(_))));
    assert_eq!(get(&conn, "g").unwrap()[0].as_str().unwrap().len(), MAX_VALUE_BYTES - 4);
}

#[test]
fn names_with_dots_quotes_and_other_scripts() {
    let conn = connection();
    let names = ["benchy v1.2.gcode", "quote\"d", "名前", "line\nbreak"];
    for (number, name) in names.into_iter().enumerate() {
        table::post(&conn, &FRUIT, &Key::from_parts([name, "a.b"]).unwrap(), &raw(&json!(number))).unwrap();
    }
    let object = all(&conn).unwrap();
    for (number, name) in names.into_iter().enumerate() {
        assert_eq!(object[name]["a.b"], json!(number));
    }
}

#[tokio::test]
async fn clients_are_restricted_and_components_are_not() {
    let namespaces = Namespaces::new(Store::in_memory(&[]).unwrap());
    let (own, core, lane) = (Namespace::fixed("database"), Namespace::fixed("core"), Namespace::fixed("lane"));
    let at = key("a");
    for namespace in [&own, &core, &FRUIT, &lane] {
        namespaces.save(namespace, &at, &1).await.unwrap();
    }
    assert_eq!(namespaces.list().await.unwrap(), ["core", "database", "fruit", "lane"]);
    assert_eq!(namespaces.client_list().await.unwrap(), ["core", "fruit", "lane"]);

    let forbidden = Err(StoreError::Forbidden("database".into()));
    assert_eq!(namespaces.client_get(&own, None).await.map(drop), forbidden);
    assert_eq!(namespaces.client_post(&own, &at, raw(&json!(2))).await, forbidden);
    assert_eq!(namespaces.client_delete(&own, &at).await.map(drop), forbidden);
    let protected = Err(StoreError::Protected("core".into()));
    assert_eq!(namespaces.client_get(&core, Some(&at)).await.unwrap().get(), "1");
    assert_eq!(namespaces.client_post(&core, &at, raw(&json!(2))).await, protected);
    assert_eq!(namespaces.client_delete(&core, &at).await.map(drop), protected);

    namespaces.client_post(&FRUIT, &at, raw(&json!(2))).await.unwrap();
    assert_eq!(namespaces.client_delete(&FRUIT, &at).await.unwrap().get(), "2");
    assert_eq!(namespaces.client_list().await.unwrap(), ["core", "lane"]);

    // Further rules that an imported database brings along.
    namespaces.save(&own, &key("protected_namespaces"), &["lane", "fruit"]).await.unwrap();
    namespaces.save(&own, &key("forbidden_namespaces"), &["fruit"]).await.unwrap();
    assert_eq!(namespaces.client_delete(&lane, &at).await.map(drop), Err(StoreError::Protected("lane".into())));
    assert_eq!(namespaces.client_get(&FRUIT, None).await.map(drop), Err(StoreError::Forbidden("fruit".into())));
    assert_eq!(namespaces.delete(&lane, &at).await.unwrap().get(), "1");
}

#[tokio::test]
async fn components_load_and_save_types() {
    let namespaces = Namespaces::new(Store::in_memory(&[]).unwrap());
    let at = key("list.of.numbers");
    assert_eq!(namespaces.load::<Vec<u32>>(&FRUIT, &at).await, Ok(None));
    namespaces.save(&FRUIT, &at, &[1, 2]).await.unwrap();
    assert_eq!(namespaces.load(&FRUIT, &at).await, Ok(Some(vec![1, 2])));
    assert!(matches!(namespaces.load::<bool>(&FRUIT, &at).await, Err(StoreError::BadValue(_))));
    assert_eq!(namespaces.delete(&FRUIT, &at).await.unwrap().get(), "[1,2]");
}

/// What the store must do, said once more with trees in memory.
#[derive(Default)]
struct Model(BTreeMap<&'static str, Map<String, Value>>);

impl Model {
    fn get(&self, namespace: &str, path: &[String]) -> Option<&Value> {
        let record = self.0.get(namespace)?.get(&path[0])?;
        path[1..].iter().try_fold(record, |value, part| match value {
            Value::Object(members) => members.get(part),
            Value::Array(elements) => elements.get(part.parse::<usize>().ok()?),
            _ => None,
        })
    }

    fn post(&mut self, namespace: &'static str, path: &[String], value: Value) -> bool {
        let blocked = (2..path.len()).any(|end| self.get_by_members(namespace, &path[..end]).is_some_and(|v| !v.is_object()));
        if blocked {
            return false;
        }
        let mut place = self.0.entry(namespace).or_default().entry(path[0].clone()).or_insert(Value::Null);
        for part in &path[1..] {
            if !place.is_object() {
                *place = json!({});
            }
            place = &mut place[part];
        }
        *place = value;
        true
    }

    fn delete(&mut self, namespace: &'static str, path: &[String]) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        let records = self.0.get_mut(namespace)?;
        let mut members = &mut *records;
        for part in parents {
            members = members.get_mut(part)?.as_object_mut()?;
        }
        let removed = members.remove(last)?;
        if parents.len() == 1 && members.is_empty() {
            records.remove(&path[0]);
        }
        if records.is_empty() {
            self.0.remove(namespace);
        }
        Some(removed)
    }

    /// Like `get`, but arrays are closed: writing never goes into them.
    fn get_by_members(&self, namespace: &str, path: &[String]) -> Option<&Value> {
        let record = self.0.get(namespace)?.get(&path[0])?;
        path[1..].iter().try_fold(record, |value, part| value.as_object()?.get(part))
    }
}

#[derive(Debug, Clone)]
enum Step {
    Get,
    Post(Value),
    Delete,
}

fn step() -> impl Strategy<Value = (&'static str, Vec<String>, Step)> {
    let value = prop_oneof![
        Just(json!(null)),
        Just(json!({})),
        any::<i64>().prop_map(|number| json!(number)),
        ".{0,6}".prop_map(|text| json!(text)),
        Just(json!([7, {"a": 1}, [null]])),
        Just(json!({"a": {"b": {}}, "0": [1]})),
    ];
    let step = prop_oneof![1 => Just(Step::Get), 3 => value.prop_map(Step::Post), 2 => Just(Step::Delete)];
    let part = prop_oneof![Just("a"), Just("b"), Just("0"), Just("1")].prop_map(str::to_owned);
    (prop_oneof![Just("north"), Just("south")], prop::collection::vec(part, 1..5), step)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_sequences_agree_with_the_model(steps in prop::collection::vec(step(), 1..40)) {
        let conn = connection();
        let mut model = Model::default();
        for (name, path, step) in steps {
            let namespace = Namespace::fixed(name);
            let at = Key::from_parts(path.iter().map(String::as_str)).unwrap();
            match step {
                Step::Get => {
                    let found = table::get(&conn, &namespace, Some(&at)).ok().map(|value| tree(&value));
                    prop_assert_eq!(found.as_ref(), model.get(name, &path));
                }
                Step::Post(value) => {
                    let stored = table::post(&conn, &namespace, &at, &raw(&value)).is_ok();
                    prop_assert_eq!(stored, model.post(name, &path, value));
                }
                Step::Delete => {
                    let removed = table::delete(&conn, &namespace, &at).ok().map(|value| tree(&value));
                    prop_assert_eq!(removed, model.delete(name, &path));
                }
            }
            let names: Vec<_> = model.0.keys().copied().collect();
            prop_assert_eq!(table::list(&conn).unwrap(), names);
            for (name, records) in &model.0 {
                let whole = tree(&table::get(&conn, &Namespace::fixed(name), None).unwrap());
                prop_assert_eq!(&whole, &Value::Object(records.clone()));
            }
        }
    }
}

#[tokio::test]
async fn what_clients_have_read_is_kept_until_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("core.db"), &[]).unwrap().store;
    let (namespaces, others) = (Namespaces::new(store.clone()), Namespaces::new(store.clone()));
    let at = key("a");
    let missing = namespaces.client_get(&FRUIT, Some(&at)).await.map(drop).unwrap_err();
    let served = || store.stats().writes + store.stats().reads;
    let before = served();
    assert_eq!(namespaces.client_get(&FRUIT, Some(&at)).await.map(drop).unwrap_err(), missing);
    assert_eq!(served(), before, "no thread was asked");
    for value in 0..3 {
        // Also what went another way counts.
        others.client_post(&FRUIT, &at, raw(&json!(value))).await.unwrap();
        let before = served();
        for again in 0..3 {
            assert_eq!(namespaces.client_get(&FRUIT, Some(&at)).await.unwrap().get(), value.to_string());
            assert_eq!(namespaces.client_get(&FRUIT, None).await.unwrap().get(), format!(r#"{{"a":{value}}}"#));
            assert_eq!(namespaces.client_list().await.unwrap(), ["fruit"]);
            assert!(served() <= before + 3, "once each: {again}");
        }
    }
    others.client_delete(&FRUIT, &at).await.unwrap();
    assert_eq!(namespaces.client_get(&FRUIT, Some(&at)).await.map(drop).unwrap_err().kind(), ErrorKind::NotFound);
    store.close().await;
    assert_eq!(namespaces.client_list().await, Err(StoreError::Closed));
}
