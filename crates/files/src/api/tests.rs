use std::sync::Arc;

use rpc::{Arguments, Call, Identity, Outcome, Registry, Verb};
use serde_json::{Value, json, value::RawValue};

use crate::testing::Bench;

/// Calls an operation by its method name.
async fn call(bench: &Bench, method: &str, params: Value) -> Result<Value, protocol::ApiError> {
    let mut registry = Registry::default();
    bench.files.register(&mut registry);
    let operation = registry.build().unwrap().method(method).unwrap().operation;
    let params = RawValue::from_string(params.to_string()).unwrap();
    let arguments = Arguments::from_json(Some(&params)).unwrap();
    let answer = match operation.invoke(&Arc::new(Call::internal()), &arguments) {
        Outcome::Done(answer) => answer,
        Outcome::Working(work) => work.await,
    };
    answer.map(|text| serde_json::from_slice(&text).unwrap())
}

#[tokio::test]
async fn lists_with_their_defaults_and_member_order() {
    let bench = Bench::new();
    bench.write("gcodes/a.gcode", "G28");
    let list = call(&bench, "server.files.list", json!({})).await.unwrap();
    assert_eq!((&list[0]["path"], &list[0]["size"], &list[0]["permissions"]), (&json!("a.gcode"), &json!(3), &json!("rw")));
    let directory = call(&bench, "server.files.get_directory", json!({"extended": true})).await.unwrap();
    assert_eq!(directory["files"][0]["filename"], "a.gcode");
    assert_eq!(directory["root_info"], json!({"name": "gcodes", "permissions": "rw"}));
    assert!(directory["disk_usage"]["total"].is_u64());
    assert_eq!(call(&bench, "server.files.list", json!({"root": "config"})).await.unwrap(), json!([]));
}

#[tokio::test]
async fn roots_are_named_with_path_and_permissions() {
    let bench = Bench::new();
    let path = |name: &str| bench.path(name).canonicalize().unwrap();
    let expected = json!([
        {"name": "config", "path": path("config"), "permissions": "rw"},
        {"name": "logs", "path": path("logs"), "permissions": "r"},
        {"name": "gcodes", "path": path("gcodes"), "permissions": "rw"},
    ]);
    assert_eq!(call(&bench, "server.files.roots", json!({})).await.unwrap(), expected);
}

#[tokio::test]
async fn delete_answers_with_item_and_action() {
    let bench = Bench::new();
    bench.write("gcodes/a.gcode", "G28");
    let item = json!({"path": "a.gcode", "root": "gcodes", "modified": 0.0, "size": 0, "permissions": ""});
    let deleted = call(&bench, "server.files.delete_file", json!({"path": "gcodes/a.gcode"})).await.unwrap();
    assert_eq!(deleted, json!({"item": item, "action": "delete_file"}));
    assert_eq!(bench.notifications(), [json!({"action": "delete_file", "item": item})]);
    let error = call(&bench, "server.files.delete_file", json!({})).await.unwrap_err();
    assert_eq!(error.message, "No data for argument: path");
}

#[test]
fn routes_and_rights() {
    let bench = Bench::new();
    let mut registry = Registry::default();
    bench.files.register(&mut registry);
    let operations = registry.build().unwrap();
    for (route, method) in [
        ("/server/files/list", "server.files.list"),
        ("/server/files/roots", "server.files.roots"),
        ("/server/files/directory", "server.files.get_directory"),
    ] {
        assert_eq!(operations.route(Verb::Get, route).ok().unwrap().operation.method, method);
        let stranger = Arc::new(Call::http(Identity::Stranger, protocol::Form::Neutral, None));
        let outcome = operations.method(method).unwrap().operation.invoke(&stranger, &Arguments::none());
        assert!(matches!(outcome, Outcome::Done(Err(error)) if error.kind == protocol::ErrorKind::Unauthorized));
    }
}
