//! The served contract, written from the operation table: OpenAPI for HTTP, and a document of all RPC methods.

use protocol::event::{NOTIFICATIONS, Notification, STATUS_UPDATE};
use protocol::version::{API_VERSION_STRING, CORE_VERSION};
use protocol::vocabulary;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::call::Transport;
use crate::identity::Access;
use crate::pattern;
use crate::registry::{Operation, Operations, Verb};

/// The OpenAPI 3.1 document of all HTTP routes, under both vocabularies.
#[must_use]
pub fn openapi(operations: &Operations) -> Value {
    let mut generator = generator();
    let mut paths = Map::new();
    for operation in operations.all().iter().filter(|operation| operation.serves(Transport::Http)) {
        for (verb, route) in &operation.routes {
            let entry = route_entry(operation, *verb, route, &mut generator);
            insert(&mut paths, route, *verb, entry.clone());
            if let Some(alias) = vocabulary::route_alias(route) {
                insert(&mut paths, &alias, *verb, entry);
            }
        }
    }
    streams(operations, &mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Bowsprit", "version": API_VERSION_STRING, "description": format!("HTTP interface of Bowsprit {CORE_VERSION}")},
        "paths": paths,
        "components": {"schemas": with_both_names(Value::Object(generator.take_definitions(true)))},
    })
}

/// Routes whose bodies are streams ([`crate::transfer`]); they are no operations.
fn streams(operations: &Operations, paths: &mut Map<String, Value>) {
    let text = json!({"type": "string"});
    let form = json!({"type": "object", "required": ["file"], "properties": {
        "file": {"type": "string", "format": "binary"}, "root": text, "path": text, "checksum": text, "print": {"enum": ["true", "false"]},
    }});
    let form = json!({"content": {"multipart/form-data": {"schema": form}}});
    let data = json!({"content": {"application/offset+octet-stream": {}}});
    let mut add = |path: &str, verb: &str, summary: &str, status: &str, body: Option<&Value>| {
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        let access = if verb == "get" && path.ends_with("{path}") { Access::View } else { Access::Control };
        entry[verb] =
            json!({"summary": summary, "x-access": access.as_str(), "security": [{}], "responses": {status: {"description": "Success"}}});
        if let Some(body) = body {
            entry[verb]["requestBody"] = body.clone();
        }
        if let Some(parameters) = path_parameters(path) {
            entry[verb]["parameters"] = parameters;
        }
    };
    for upload in operations.uploads() {
        add(upload.route, "post", "Uploads a file.", "201", Some(&form));
    }
    add("/server/files/{root}/{path}", "get", "Downloads a file; ranges are served.", "200", None);
    let (all, one) = ("/server/files/uploads", "/server/files/uploads/{id}");
    add(all, "post", "Begins an upload that can be continued (tus 1.0).", "201", Some(&data));
    add(one, "head", "Tells in Upload-Offset how much of it is on the disk.", "200", None);
    add(one, "patch", "Continues it at Upload-Offset.", "204", Some(&data));
    add(one, "get", "The answer of a complete upload, as that of an upload in one request.", "200", None);
    add(one, "delete", "Gives it up.", "204", None);
    for (path, summary) in [
        ("/server/webcams/stream", "Moving pictures of a webcam (multipart/x-mixed-replace), by one connection to it for all who watch."),
        ("/server/webcams/snapshot", "One picture of a webcam."),
    ] {
        let text = json!({"type": "string"});
        let which = json!([{"name": "uid", "in": "query", "schema": text}, {"name": "name", "in": "query", "schema": text}]);
        paths.insert(
            path.to_owned(),
            json!({"get": {
                "summary": summary, "x-access": Access::View.as_str(), "security": [{}], "parameters": which,
                "responses": {"200": {"description": "Success"}},
            }}),
        );
    }
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
                "result": with_both_names((operation.result)(&mut generator).to_value()),
            })
        })
        .collect();
    let notifications: Vec<Value> =
        std::iter::once(&STATUS_UPDATE).chain(NOTIFICATIONS).map(|notification| notification_entry(notification, &mut generator)).collect();
    let definitions = with_both_names(Value::Object(generator.take_definitions(true)));
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
    let params: Vec<Value> = notification.params.iter().map(|schema| with_both_names(schema(generator).to_value())).collect();
    if !params.is_empty() {
        entry["params"] = json!({"type": "array", "minItems": params.len(), "items": false, "prefixItems": params});
    }
    entry
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into()).into_generator()
}

fn insert(paths: &mut Map<String, Value>, route: &str, verb: Verb, entry: Value) {
    let path = paths.entry(route).or_insert_with(|| json!({}));
    path[verb.as_str()] = entry;
}

/// What the names in a route stand for.
fn path_parameters(route: &str) -> Option<Value> {
    let parameter = |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let parameters: Vec<Value> = pattern::names(route).map(parameter).collect();
    (!parameters.is_empty()).then(|| parameters.into())
}

fn route_entry(operation: &Operation, verb: Verb, route: &str, generator: &mut SchemaGenerator) -> Value {
    let mut entry = json!({
        "operationId": format!("{}:{}", verb.as_str(), operation.method),
        "summary": operation.doc,
        "x-access": operation.access.as_str(),
        "responses": {
            "default": {"description": "Failure", "content": {"application/json": {"schema": {
                "type": "object",
                "properties": {"error": {"type": "object", "properties": {"code": {"type": "integer"}, "message": {"type": "string"}}}},
            }}}},
        },
    });
    let (status, success) = success(operation, generator);
    entry["responses"][status] = success;
    if let Some(parameters) = path_parameters(route) {
        entry["parameters"] = parameters;
    }
    if operation.access != Access::Open {
        entry["security"] = json!([{}]);
    }
    let params = params(operation, generator);
    if params.get("type").is_some() || params.get("$ref").is_some() {
        entry["requestBody"] = json!({"content": {"application/json": {"schema": params}}});
    }
    entry
}

/// Status and description of a good answer.
fn success(operation: &Operation, generator: &mut SchemaGenerator) -> (&'static str, Value) {
    let result = with_both_names((operation.result)(generator).to_value());
    if operation.is_bare && result["type"] == "null" {
        return ("204", json!({"description": "Success"}));
    }
    let schema =
        if operation.is_bare { result } else { json!({"type": "object", "properties": {"result": result}, "required": ["result"]}) };
    ("200", json!({"description": "Success", "content": {"application/json": {"schema": schema}}}))
}

fn params(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    match (operation.params)(generator).to_value() {
        Value::Object(schema) if schema.get("type") == Some(&json!("null")) => json!({}),
        other => other,
    }
}

/// Adds the incumbent's name beside every renamed property.
fn with_both_names(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                let inner = with_both_names(value.take());
                *value = inner;
                match (key.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        let names: Vec<String> = properties.keys().cloned().collect();
                        for name in names {
                            if let (Some(alias), Some(schema)) = (vocabulary::member_alias(&name), properties.get(&name).cloned()) {
                                properties.insert(alias.to_owned(), schema);
                            }
                        }
                    }
                    ("required", Value::Array(required)) => {
                        let aliases: Vec<Value> =
                            required.iter().filter_map(Value::as_str).filter_map(vocabulary::member_alias).map(Value::from).collect();
                        required.extend(aliases);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let inner = with_both_names(item.take());
                *item = inner;
            }
        }
        _ => {}
    }
    schema
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
