//! Arguments of an operation as OpenAPI describes them: parts of the path, of the query string, or a body.
//!
//! Query strings carry text; the operation's types say how it is read ([`crate::decode()`]). Source: document 1 *HTTP conventions*.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::schema::{resolved, written};
use crate::operation::{Operation, QueryStyle, Verb};
use crate::pattern;

/// Adds the arguments of `operation` to its entry under `route`. GET and DELETE have no body: browsers and proxies drop it.
pub(super) fn describe(entry: &mut Value, operation: &Operation, verb: Verb, route: &str, generator: &mut SchemaGenerator) {
    let in_path: Vec<&str> = pattern::names(route).collect();
    let schema = written((operation.params)(generator));
    let shape = resolved(&schema, generator);
    let mut parameters: Vec<Value> = of_route(route);
    match verb {
        Verb::Get | Verb::Delete => {
            let required = shape.get("required").and_then(Value::as_array);
            let members = shape.get("properties").and_then(Value::as_object).into_iter().flatten();
            for (name, member) in members.filter(|(name, _)| !in_path.contains(&name.as_str())) {
                let is_required = required.is_some_and(|required| required.contains(&json!(name)));
                let mut parameter = match operation.query_style {
                    QueryStyle::Arguments => in_query(name, member, generator),
                    QueryStyle::PrinterObjects => objects_in_query(name),
                };
                if is_required {
                    parameter["required"] = json!(true);
                }
                parameters.push(parameter);
            }
        }
        Verb::Post => {
            let body = if in_path.is_empty() { schema } else { without(shape.clone(), &in_path) };
            if shape.get("type").is_some_and(|kind| kind != "null") {
                entry["requestBody"] = json!({"content": {"application/json": {"schema": body}}});
            }
        }
    }
    if !parameters.is_empty() {
        entry["parameters"] = parameters.into();
    }
}

/// What the names in a route stand for.
pub(super) fn of_route(route: &str) -> Vec<Value> {
    let parameter = |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    pattern::names(route).map(parameter).collect()
}

/// One argument in a query string.
fn in_query(name: &str, member: &Value, generator: &SchemaGenerator) -> Value {
    let mut schema = never_null(resolved(member, generator), generator);
    let mut description = schema.remove("description").and_then(|text| Some(text.as_str()?.to_owned())).unwrap_or_default();
    let mut parameter = json!({"name": name, "in": "query"});
    match schema.get("type").and_then(Value::as_str) {
        // A list is written with commas.
        Some("array") => parameter["explode"] = json!(false),
        Some("string" | "integer" | "number" | "boolean") => {}
        _ if schema.contains_key("oneOf") || schema.contains_key("enum") => {}
        _ => {
            let hint = format!(
                "Text, or with a type hint behind the name another type: `{name}:json=…` (percent-encoded JSON), `{name}:int=…`, \
                 `{name}:float=…`, `{name}:bool=…`."
            );
            description = format!("{description} {hint}").trim_start().to_owned();
            schema.insert("type".to_owned(), json!("string"));
        }
    }
    if !description.is_empty() {
        parameter["description"] = json!(description);
    }
    parameter["schema"] = Value::Object(schema);
    parameter
}

/// Query strings whose keys are printer objects ([`QueryStyle::PrinterObjects`]).
fn objects_in_query(name: &str) -> Value {
    json!({
        "name": name, "in": "query", "style": "form", "explode": true,
        "description": "Every key is a printer object, its value a comma-separated list of fields, or empty for all: `?toolhead&extruder=target`.",
        "schema": {"type": "object", "additionalProperties": {"type": "string"}},
    })
}

/// In a query string an argument is left out, it is never null.
fn never_null(mut schema: Map<String, Value>, generator: &SchemaGenerator) -> Map<String, Value> {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            schema.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [choice] = choices.as_slice() {
            let mut only = resolved(choice, generator);
            schema.remove("anyOf");
            only.extend(schema);
            return only;
        }
    }
    schema
}

/// The schema of an object without some of its members.
fn without(mut schema: Map<String, Value>, names: &[&str]) -> Value {
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        members.retain(|name, _| !names.contains(&name.as_str()));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str().is_none_or(|name| !names.contains(&name)));
    }
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::super::openapi;
    use super::QueryStyle;
    use crate::registry::Registry;
    use crate::{Access, Rendered};
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::{Value, json};
    use std::sync::Arc;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Params {
        root: String,
        /// How many.
        count: Option<u32>,
        #[serde(default)]
        ids: Vec<String>,
        key: Option<Value>,
        kind: Option<Kind>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code)]
    enum Kind {
        One,
        Two,
    }

    fn document(style: QueryStyle) -> Value {
        let mut registry = Registry::default();
        let declared = registry.op("server.x").get("/server/x").delete("/server/x/{root}").post("/server/x").post("/server/x/{root}");
        let answer = |(): &(), _: &crate::Call, _: Params| Ok(Rendered("1".into()));
        let declared = declared.access(Access::View);
        let declared = if style == QueryStyle::PrinterObjects { declared.query_names_objects() } else { declared };
        declared.answer(&Arc::new(()), answer);
        openapi(&registry.build().unwrap())["paths"].clone()
    }

    #[test]
    fn arguments_stand_where_clients_can_send_them() {
        let paths = document(QueryStyle::Arguments);
        let get = &paths["/server/x"]["get"];
        assert_eq!(get.get("requestBody"), None);
        let parameter = |name: &str| get["parameters"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        assert_eq!(parameter("root"), &json!({"name": "root", "in": "query", "required": true, "schema": {"type": "string"}}));
        let count = json!({
            "name": "count", "in": "query", "description": "How many.",
            "schema": {"type": "integer", "format": "uint32", "minimum": 0},
        });
        assert_eq!(parameter("count"), &count, "never null");
        assert_eq!((&parameter("ids")["explode"], &parameter("ids")["schema"]["type"]), (&json!(false), &json!("array")));
        assert_eq!(parameter("kind")["schema"]["enum"], json!(["one", "two"]));
        assert!(parameter("key")["description"].as_str().unwrap().contains("`key:json=…`"));

        let names = |entry: &Value| -> Vec<String> {
            let all = entry["parameters"].as_array().into_iter().flatten();
            all.map(|one| format!("{} in {}", one["name"].as_str().unwrap(), one["in"].as_str().unwrap())).collect()
        };
        let delete = &paths["/server/x/{root}"]["delete"];
        assert_eq!(names(delete)[0], "root in path");
        assert!(!names(delete).contains(&"root in query".to_owned()));
        let body = |path: &str| paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"].clone();
        assert_eq!(body("/server/x")["$ref"], "#/components/schemas/Params");
        assert_eq!(body("/server/x/{root}")["required"], json!([]), "what the path says the body need not");
        assert_eq!(
            (&paths["/server/x"]["post"]["operationId"], &paths["/server/x/{root}"]["post"]["operationId"]),
            (&json!("post:server.x"), &json!("post:server.x:2"))
        );
    }

    #[test]
    fn printer_objects_are_keys_of_their_own() {
        let paths = document(QueryStyle::PrinterObjects);
        let parameters = &paths["/server/x"]["get"]["parameters"];
        assert_eq!((&parameters[0]["style"], &parameters[0]["explode"]), (&json!("form"), &json!(true)));
    }
}
