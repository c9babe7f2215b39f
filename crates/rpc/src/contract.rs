//! The served contract, written from the operation table: OpenAPI for HTTP, and a document of all RPC methods.

use std::collections::HashMap;

use protocol::event::{NOTIFICATIONS, Notification, STATUS_UPDATE};
use protocol::version::{API_VERSION_STRING, CORE_VERSION};
use protocol::vocabulary;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::call::Transport;
use crate::identity::Access;
use crate::registry::{Operation, Operations, Verb};

mod arguments;
mod schema;
mod streams;

use schema::{definitions, generator, with_both_names, written};

/// The OpenAPI 3.1 document of all HTTP routes, under both vocabularies.
#[must_use]
pub fn openapi(operations: &Operations) -> Value {
    let mut generator = generator();
    let mut paths = Map::new();
    let mut ids = HashMap::new();
    for operation in operations.all().iter().filter(|operation| operation.serves(Transport::Http)) {
        for (verb, route) in &operation.routes {
            for route in std::iter::once(route.clone()).chain(vocabulary::route_alias(route)) {
                let mut entry = route_entry(operation, *verb, &route, &mut generator);
                entry["operationId"] = unique_id(&mut ids, operation, *verb).into();
                paths.entry(route).or_insert_with(|| json!({}))[verb.as_str()] = entry;
            }
        }
    }
    streams::describe(operations, &mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Bowsprit", "version": API_VERSION_STRING, "description": format!("HTTP interface of Bowsprit {CORE_VERSION}")},
        "paths": paths,
        "components": {"schemas": definitions(&mut generator)},
    })
}

/// The document of all JSON-RPC methods, and of all notifications.
#[must_use]
pub fn methods(operations: &Operations) -> Value {
    let mut generator = generator();
    let methods: Vec<Value> = operations
        .all()
        .iter()
        .filter(|operation| !operation.is_bare)
        .map(|operation| {
            let transports: Vec<&str> = [Transport::Http, Transport::Socket, Transport::Mqtt, Transport::Internal]
                .into_iter()
                .filter(|transport| operation.serves(*transport))
                .map(Transport::as_str)
                .collect();
            json!({
                "name": operation.method,
                "alias": vocabulary::method_alias(&operation.method),
                "description": operation.doc,
                "access": operation.access.as_str(),
                "transports": transports,
                "params": params(operation, &mut generator),
                "result": with_both_names(written((operation.result)(&mut generator))),
            })
        })
        .collect();
    let notifications: Vec<Value> =
        std::iter::once(&STATUS_UPDATE).chain(NOTIFICATIONS).map(|notification| notification_entry(notification, &mut generator)).collect();
    let definitions = definitions(&mut generator);
    json!({
        "version": API_VERSION_STRING,
        "methods": methods,
        "notifications": notifications,
        "components": {"schemas": definitions},
    })
}

/// Names, occasion and parameters of a notification; one without parameters has no member `params`, here as on the wire.
fn notification_entry(notification: &Notification, generator: &mut SchemaGenerator) -> Value {
    let mut entry = json!({
        "name": notification.name,
        "alias": vocabulary::notification_alias(notification.name),
        "description": notification.doc.trim(),
    });
    let params: Vec<Value> = notification.params.iter().map(|schema| with_both_names(written(schema(generator)))).collect();
    if !params.is_empty() {
        entry["params"] = json!({"type": "array", "minItems": params.len(), "items": false, "prefixItems": params});
    }
    entry
}

/// Name of an operation under one of its routes: `post:server.restart`, and `post:server.restart:2` under the second one. Tools take it for the
/// name of a function, so that it must be unique.
fn unique_id(ids: &mut HashMap<String, usize>, operation: &Operation, verb: Verb) -> String {
    let id = format!("{}:{}", verb.as_str(), operation.method);
    let count = ids.entry(id.clone()).or_default();
    *count += 1;
    if *count == 1 { id } else { format!("{id}:{count}") }
}

/// Any answer but the good ones.
fn failure() -> Value {
    json!({"description": "Failure", "content": {"application/json": {"schema": {
        "type": "object",
        "properties": {"error": {"type": "object", "properties": {"code": {"type": "integer"}, "message": {"type": "string"}}}},
    }}}})
}

fn route_entry(operation: &Operation, verb: Verb, route: &str, generator: &mut SchemaGenerator) -> Value {
    let mut entry = json!({
        "summary": operation.doc,
        "x-access": operation.access.as_str(),
        "responses": {"default": failure()},
    });
    let (status, success) = success(operation, generator);
    entry["responses"][status] = success;
    if operation.access != Access::Open {
        entry["security"] = json!([{}]);
    }
    arguments::describe(&mut entry, operation, verb, route, generator);
    entry
}

/// Status and description of a good answer.
fn success(operation: &Operation, generator: &mut SchemaGenerator) -> (&'static str, Value) {
    let result = with_both_names(written((operation.result)(generator)));
    if operation.is_bare && result["type"] == "null" {
        return ("204", json!({"description": "Success"}));
    }
    let schema =
        if operation.is_bare { result } else { json!({"type": "object", "properties": {"result": result}, "required": ["result"]}) };
    ("200", json!({"description": "Success", "content": {"application/json": {"schema": schema}}}))
}

fn params(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    match written((operation.params)(generator)) {
        Value::Object(schema) if schema.get("type") == Some(&json!("null")) => json!({}),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use std::sync::Arc;

    struct Service;

    #[derive(Deserialize, JsonSchema)]
    struct Params {
        #[allow(dead_code)]
        name: String,
    }

    #[derive(Serialize, JsonSchema)]
    struct Info {
        fwhost_connected: bool,
    }

    #[test]
    fn every_route_and_both_names_are_described() {
        let mut registry = Registry::default();
        registry
            .op("server.spool.x")
            .get("/server/spool/x")
            .access(Access::View)
            .doc("Says x.")
            .answer(&Arc::new(Service), |_, _, _: Params| Ok(Info { fwhost_connected: true }));
        let operations = registry.build().unwrap();
        let document = openapi(&operations);
        for path in ["/server/spool/x", "/server/spoolman/x"] {
            assert_eq!(document["paths"][path]["get"]["summary"], "Says x.");
        }
        let info = &document["components"]["schemas"]["Info"];
        assert!(info["properties"]["klippy_connected"].is_object());
        assert_eq!(info["required"], json!(["fwhost_connected", "klippy_connected"]));
        let methods = methods(&operations);
        assert_eq!(methods["methods"][0]["alias"], "server.spoolman.x");
        assert_eq!(methods["methods"][0]["access"], "view");
    }

    #[test]
    fn every_notification_is_described() {
        let document = methods(&Registry::default().build().unwrap());
        let notification = |name: &str| {
            let all = document["notifications"].as_array().unwrap();
            all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
        };
        let ready = notification("notify_fwhost_ready");
        assert_eq!((&ready["alias"], ready.get("params")), (&json!("notify_klippy_ready"), None));
        assert!(ready["description"].as_str().unwrap().starts_with("The start sequence"));
        // An agent that leaves has nothing to say.
        assert_eq!(document["components"]["schemas"]["AgentEvent"]["required"], json!(["agent", "event"]));
        let update = notification("notify_status_update");
        assert_eq!(update["params"]["prefixItems"][1]["type"], "number");
        let statistics = notification("notify_proc_stat_update");
        let name = statistics["params"]["prefixItems"][0]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let members = &document["components"]["schemas"][name]["properties"];
        assert!(members["core_stats"].is_object() && members["moonraker_stats"].is_object(), "{members}");
    }
}
