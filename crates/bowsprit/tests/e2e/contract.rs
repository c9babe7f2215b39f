//! The OpenAPI document as tools read it: validators, generators of clients, testers.

use std::collections::HashSet;
use std::process::Command;

use serde_json::Value;

use crate::harness::server::BOWSPRIT;

fn openapi() -> Value {
    let output = Command::new(BOWSPRIT).arg("contract").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every operation with its name for messages, its route and its verb.
fn operations(document: &Value) -> Vec<(String, &str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .flat_map(|(path, verbs)| verbs.as_object().unwrap().iter().map(move |(verb, entry)| (path, verb, entry)))
        .map(|(path, verb, entry)| (format!("{verb} {path}"), path.as_str(), verb.as_str(), entry))
        .collect()
}

#[test]
fn ids_of_operations_are_unique() {
    let (document, mut known) = (openapi(), HashSet::new());
    for (name, _, _, entry) in operations(&document) {
        if let Some(id) = entry["operationId"].as_str() {
            assert!(known.insert(id), "{name}: {id} stands twice");
        }
    }
    assert!(known.len() > 100);
}

#[test]
fn every_operation_tells_how_it_fails() {
    let document = openapi();
    for (name, _, _, entry) in operations(&document) {
        let mut statuses = entry["responses"].as_object().unwrap().keys();
        assert!(statuses.any(|status| status == "default" || status.starts_with('4')), "{name}");
    }
}

#[test]
fn arguments_are_where_clients_can_send_them() {
    let document = openapi();
    for (name, path, verb, entry) in operations(&document) {
        let is_without_body = ["get", "head", "delete"].contains(&verb);
        assert!(!(is_without_body && entry.get("requestBody").is_some()), "{name}: clients send no body with this verb");
        let mut known = HashSet::new();
        for parameter in entry["parameters"].as_array().into_iter().flatten() {
            let place = (parameter["in"].as_str().unwrap(), parameter["name"].as_str().unwrap());
            assert!(known.insert(place), "{name}: {place:?} stands twice");
        }
        for part in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            assert!(known.contains(&("path", part)), "{name}: {part} is not described");
        }
    }
    let metadata = &document["paths"]["/server/files/metadata"]["get"]["parameters"][0];
    assert_eq!((&metadata["name"], &metadata["in"], &metadata["required"]), (&"filename".into(), &"query".into(), &true.into()));
}

/// Members of the document that are true or false, and no schemas.
const FLAGS: [&str; 4] = ["required", "explode", "default", "const"];

/// Looks for schemas that are no objects: equal in JSON Schema, but a trap for many tools.
fn no_bare_booleans(value: &Value, place: &str) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, member)| !(member.is_boolean() && FLAGS.contains(&name.as_str()))) {
                let is_closed = name == "additionalProperties" && member == false;
                assert!(is_closed || !member.is_boolean(), "{place}/{name} is {member}");
                no_bare_booleans(member, &format!("{place}/{name}"));
            }
        }
        Value::Array(items) if !place.ends_with("/enum") => {
            for item in items {
                assert!(!item.is_boolean(), "{place} holds {item}");
                no_bare_booleans(item, place);
            }
        }
        _ => {}
    }
}

#[test]
fn no_schema_is_a_bare_boolean() {
    no_bare_booleans(&openapi(), "");
}
